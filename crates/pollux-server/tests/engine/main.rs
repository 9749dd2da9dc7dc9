//! The local engine with real processes.

mod restarts;
mod runs;
mod site;
