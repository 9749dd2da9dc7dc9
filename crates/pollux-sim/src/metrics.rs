//! How well a run went, in figures, and how far the figures of several runs lie apart.

use crate::bill::NodeBill;
use crate::outcome::{JobOutcome, Run};

/// The figures of a run; as `Metrics<Spread>`, those of several.
///
/// Times are of the jobs that completed. Of a run without jobs every figure is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics<T = f64> {
    /// Mean time from submission to completion, in seconds.
    pub avg_jct_secs: T,
    /// The median of these times.
    pub p50_jct_secs: T,
    /// The time that 99 % of the jobs stay below, between two jobs on the line between them (as numpy does).
    pub p99_jct_secs: T,
    /// Seconds from time 0 of the workload to the last completion.
    pub makespan_secs: T,
    /// Restarts of all jobs; first starts do not count.
    pub restarts: T,
    /// Restarts over jobs.
    pub restarts_per_job: T,
    /// Minutes that jobs held GPUs, over starts, first ones included: how long an allocation lasts.
    pub minutes_between_reallocations: T,
    /// The part of the time jobs held GPUs in which they were starting or restarting, and did not train.
    pub lost_share: T,
    /// GPU-seconds held by all jobs.
    pub gpu_secs: T,
    /// GPU-seconds held over those there were: all GPUs until the makespan.
    pub utilisation: T,
    /// The same with each GPU-second counted as its job's statistical efficiency then; restarts count nothing.
    pub useful_share: T,
    /// The worst finish-time fairness: completion time over that alone on a fair share of the cluster.
    pub worst_rho: T,
    /// The part of the jobs whose finish-time fairness is above 1, which were better off alone.
    pub unfair_share: T,
    /// Plans made.
    pub rounds: T,
    /// The mean gap of plans to the bound they certify; none if the policy certifies nothing.
    pub mean_gap: Option<T>,
    /// The worst of these gaps.
    pub worst_gap: Option<T>,
    /// How often jobs died: with a node, or on their way to their first step.
    pub failures: T,
    /// GPU-seconds of training that were lost that way, and done again.
    pub redone_gpu_secs: T,
    /// What rented nodes cost; none if none are.
    pub cost: Option<T>,
    /// Hours of rented nodes.
    pub node_hours: Option<T>,
}

/// How many figures there are.
const N_FIGURES: usize = 20;

impl Metrics {
    /// The figures of a run.
    pub fn of(run: &Run) -> Self {
        let jobs = &run.jobs;
        let sum = |value: fn(&JobOutcome) -> f64| jobs.iter().map(value).sum::<f64>() + 0.0;
        let mut jcts: Vec<f64> = jobs.iter().filter_map(JobOutcome::jct_secs).collect();
        jcts.sort_by(f64::total_cmp);
        let ends = jobs.iter().filter_map(|job| job.completed);
        let makespan_secs = ends.max().map_or(0.0, pollux_model::Timestamp::as_secs_f64);
        let rhos: Vec<f64> = jobs.iter().filter_map(|job| job.rho).collect();
        let restarts = sum(|job| job.restarts.into());
        let starts = sum(|job| if job.held_secs > 0.0 { f64::from(job.restarts) + 1.0 } else { 0.0 });
        let held_secs = sum(|job| job.held_secs);
        let gpu_secs = sum(|job| job.gpu_secs);
        let bill = Some(&run.log.bill).filter(|bill| !bill.is_empty());
        let all_gpu_secs = bill.map_or(f64::from(run.gpus) * makespan_secs, NodeBill::gpu_secs);
        let rounds = &run.rounds;
        let certified = rounds.n_certified > 0;
        Self {
            avg_jct_secs: ratio(jcts.iter().sum(), jcts.len() as f64),
            p50_jct_secs: percentile(&jcts, 0.5),
            p99_jct_secs: percentile(&jcts, 0.99),
            makespan_secs,
            restarts,
            restarts_per_job: ratio(restarts, jobs.len() as f64),
            minutes_between_reallocations: ratio(held_secs / 60.0, starts),
            lost_share: ratio(sum(|job| job.restart_secs), held_secs),
            gpu_secs,
            utilisation: ratio(gpu_secs, all_gpu_secs),
            useful_share: ratio(sum(|job| job.useful_gpu_secs), all_gpu_secs),
            worst_rho: rhos.iter().copied().fold(0.0, f64::max),
            unfair_share: ratio(rhos.iter().filter(|rho| **rho > 1.0).count() as f64, rhos.len() as f64),
            rounds: rounds.n_rounds as f64,
            mean_gap: certified.then(|| rounds.sum_gaps / rounds.n_certified as f64),
            worst_gap: certified.then_some(rounds.worst_gap),
            failures: sum(|job| job.failures.into()),
            redone_gpu_secs: sum(|job| job.redone_gpu_secs),
            cost: bill.map(NodeBill::cost),
            node_hours: bill.map(NodeBill::node_hours),
        }
    }

    /// The mean of each figure over runs; one that some run lacks is that of the others.
    pub fn mean(runs: &[Self]) -> Self {
        Metrics::spread(runs).map(|spread| spread.mean)
    }
}

impl Metrics<Spread> {
    /// How far each figure lies apart over runs.
    pub fn spread(runs: &[Metrics]) -> Self {
        let of = |value: fn(&Metrics) -> f64| Spread::of(runs.iter().map(value));
        let some = |value: fn(&Metrics) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(value).collect();
            (!values.is_empty()).then(|| Spread::of(values))
        };
        Self {
            avg_jct_secs: of(|run| run.avg_jct_secs),
            p50_jct_secs: of(|run| run.p50_jct_secs),
            p99_jct_secs: of(|run| run.p99_jct_secs),
            makespan_secs: of(|run| run.makespan_secs),
            restarts: of(|run| run.restarts),
            restarts_per_job: of(|run| run.restarts_per_job),
            minutes_between_reallocations: of(|run| run.minutes_between_reallocations),
            lost_share: of(|run| run.lost_share),
            gpu_secs: of(|run| run.gpu_secs),
            utilisation: of(|run| run.utilisation),
            useful_share: of(|run| run.useful_share),
            worst_rho: of(|run| run.worst_rho),
            unfair_share: of(|run| run.unfair_share),
            rounds: of(|run| run.rounds),
            mean_gap: some(|run| run.mean_gap),
            worst_gap: some(|run| run.worst_gap),
            failures: of(|run| run.failures),
            redone_gpu_secs: of(|run| run.redone_gpu_secs),
            cost: some(|run| run.cost),
            node_hours: some(|run| run.node_hours),
        }
    }
}

impl<T: Copy> Metrics<T> {
    /// The figures by the names they have in files, in the order they stand there.
    pub fn named(&self) -> [(&'static str, Option<T>); N_FIGURES] {
        [
            ("avg_jct_s", Some(self.avg_jct_secs)),
            ("p50_jct_s", Some(self.p50_jct_secs)),
            ("p99_jct_s", Some(self.p99_jct_secs)),
            ("makespan_s", Some(self.makespan_secs)),
            ("restarts", Some(self.restarts)),
            ("restarts_per_job", Some(self.restarts_per_job)),
            ("minutes_between_reallocations", Some(self.minutes_between_reallocations)),
            ("lost_share", Some(self.lost_share)),
            ("gpu_seconds", Some(self.gpu_secs)),
            ("utilisation", Some(self.utilisation)),
            ("useful_share", Some(self.useful_share)),
            ("worst_rho", Some(self.worst_rho)),
            ("unfair_share", Some(self.unfair_share)),
            ("rounds", Some(self.rounds)),
            ("mean_gap", self.mean_gap),
            ("worst_gap", self.worst_gap),
            ("failures", Some(self.failures)),
            ("redone_gpu_seconds", Some(self.redone_gpu_secs)),
            ("cost", self.cost),
            ("node_hours", self.node_hours),
        ]
    }

    /// Each figure turned into something else.
    fn map<U>(self, change: impl Fn(T) -> U) -> Metrics<U> {
        Metrics {
            avg_jct_secs: change(self.avg_jct_secs),
            p50_jct_secs: change(self.p50_jct_secs),
            p99_jct_secs: change(self.p99_jct_secs),
            makespan_secs: change(self.makespan_secs),
            restarts: change(self.restarts),
            restarts_per_job: change(self.restarts_per_job),
            minutes_between_reallocations: change(self.minutes_between_reallocations),
            lost_share: change(self.lost_share),
            gpu_secs: change(self.gpu_secs),
            utilisation: change(self.utilisation),
            useful_share: change(self.useful_share),
            worst_rho: change(self.worst_rho),
            unfair_share: change(self.unfair_share),
            rounds: change(self.rounds),
            mean_gap: self.mean_gap.map(&change),
            worst_gap: self.worst_gap.map(&change),
            failures: change(self.failures),
            redone_gpu_secs: change(self.redone_gpu_secs),
            cost: self.cost.map(&change),
            node_hours: self.node_hours.map(&change),
        }
    }
}

/// How far values lie apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation, of a sample: over one less than there are; 0 of a single one.
    pub sd: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of these values; all 0 if there are none.
    ///
    /// ```
    /// use pollux_sim::Spread;
    ///
    /// let spread = Spread::of([4.0, 6.0, 8.0]);
    /// assert_eq!(spread, Spread { mean: 6.0, sd: 2.0, min: 4.0, max: 8.0 });
    /// ```
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.into_iter().collect();
        let n = values.len() as f64;
        if values.is_empty() {
            return Self::default();
        }
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Self {
            mean,
            sd: libm::sqrt(squares / (n - 1.0).max(1.0)),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The value that a part of the sorted values stays below; between two of them on the line between them.
fn percentile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = part * last as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a position in the list")]
    let below = (place as usize).min(last);
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    low + (high - low) * (place - below as f64)
}

/// A part of a whole; nothing of nothing is 0.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use pollux_model::Timestamp;

    use super::*;
    use crate::{Log, RoundStats};

    /// A job that held 2 GPUs for 600 s, 60 of them restarting once, and used the others half as well.
    fn job(submitted: u64, completed: u64, rho: f64) -> JobOutcome {
        JobOutcome {
            name: String::new(),
            application: String::new(),
            submitted: Timestamp::from_secs(submitted),
            completed: Some(Timestamp::from_secs(completed)),
            restarts: 1,
            gpu_secs: 1_200.0,
            useful_gpu_secs: 540.0,
            held_secs: 600.0,
            restart_secs: 60.0,
            failures: 2,
            redone_gpu_secs: 40.0,
            rho: Some(rho),
        }
    }

    fn run(jobs: Vec<JobOutcome>) -> Run {
        let rounds = RoundStats { n_rounds: 5, sum_gaps: 0.06, worst_gap: 0.05, n_certified: 3 };
        Run { jobs, gpus: 4, rounds, log: Log::default() }
    }

    #[test] // Times of 100, 200 and 600 s; 4 GPUs for 1000 s are 4000 GPU-seconds.
    fn figures_are_those_of_the_jobs() {
        let metrics = Metrics::of(&run(vec![job(0, 100, 0.5), job(0, 200, 1.0), job(400, 1_000, 1.5)]));
        assert_eq!(
            (metrics.avg_jct_secs, metrics.p50_jct_secs, metrics.makespan_secs),
            (300.0, 200.0, 1_000.0)
        );
        assert!((metrics.p99_jct_secs - 592.0).abs() < 1e-9); // 0.98 of the way from 200 to 600
        assert_eq!((metrics.restarts, metrics.restarts_per_job), (3.0, 1.0));
        // 30 minutes, 6 starts
        assert_eq!((metrics.minutes_between_reallocations, metrics.worst_rho), (5.0, 1.5));
        assert!((metrics.lost_share - 0.1).abs() < 1e-12);
        assert_eq!((metrics.gpu_secs, metrics.utilisation, metrics.useful_share), (3_600.0, 0.9, 0.405));
        assert!((metrics.unfair_share - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!((metrics.rounds, metrics.worst_gap), (5.0, Some(0.05)));
        assert_eq!((metrics.failures, metrics.redone_gpu_secs), (6.0, 120.0));
        assert!((metrics.mean_gap.unwrap() - 0.02).abs() < 1e-12);
    }

    #[test]
    fn who_never_ran_has_no_start_and_no_time() {
        let idle = JobOutcome {
            completed: None,
            restarts: 0,
            gpu_secs: 0.0,
            useful_gpu_secs: 0.0,
            held_secs: 0.0,
            restart_secs: 0.0,
            rho: None,
            ..job(0, 0, 0.0)
        };
        let metrics = Metrics::of(&run(vec![job(0, 100, 0.5), idle]));
        assert_eq!((metrics.avg_jct_secs, metrics.restarts_per_job), (100.0, 0.5));
        assert_eq!((metrics.minutes_between_reallocations, metrics.unfair_share), (5.0, 0.0));
    }

    #[test]
    fn nothing_is_nothing() {
        let nothing = Run { jobs: vec![], gpus: 4, rounds: RoundStats::default(), log: Log::default() };
        for (name, value) in Metrics::of(&nothing).named() {
            let may_lack = name.ends_with("_gap") || ["cost", "node_hours"].contains(&name);
            let expected = if may_lack { None } else { Some(0.0) };
            assert_eq!(value, expected, "{name}");
        }
    }

    #[test]
    fn figures_of_several_runs_are_taken_one_by_one() {
        let of = |secs, gap| Metrics { mean_gap: gap, ..Metrics::of(&run(vec![job(0, secs, 1.0)])) };
        let runs = [of(100, Some(0.5)), of(300, None)];
        let spread = Metrics::spread(&runs);
        assert_eq!(
            (spread.avg_jct_secs.mean, spread.avg_jct_secs.max, spread.gpu_secs.sd),
            (200.0, 300.0, 0.0)
        );
        assert_eq!(spread.mean_gap, Some(Spread::of([0.5])));
        assert_eq!(Spread::of([Metrics::mean(&runs).makespan_secs]), Spread::of([200.0]));
    }

    fn check_percentile(values: &[f64], part: f64, expected: f64) {
        assert!((percentile(values, part) - expected).abs() < 1e-12, "{values:?}");
    }

    #[test] // As numpy.percentile has it.
    fn percentiles_lie_on_lines() {
        check_percentile(&[], 0.5, 0.0);
        check_percentile(&[7.0], 0.99, 7.0);
        check_percentile(&[1.0, 2.0], 0.5, 1.5);
        check_percentile(&[0.0, 100.0], 0.99, 99.0);
        check_percentile(&[1.0, 2.0, 3.0], 1.0, 3.0);
    }
}
