//! How far a campaign is, for people who wait.

use std::io::{self, IsTerminal as _};

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error; none where that is no terminal.
pub(super) struct Bar(Option<ProgressBar>);

impl Bar {
    pub(super) fn new(n_runs: usize) -> Self {
        if !io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::new(n_runs as u64);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:40} {pos} of {len} runs, {elapsed} gone, about {eta} to go")
        {
            bar.set_style(style);
        }
        // Shown before the first run is done, and kept running between runs.
        bar.enable_steady_tick(std::time::Duration::from_millis(500));
        Self(Some(bar))
    }

    pub(super) fn at(&self, n_done: usize) {
        if let Some(bar) = &self.0 {
            bar.set_position(n_done as u64);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
