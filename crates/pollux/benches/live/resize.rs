//! What a resize costs beyond what the job itself takes to save and to begin.

use std::fs;

use jiff::Timestamp;
use pollux_api::rest::{Attempt, JobEdits, JobShown};

use crate::measure::{Spread, verdict};
use crate::scheduler::{Scheduler, own_job, until};
use crate::worker;

/// What is promised: milliseconds.
const PROMISED_MS: f64 = 200.0;

/// One resize, in milliseconds.
struct Cost {
    /// From the decision to stop until the last worker's end was taken in.
    stop: f64,
    /// From the decision to start until the last worker's first instruction.
    start: f64,
    /// From the decision to stop to that instruction.
    whole: f64,
}

/// What is printed of resizes, and how it is found.
type Part = (&'static str, fn(&Cost) -> f64);

/// Resizes a job between one GPU and four, over and over.
pub(crate) fn run(is_quick: bool) {
    let n_resizes = if is_quick { 4 } else { 40 };
    let scheduler = Scheduler::up("1x4:t4", &["--round", "0.2", "--report-every", "0.2"]);
    let notes = scheduler.folder().join("notes");
    fs::create_dir(&notes).expect("the folder is ours");
    let id = scheduler.submit(&own_job("1", &notes))[0].id;
    let trains_on = |gpus: u32| {
        let job = describe(&scheduler, id);
        let is_begun = job.attempts.last().is_some_and(|attempt| attempt.training.is_some());
        job.gpus == gpus && is_begun && job.reported.is_some()
    };
    until("the job trains", || trains_on(1));
    let mut costs = Vec::new();
    for turn in 0..n_resizes {
        let gpus = if turn % 2 == 0 { 4 } else { 1 };
        let edits = JobEdits { min_gpus: Some(gpus), max_gpus: Some(gpus), ..JobEdits::default() };
        let changed =
            scheduler.client().send::<JobShown>("PATCH", &format!("/v1/jobs/{id}"), &[], Some(&edits));
        changed.expect("the job takes it");
        until("the job is resized", || trains_on(gpus));
        let job = describe(&scheduler, id);
        let [.., before, after] = job.attempts.as_slice() else { panic!("no two starts: {job:?}") };
        let stamps = (0..gpus).map(|rank| worker::began(&notes, id, after.attempt, rank));
        let last = stamps.max().flatten().expect("every worker notes when it began");
        costs.push(cost(before, after, last));
    }
    println!("A resize beyond what the job takes itself, {n_resizes} times between 1 GPU and 4, in ms:");
    let parts: [Part; 3] = [
        ("decision to stop, until the last worker's end is taken in", |cost| cost.stop),
        ("decision to start, until the last worker's first instruction", |cost| cost.start),
        ("both", |cost| cost.whole),
    ];
    for (what, of) in parts {
        let mut sorted: Vec<f64> = costs.iter().map(of).collect();
        sorted.sort_by(f64::total_cmp);
        let p95 = sorted[(sorted.len() * 95).div_ceil(100) - 1];
        let spread = Spread::of(sorted);
        println!("  {what:<62} median {spread:.0}, 95th percentile {p95:.0}");
        if what == "both" {
            let is_kept = p95 < PROMISED_MS;
            println!("  promised: below {PROMISED_MS:.0}: {}", verdict(is_kept));
        }
    }
}

fn describe(scheduler: &Scheduler, id: u64) -> JobShown {
    scheduler.client().get(&format!("/v1/jobs/{id}")).expect("the scheduler lives")
}

fn cost(before: &Attempt, after: &Attempt, last_began: i64) -> Cost {
    let micros = |time: Option<&str>| {
        let time: Timestamp = time.and_then(|time| time.parse().ok()).expect("the start is over");
        time.as_microsecond()
    };
    let asked = micros(before.asked.as_deref());
    let ended = micros(before.ended.as_deref());
    let started = micros(Some(&after.started));
    let millis = |from: i64, to: i64| (to - from) as f64 / 1e3;
    Cost { stop: millis(asked, ended), start: millis(started, last_began), whole: millis(asked, last_began) }
}
