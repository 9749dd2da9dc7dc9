//! SIGTERM: leave at the end of the step.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGTERM;
use signal_hook::flag;

/// What the shell makes of a process that SIGTERM ended, and what a worker that left as asked exits with.
pub const LEFT_EXIT_CODE: u8 = 143;

/// Whether this process was asked to leave.
#[derive(Clone, Debug, Default)]
pub struct Asked(Arc<AtomicBool>);

impl Asked {
    /// Remembers the first SIGTERM; a second one ends the process there and then.
    pub fn by_sigterm() -> io::Result<Self> {
        let asked = Self::default();
        // In this order: the first signal finds the flag down, and raises it.
        flag::register_conditional_default(SIGTERM, Arc::clone(&asked.0))?;
        flag::register(SIGTERM, Arc::clone(&asked.0))?;
        Ok(asked)
    }

    /// Whether it is time to leave.
    pub fn to_leave(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
