//! What is kept of a run until the page is made.

use crate::campaign::Cell;
use crate::outcome::{JobOutcome, Run};

/// What a page needs of a run: times and fairness of its jobs, and of some runs everything.
#[derive(Clone, Debug)]
pub struct Digest {
    /// The policy's label.
    pub policy: String,
    /// The workload's label.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// Jobs that were never done.
    pub n_unfinished: usize,
    /// Completion times in seconds.
    pub jct_secs: Vec<f64>,
    /// Finish-time fairness of the jobs that have one.
    pub rhos: Vec<f64>,
    /// The whole run, where it is to be shown in detail.
    pub run: Option<Box<Run>>,
}

impl Digest {
    /// Of a run; `in_detail` keeps all of it, which is meant for one run of each policy.
    pub fn of(cell: &Cell<'_>, run: &Run, in_detail: bool) -> Self {
        let jct_secs: Vec<f64> = run.jobs.iter().filter_map(JobOutcome::jct_secs).collect();
        Self {
            policy: cell.policy.to_owned(),
            workload: cell.workload.to_owned(),
            seed: cell.seed,
            n_unfinished: run.jobs.len() - jct_secs.len(),
            jct_secs,
            rhos: run.jobs.iter().filter_map(|job| job.rho).collect(),
            run: in_detail.then(|| Box::new(run.clone())),
        }
    }
}

/// The policies, in the order in which they first appear.
pub(super) fn policies(digests: &[Digest]) -> Vec<&str> {
    let mut policies: Vec<&str> = Vec::new();
    for digest in digests {
        if !policies.contains(&digest.policy.as_str()) {
            policies.push(&digest.policy);
        }
    }
    policies
}

/// The first run of each policy that was kept whole, by policy.
pub(super) fn detailed(digests: &[Digest]) -> Vec<(&Digest, &Run)> {
    let of = |policy: &str| {
        let mut own = digests.iter().filter(|digest| digest.policy == policy);
        own.find_map(|digest| Some((digest, digest.run.as_deref()?)))
    };
    policies(digests).into_iter().filter_map(of).collect()
}
