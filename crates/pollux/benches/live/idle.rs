//! A scheduler that has nothing to do, and one whose jobs run and are quiet.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pollux_api::rest::JobState;

use crate::measure::{Spread, verdict};
use crate::scheduler::{Scheduler, own_job, until};

/// What is promised: percent of a core, and MB of memory.
const PROMISED: [f64; 2] = [1.0, 50.0];

/// Measures both.
pub(crate) fn run(is_quick: bool) {
    let (repeats, each) = if is_quick { (2, Duration::from_secs(2)) } else { (6, Duration::from_secs(10)) };
    println!("A quiet scheduler, rounds as usual, {repeats} times {} s:", each.as_secs());
    let scheduler = Scheduler::up("2x4:t4", &[]);
    measure(&scheduler, "no jobs", repeats, each);
    let notes = scheduler.folder().join("notes");
    fs::create_dir(&notes).expect("the folder is ours");
    for _ in 0..8 {
        scheduler.submit(&own_job("1", &notes));
    }
    until("all jobs run", || scheduler.jobs().iter().all(|job| job.state == JobState::Running));
    measure(&scheduler, "8 jobs that run and say little", repeats, each);
}

fn measure(scheduler: &Scheduler, what: &str, repeats: u32, each: Duration) {
    // What a start leaves to be done is not part of it.
    sleep(Duration::from_secs(2));
    let shares = (0..repeats).map(|_| {
        let (before, began) = (scheduler.cpu_secs(), Instant::now());
        sleep(each);
        100.0 * (scheduler.cpu_secs() - before) / began.elapsed().as_secs_f64()
    });
    let share = Spread::of(shares);
    let [now, most] = scheduler.memory_mb();
    let is_kept = share.median < PROMISED[0] && now < PROMISED[1];
    println!("  {what}: {share:.2} % of a core, {now:.0} MB resident ({most:.0} at most)");
    println!("  promised: below {} % and {} MB: {}", PROMISED[0], PROMISED[1], verdict(is_kept));
}
