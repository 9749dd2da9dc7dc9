//! How a run went, job by job.

use pollux_model::Timestamp;

use crate::driver::RoundStats;
use crate::log::Log;

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The jobs, in the order of their submission.
    pub jobs: Vec<JobOutcome>,
    /// GPUs of the cluster.
    pub gpus: u32,
    /// The policy's rounds.
    pub rounds: RoundStats,
    /// What happened.
    pub log: Log,
}

/// How one job fared.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// Its name.
    pub name: String,
    /// What it trained.
    pub application: String,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When it was done; none if it never was.
    pub completed: Option<Timestamp>,
    /// Restarts after its first start.
    pub restarts: u32,
    /// GPU-seconds it held.
    pub gpu_secs: f64,
    /// The same, times its statistical efficiency; restarts count nothing.
    pub useful_gpu_secs: f64,
    /// Seconds it held GPUs.
    pub held_secs: f64,
    /// Seconds of these it was restarting.
    pub restart_secs: f64,
    /// How often it died: with a node, or on its way to its first step.
    pub failures: u32,
    /// GPU-seconds of training that it lost that way, and did again.
    pub redone_gpu_secs: f64,
    /// Completion time over that alone on its fair share of the cluster; none if it was never done.
    pub rho: Option<f64>,
}

impl JobOutcome {
    /// Seconds from submission to completion.
    pub fn jct_secs(&self) -> Option<f64> {
        Some((self.completed? - self.submitted).as_secs_f64())
    }
}

impl Run {
    /// Sets each job's finish-time fairness: its completion time over `alone_secs(job, gpus)` on the fair share
    /// `ceil(G / J)`, with `J` the mean number of jobs in the system while it was there.
    pub(crate) fn judge_fairness(&mut self, mut alone_secs: impl FnMut(usize, u32) -> Option<f64>) {
        let crowd = Crowd::of(&self.jobs);
        for index in 0..self.jobs.len() {
            let job = &self.jobs[index];
            let Some((completed, jct)) = job.completed.zip(job.jct_secs()) else { continue };
            let mean = crowd.mean(job.submitted.as_secs_f64(), completed.as_secs_f64()).max(1.0);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to all GPUs")]
            let share = (f64::from(self.gpus) / mean).ceil() as u32;
            self.jobs[index].rho = alone_secs(index, share.max(1)).map(|alone| jct / alone);
        }
    }
}

/// How many jobs were in the system, over time.
struct Crowd {
    /// From each moment on: time, jobs, and job-seconds until then.
    steps: Vec<(f64, f64, f64)>,
}

impl Crowd {
    fn of(jobs: &[JobOutcome]) -> Self {
        let mut changes: Vec<(f64, f64)> = Vec::new();
        for job in jobs {
            changes.push((job.submitted.as_secs_f64(), 1.0));
            changes.extend(job.completed.map(|at| (at.as_secs_f64(), -1.0)));
        }
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut steps: Vec<(f64, f64, f64)> = vec![(0.0, 0.0, 0.0)];
        for (at, change) in changes {
            let (from, present, sum) = steps[steps.len() - 1];
            steps.push((at, present + change, sum + present * (at - from)));
        }
        Self { steps }
    }

    fn job_secs_until(&self, at: f64) -> f64 {
        let after = self.steps.partition_point(|(from, ..)| *from <= at);
        let (from, present, sum) = self.steps[after.max(1) - 1];
        sum + present * (at - from)
    }

    fn mean(&self, from: f64, to: f64) -> f64 {
        if to > from { (self.job_secs_until(to) - self.job_secs_until(from)) / (to - from) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(submitted: u64, completed: u64) -> JobOutcome {
        JobOutcome {
            name: String::new(),
            application: String::new(),
            submitted: Timestamp::from_secs(submitted),
            completed: Some(Timestamp::from_secs(completed)),
            restarts: 0,
            gpu_secs: 0.0,
            useful_gpu_secs: 0.0,
            held_secs: 0.0,
            restart_secs: 0.0,
            failures: 0,
            redone_gpu_secs: 0.0,
            rho: None,
        }
    }

    #[test] // The first is alone for 10 s of its 40 and shares 30 s with the second: 1.75 jobs on average.
    fn a_fair_share_is_by_the_company_kept() {
        let run = |jobs| Run { jobs, gpus: 7, rounds: RoundStats::default(), log: Log::default() };
        let mut run = run(vec![job(0, 40), job(10, 50)]);
        let mut shares = Vec::new();
        run.judge_fairness(|_, gpus| {
            shares.push(gpus);
            Some(20.0)
        });
        assert_eq!(shares, [4, 4]);
        assert_eq!(run.jobs.iter().map(|job| job.rho).collect::<Vec<_>>(), [Some(2.0), Some(2.0)]);
    }
}
