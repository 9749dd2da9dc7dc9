//! Kills at random, through the command: a real scheduler, real supervisors and real workers die of SIGKILL while jobs are
//! submitted, resized, paused, resumed and cancelled. Whatever dies when, nothing that was acknowledged is lost, no GPU
//! has two holders, and every job ends as its user wants.
//!
//! `POLLUX_CHAOS_KILLS` says how many kills, `POLLUX_CHAOS_MINUTES` for how long instead, `POLLUX_CHAOS_SEED` which ones.
//! `cargo xtask soak` sets them.

#![expect(clippy::print_stderr, reason = "a seed that nobody sees cannot be tried again")]

mod course;
mod jobs;
mod place;
mod processes;
mod watch;

use std::time::{Duration, Instant};

use course::{Course, Length};

/// Kills of a plain `cargo test`; `cargo xtask test-all` asks for many more.
const FEW_KILLS: u64 = 15;

#[test]
fn whatever_is_killed_nothing_is_lost_and_nothing_is_done_twice() {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().unwrap_or_else(|_| panic!("{name} is `{value}`, not a whole number")))
    };
    let seed = number("POLLUX_CHAOS_SEED").unwrap_or(1);
    let length = match number("POLLUX_CHAOS_MINUTES") {
        Some(minutes) => Length::Until(Instant::now() + Duration::from_mins(minutes)),
        None => Length::Kills(number("POLLUX_CHAOS_KILLS").unwrap_or(FEW_KILLS)),
    };
    eprintln!("chaos: seed {seed}; the same choices again with POLLUX_CHAOS_SEED={seed}");
    let mut course = Course::begin(seed);
    course.run(&length);
    course.see_jobs_through();
    course.check_end();
}
