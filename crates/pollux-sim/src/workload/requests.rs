//! How many GPUs, and which batch, the user of a cluster without Pollux asks for.

use std::iter::successors;

use super::philly::Class;

/// How long an application takes.
pub trait Runtimes {
    /// Its smallest batch, of all GPUs together.
    fn initial_batch(&self) -> u64;
    /// Its largest one.
    fn max_batch(&self) -> u64;
    /// The most GPUs it can use.
    fn max_gpus(&self) -> u32;
    /// Seconds to completion on so many GPUs, packed, at this batch; `None` if impossible.
    fn run_secs(&self, gpus: u32, batch: u64) -> Option<f64>;
}

/// What a user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// GPUs.
    pub gpus: u32,
    /// Batch, of all GPUs together.
    pub batch: u64,
}

/// The numbers of GPUs a user tries, as in the artifact.
const TRIED: [u32; 10] = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48];
/// A user does not wait longer.
const PATIENCE_SECS: f64 = 12.0 * 3_600.0;
/// Less would waste GPUs, more would waste time.
const EFFICIENCY: (f64, f64) = (0.5, 0.8);
/// The most GPUs of any Philly job.
const MOST_GPUS: u32 = 64;

/// What a user asks for who has tried everything: one of several, all equally good.
///
/// Those numbers of GPUs on which the best batch completes within 12 hours, and which use GPUs between half and 80 % as
/// well as the fewest GPUs it runs on: `t1 / (k * tk)`, usually against one GPU. If there is none, those fewest GPUs.
/// Batches are the initial one and its doubles. Empty if it runs on no number of GPUs.
pub fn tuned_choices(application: &dyn Runtimes) -> Vec<Request> {
    let mut runs = TRIED.iter().filter_map(|&gpus| best_run(application, gpus));
    let Some(base) = runs.next() else { return vec![] };
    let good = |run: &Run| {
        let efficiency = base.gpu_secs() / run.gpu_secs();
        run.secs < PATIENCE_SECS && EFFICIENCY.0 < efficiency && efficiency < EFFICIENCY.1
    };
    let choices: Vec<Request> = runs.filter(good).map(|run| run.request).collect();
    if choices.is_empty() { vec![base.request] } else { choices }
}

/// What a user asks for who has tried nothing: the batch grows with the GPUs.
///
/// Where the application cannot run on `gpus`, the nearest smaller number, or else the nearest larger one. `None` if it
/// runs on no number of GPUs.
pub fn untuned(application: &dyn Runtimes, gpus: u32) -> Option<Request> {
    let most = application.max_gpus().min(MOST_GPUS);
    let gpus = gpus.min(most);
    let batch =
        |gpus: u32| application.initial_batch().saturating_mul(gpus.into()).min(application.max_batch());
    let mut requests =
        (1..=gpus).rev().chain(gpus + 1..=most).map(|gpus| Request { gpus, batch: batch(gpus) });
    requests.find(|&request| run(application, request).is_some())
}

/// The batch that is fastest on so many GPUs, and seconds to completion with it.
///
/// Batches are the initial one and its doubles. Where the application cannot run on `gpus`, the nearest smaller number,
/// or else the nearest larger one. `None` if it runs on no number of GPUs.
pub fn fastest_near(application: &dyn Runtimes, gpus: u32) -> Option<(Request, f64)> {
    let most = application.max_gpus();
    let asked = gpus.min(most);
    let mut runs = (1..=asked).rev().chain(asked + 1..=most).filter_map(|gpus| best_run(application, gpus));
    runs.next().map(|run| (run.request, run.secs))
}

/// How large the application is: as the paper has it, or by GPU-hours on the fewest GPUs it runs on.
pub fn class(name: &str, application: &dyn Runtimes) -> Option<Class> {
    let measured = || {
        let base = TRIED.iter().find_map(|&gpus| best_run(application, gpus))?;
        Some(Class::of_gpu_hours(base.gpu_secs() / 3_600.0))
    };
    Class::of_paper(name).or_else(measured)
}

#[derive(Clone, Copy)]
struct Run {
    request: Request,
    secs: f64,
}

impl Run {
    fn gpu_secs(&self) -> f64 {
        f64::from(self.request.gpus) * self.secs
    }
}

/// The fastest run on so many GPUs, at the smaller batch where two are equal.
fn best_run(application: &dyn Runtimes, gpus: u32) -> Option<Run> {
    if gpus > application.max_gpus() {
        return None;
    }
    let batches = successors(Some(application.initial_batch()), |batch| batch.checked_mul(2))
        .take_while(|&batch| 0 < batch && batch <= application.max_batch());
    batches
        .filter_map(|batch| run(application, Request { gpus, batch }))
        .reduce(|best, next| if next.secs < best.secs { next } else { best })
}

fn run(application: &dyn Runtimes, request: Request) -> Option<Run> {
    let secs = application.run_secs(request.gpus, request.batch)?;
    (secs.is_finite() && secs > 0.0).then_some(Run { request, secs })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An application that takes `hours / gpus + fixed_hours`, and twice that with another batch than 100 for each GPU or
    /// the nearest double of 100 above.
    pub(in crate::workload) struct Toy {
        pub hours: f64,
        pub fixed_hours: f64,
        pub gpus: std::ops::RangeInclusive<u32>,
    }

    impl Runtimes for Toy {
        fn initial_batch(&self) -> u64 {
            100
        }
        fn max_batch(&self) -> u64 {
            1_000
        }
        fn max_gpus(&self) -> u32 {
            *self.gpus.end()
        }
        fn run_secs(&self, gpus: u32, batch: u64) -> Option<f64> {
            let best = (100 * u64::from(gpus.next_power_of_two())).min(800);
            let factor = if batch == best { 1.0 } else { 2.0 };
            let hours = self.hours / f64::from(gpus) + self.fixed_hours;
            self.gpus.contains(&gpus).then_some(3_600.0 * hours * factor)
        }
    }

    fn check_tuned(toy: &Toy, expected: &[(u32, u64)]) {
        let choices: Vec<_> = tuned_choices(toy).iter().map(|choice| (choice.gpus, choice.batch)).collect();
        assert_eq!(choices, expected);
    }

    #[test] // 9 h and 1 h: 10 GPU-hours on one GPU, 9 + k on k of them: 10/13 = 0.77 on 4, 10/21 = 0.48 on 12.
    fn users_ask_for_what_is_neither_slow_nor_wasteful() {
        check_tuned(&Toy { hours: 9.0, fixed_hours: 1.0, gpus: 1..=64 }, &[(4, 400), (6, 800), (8, 800)]);
        check_tuned(&Toy { hours: 9.0, fixed_hours: 1.0, gpus: 1..=7 }, &[(4, 400), (6, 800)]);
    }

    #[test] // 108 h and 4 h: 13 h on 12 GPUs, 8.5 h on 24 at 112/204 = 0.55, and 112/236 = 0.47 on 32.
    fn users_do_not_wait_for_ever() {
        let toy = Toy { hours: 108.0, fixed_hours: 4.0, gpus: 1..=64 };
        check_tuned(&toy, &[(16, 800), (24, 800)]);
    }

    #[test] // Nothing gained by a second GPU; linear; more than one GPU needed.
    fn otherwise_they_ask_for_as_few_as_possible() {
        check_tuned(&Toy { hours: 0.0, fixed_hours: 1.0, gpus: 1..=64 }, &[(1, 100)]);
        check_tuned(&Toy { hours: 1.0, fixed_hours: 0.0, gpus: 1..=64 }, &[(1, 100)]);
        check_tuned(&Toy { hours: 1.0, fixed_hours: 0.0, gpus: 3..=64 }, &[(4, 400)]);
        check_tuned(&Toy { hours: 1.0, fixed_hours: 0.0, gpus: 50..=64 }, &[]);
    }

    #[test] // 12 h on one GPU, 8 on 3, at the batch nearest to 100 a GPU: 4 h on 3. It runs on 2 to 16 GPUs.
    fn the_fastest_batch_is_taken_on_the_nearest_number() {
        let toy = Toy { hours: 12.0, fixed_hours: 0.0, gpus: 2..=16 };
        let check = |asked, gpus, batch, hours: f64| {
            assert_eq!(fastest_near(&toy, asked), Some((Request { gpus, batch }, 3_600.0 * hours)));
        };
        check(3, 3, 400, 4.0);
        check(1, 2, 200, 6.0);
        check(99, 16, 800, 0.75);
        assert_eq!(fastest_near(&Toy { hours: f64::NAN, ..toy }, 4), None);
    }

    fn check_untuned(asked: u32, expected: Option<(u32, u64)>) {
        let toy = Toy { hours: 1.0, fixed_hours: 0.0, gpus: 2..=16 };
        assert_eq!(untuned(&toy, asked).map(|request| (request.gpus, request.batch)), expected);
    }

    #[test]
    fn batches_grow_with_the_gpus_as_far_as_they_may() {
        check_untuned(4, Some((4, 400)));
        check_untuned(12, Some((12, 1_000)));
        check_untuned(32, Some((16, 1_000)));
        check_untuned(1, Some((2, 200)));
        let never = Toy { hours: f64::NAN, fixed_hours: 0.0, gpus: 1..=u32::MAX };
        assert_eq!(untuned(&never, 8), None);
    }

    #[test] // The paper's word counts for the applications it names.
    fn applications_have_a_class() {
        let toy = Toy { hours: 9.0, fixed_hours: 1.0, gpus: 1..=64 };
        assert_eq!(class("toy", &toy), Some(Class::Large));
        assert_eq!(class("ncf", &toy), Some(Class::Small));
        assert_eq!(class("toy", &Toy { gpus: 50..=64, ..toy }), None);
    }
}
