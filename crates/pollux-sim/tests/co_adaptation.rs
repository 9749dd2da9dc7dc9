//! The heart of Pollux: GPUs and batch are chosen together, and follow both the cluster and the training.
//!
//! One large job is alone on 16 GPUs; a wave of small ones comes and goes. What the large one holds, its batch and
//! what a sample of it is worth are read from the log at chosen times and compared. Bounds leave room: the exact
//! numbers move when agent or policy are improved. Measured with [`Settings::TUNED`], yolov3 and the wave at 2 h:
//!
//! | time | 2 h, alone | 2.5 h, in the wave | 3.1 h, alone again |
//! | --- | --- | --- | --- |
//! | GPUs | 16 | 3 | 16 |
//! | batch | 384 | 96 | 512 |
//! | efficiency | 0.61 | 0.88 | 0.72 |

mod common;

use common::{profiles, submission};
use pollux_model::{JobId, Timestamp};
use pollux_policy::{About, AnyPolicy, Known, Plan, Policy, Pollux, Settings, Snapshot, Terms};
use pollux_sim::simulation::{Options, simulate};
use pollux_sim::workload::Workload;
use pollux_sim::{Run, What};

const SETTINGS: [Settings; 2] = [Settings::TUNED, Settings::PAPER];

/// A job at some time.
#[derive(Clone, Copy, Debug)]
struct State {
    gpus: f64,
    batch: f64,
    /// What a sample is worth against one of the initial batch, as it was when this batch began.
    efficiency: f64,
}

impl State {
    /// Of a job that trains, what the log said last.
    fn at(run: &Run, job: JobId, secs: u64) -> Self {
        let mut state = Self { gpus: 0.0, batch: 0.0, efficiency: 0.0 };
        let past = run.log.events.iter().take_while(|event| event.at <= Timestamp::from_secs(secs));
        for event in past.filter(|event| event.job == job) {
            match &event.what {
                What::Started { allocation, .. } => state.gpus = allocation.gpus(),
                What::Batch { global, efficiency } => {
                    (state.batch, state.efficiency) = (*global as f64, *efficiency);
                }
                What::Stopped | What::Failed | What::Finished => state.gpus = 0.0,
                What::Submitted | What::Training => {}
            }
        }
        assert!(state.gpus > 0.0 && state.batch > 0.0, "at {secs} s job {} does not train: {state:?}", job.0);
        state
    }

    fn batch_per_gpu(self) -> f64 {
        self.batch / self.gpus
    }
}

/// The large job is number 0, and its user's batch, which Pollux does not heed, is the one that suits 48 GPUs. From `wave_secs` on eight small ones are there for most of an hour.
fn run(policy: &dyn AnyPolicy, large: &str, wave_secs: u64) -> Run {
    let wave = (1..=8).map(|index| submission(index, wave_secs, "cifar10", 1));
    let jobs = std::iter::once(submission(0, 0, large, 48)).chain(wave).collect();
    let workload = Workload { name: "wave".to_owned(), jobs };
    let options = Options { cluster: "4x4:t4".parse().unwrap(), ..Options::default() };
    simulate(&workload, &profiles(), policy, &options).unwrap()
}

/// When the last of the small jobs was done, in seconds.
fn wave_ends(run: &Run) -> u64 {
    let last = run.jobs[1..].iter().filter_map(|job| job.completed).max().unwrap();
    last.as_micros().div_ceil(1_000_000)
}

/// Shortly before the wave, in the midst of it, and towards the end of training when it is over.
fn before_amid_after(run: &Run, wave_secs: u64) -> [State; 3] {
    let done = run.jobs[0].completed.unwrap().as_micros() / 1_000_000;
    let end = wave_ends(run);
    assert!(end + 900 < done, "the large job is done too soon after the wave: {done} s, {end} s");
    [wave_secs - 60, wave_secs + 1_800, done - 60].map(|secs| State::at(run, JobId(0), secs))
}

#[test]
fn a_wave_of_others_takes_gpus_and_the_batch_follows() {
    for settings in SETTINGS {
        let run = run(&Pollux { settings }, "yolov3", 5_400);
        let [before, amid, after] = before_amid_after(&run, 5_400);
        // Alone it has grown to the whole cluster, and pays for it with samples that are worth less.
        assert!(before.gpus > 15.0 && before.efficiency < 0.75, "{before:?}");
        // In the wave it has a fair share, 16 / 9 GPUs, or a little more. There a large batch would not be faster by
        // much, so it takes a smaller one, whose samples are worth more.
        assert!(amid.gpus <= before.gpus / 4.0, "{before:?}, {amid:?}");
        assert!(amid.batch <= before.batch / 2.0, "{before:?}, {amid:?}");
        assert!(amid.efficiency >= before.efficiency + 0.1, "{before:?}, {amid:?}");
        // That was the batch, not time, which only adds worth to the samples of a large batch: with the GPUs back the
        // batch is large again, and samples are worth less.
        assert!(after.gpus > 15.0 && after.batch >= 2.0 * amid.batch, "{amid:?}, {after:?}");
        assert!(after.efficiency <= amid.efficiency - 0.05, "{amid:?}, {after:?}");
    }
}

#[test] // Gradients grow noisier as training goes on: a larger batch then wastes less.
fn late_in_training_the_batch_is_larger_on_the_same_gpus() {
    for settings in SETTINGS {
        let run = run(&Pollux { settings }, "imagenet", 20_000);
        let early = State::at(&run, JobId(0), 1_200);
        let [.., late] = before_amid_after(&run, 20_000);
        // Equally free: the whole cluster both times.
        assert!(early.gpus > 15.0 && late.gpus > 15.0, "{early:?}, {late:?}");
        assert!(late.batch_per_gpu() >= 1.5 * early.batch_per_gpu(), "{early:?}, {late:?}");
        // Were it not for the noise, a larger batch would be worth less for each sample, not more.
        assert!(late.efficiency >= early.efficiency + 0.1, "{early:?}, {late:?}");
    }
}

/// Pollux' allocations for jobs that keep their user's batch.
struct FixedBatch(Pollux);

impl Policy for FixedBatch {
    type Knows = Known;

    fn about(&self) -> About {
        About { name: "fixed-batch", adapts_batch: false, ..Policy::about(&self.0) }
    }

    fn plan(&self, snapshot: &Snapshot<Known>, terms: &Terms<'_>) -> Plan {
        Policy::plan(&self.0, snapshot, terms)
    }
}

#[test] // The control: the same allocations without the other half. GPUs still move, and the batch does not.
fn a_fixed_batch_follows_nothing() {
    let tuned = Pollux { settings: Settings::TUNED };
    let states @ [before, amid, _] = before_amid_after(&run(&FixedBatch(tuned), "yolov3", 5_400), 5_400);
    assert!(before.gpus > 15.0 && amid.gpus <= before.gpus / 4.0, "{before:?}, {amid:?}");
    assert!(states.iter().all(|state| (state.batch - 384.0).abs() < 0.5), "{states:?}");
    // At the same moment, on as few GPUs, its samples are worth far less than those of the job that adapts.
    let [_, adapted, _] = before_amid_after(&run(&tuned, "yolov3", 5_400), 5_400);
    assert!(adapted.efficiency >= amid.efficiency + 0.2, "{adapted:?}, {amid:?}");
}
