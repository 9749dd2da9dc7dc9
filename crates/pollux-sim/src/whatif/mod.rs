//! What would change, and for whom: the same jobs in two or more worlds.
//!
//! | question | module |
//! | --- | --- |
//! | what is compared? | [`Variant`], the first of which is how things are |
//! | what changed? | [`Answer`] |
//! | as a page | `page` |

mod page;

use std::collections::{BTreeMap, BTreeSet};

use pollux_api::parse_policy;

use crate::campaign::{Campaign, CampaignError, Contender, RunFailed, Source, World};
use crate::metrics::{Metrics, Spread};
use crate::reproduce::student_t;

pub use page::page;

/// A world with its policy and its jobs.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What it is called by.
    pub name: String,
    /// The policy as it is written.
    pub policy: String,
    /// Where jobs come from.
    pub source: Source,
    /// Where they run.
    pub world: World,
}

/// What became of the jobs of a variant.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The variant's name.
    pub name: String,
    /// The figures of each seed.
    pub runs: Vec<Metrics>,
    /// Whether jobs are told apart by their groups; by their applications otherwise.
    pub by_group: bool,
    /// Completion times by seed and name of the job, with its group or application.
    jobs: BTreeMap<(u64, String), (String, f64)>,
}

/// How a figure changed: the mean of its ratio over seeds, and half the width of the 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// New over old.
    pub mean: f64,
    /// Infinite for a single seed.
    pub half_width: f64,
}

/// How the jobs of a group or an application, or all of them, fare in another world.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// The group, or the application where there are no groups; none for all jobs.
    pub of: Option<String>,
    /// Jobs of the base, over all seeds.
    pub n_jobs: usize,
    /// Mean completion time before and after, in seconds.
    pub jct_secs: [f64; 2],
    /// Parts of the jobs that are done more than 5 % sooner, and more than 5 % later; none where jobs are not the same.
    pub sooner_later: Option<[f64; 2]>,
}

/// A job, and how much longer it takes: new over old.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Its name.
    pub job: String,
    /// The seed of its workload.
    pub seed: u64,
    /// Completion time before and after, in seconds.
    pub jct_secs: [f64; 2],
}

/// A question that cannot be answered.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WhatifError {
    /// A policy that does not exist.
    #[error("{variant}: policy `{policy}`: {why}")]
    Policy {
        /// Of which variant.
        variant: String,
        /// The policy.
        policy: String,
        /// Why.
        why: String,
    },
    /// Runs that cannot be planned.
    #[error("{0}: {1}")]
    Campaign(String, CampaignError),
    /// A run that failed.
    #[error("{0}: {1}")]
    Run(String, Box<RunFailed>),
}

/// What jobs without a group are called by where others have one.
const NO_GROUP: &str = "(no group)";

/// A change of less than this part of the time counts as none.
const NOTICED: f64 = 0.05;

/// The groups that jobs of a source name; only files have any.
pub fn groups(source: &Source) -> BTreeSet<&str> {
    match source {
        Source::Fixed(workload) => workload.jobs.iter().filter_map(|job| job.group.as_deref()).collect(),
        Source::Generated(_) | Source::Traced(_) => BTreeSet::new(),
    }
}

/// Runs every variant with every seed. Who gains and loses is told by group where all variants have groups. `progress` is told the number of variants that are done.
pub fn ask(
    variants: &[Variant],
    seeds: &[u64],
    n_threads: usize,
    mut progress: impl FnMut(usize),
) -> Result<Vec<Answer>, WhatifError> {
    let mut answers = Vec::with_capacity(variants.len());
    let by_group = variants.iter().all(|variant| !groups(&variant.source).is_empty());
    for variant in variants {
        let name = || variant.name.clone();
        let policy = parse_policy(&variant.policy).map_err(|error| WhatifError::Policy {
            variant: name(),
            policy: variant.policy.clone(),
            why: error.to_string(),
        })?;
        let contender = Contender { label: variant.policy.clone(), policy };
        let sources = std::slice::from_ref(&variant.source);
        let campaign = Campaign::new(vec![contender], sources, seeds, variant.world.clone());
        let campaign = campaign.map_err(|error| WhatifError::Campaign(name(), error))?;
        let results = campaign.execute(
            n_threads,
            |_| {},
            |cell, run| {
                let jobs = run.jobs.iter().zip(&cell.jobs.jobs);
                let told = jobs.filter_map(|(job, submission)| {
                    let group = || submission.group.clone().unwrap_or_else(|| NO_GROUP.to_owned());
                    let of = if by_group { group() } else { job.application.clone() };
                    Some((job.name.clone(), of, job.jct_secs()?))
                });
                told.collect::<Vec<_>>()
            },
        );
        let results = results.map_err(|error| WhatifError::Run(name(), Box::new(error)))?;
        let mut answer = Answer { name: name(), runs: Vec::new(), by_group, jobs: BTreeMap::new() };
        for (record, jobs) in results {
            answer.runs.push(record.metrics);
            let jobs = jobs.into_iter();
            answer.jobs.extend(jobs.map(|(job, of, secs)| ((record.seed, job), (of, secs))));
        }
        answers.push(answer);
        progress(answers.len());
    }
    Ok(answers)
}

impl Answer {
    /// A figure's spread over seeds.
    pub fn spread(&self, figure: impl Fn(&Metrics) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(figure))
    }

    /// How a figure changed against another answer.
    pub fn against(&self, base: &Self, figure: impl Fn(&Metrics) -> f64) -> Ratio {
        let pairs = self.runs.iter().zip(&base.runs).filter(|(_, base)| figure(base) > 0.0);
        let ratios: Vec<f64> = pairs.map(|(new, old)| figure(new) / figure(old)).collect();
        let n = ratios.len();
        let Spread { mean, sd, .. } = Spread::of(ratios);
        let half_width = if n > 1 { student_t(n) * sd / libm::sqrt(n as f64) } else { f64::INFINITY };
        Ratio { mean, half_width }
    }

    /// Whether both are about the very same jobs.
    pub fn has_the_jobs_of(&self, base: &Self) -> bool {
        self.jobs.keys().eq(base.jobs.keys())
    }

    /// Who gains and who loses against another answer: all jobs first, then by group or application.
    pub fn shifts(&self, base: &Self) -> Vec<Shift> {
        let names: BTreeSet<&String> = base.jobs.values().map(|(of, _)| of).collect();
        let names = std::iter::once(None).chain(names.into_iter().map(Some));
        names.map(|of| self.shift(base, of)).collect()
    }

    fn shift(&self, base: &Self, wanted: Option<&String>) -> Shift {
        let is_in = |of: &String| wanted.is_none_or(|wanted| wanted == of);
        let mean = |answer: &Self| {
            Spread::of(answer.jobs.values().filter(|(of, _)| is_in(of)).map(|(_, secs)| *secs)).mean
        };
        let same = self.has_the_jobs_of(base);
        let ratios = || {
            let pairs = base.jobs.iter().filter(|(_, (of, _))| is_in(of));
            pairs.filter_map(|(key, (_, before))| Some(self.jobs.get(key)?.1 / before.max(1e-9)))
        };
        let part = |is_so: fn(f64) -> bool| {
            ratios().filter(|ratio| is_so(*ratio)).count() as f64 / ratios().count().max(1) as f64
        };
        Shift {
            of: wanted.cloned(),
            n_jobs: base.jobs.values().filter(|(of, _)| is_in(of)).count(),
            jct_secs: [mean(base), mean(self)],
            sooner_later: same
                .then(|| [part(|ratio| ratio < 1.0 - NOTICED), part(|ratio| ratio > 1.0 + NOTICED)]),
        }
    }

    /// The jobs that lose most time, at most so many of them, and only those that notice.
    pub fn losers(&self, base: &Self, most: usize) -> Vec<Moved> {
        let mut moved: Vec<Moved> = Vec::new();
        for ((seed, job), (_, before)) in &base.jobs {
            let Some((_, after)) = self.jobs.get(&(*seed, job.clone())) else { continue };
            if *after > before * (1.0 + NOTICED) {
                moved.push(Moved { job: job.clone(), seed: *seed, jct_secs: [*before, *after] });
            }
        }
        let lost = |moved: &Moved| moved.jct_secs[1] - moved.jct_secs[0];
        moved.sort_by(|a, b| lost(b).total_cmp(&lost(a)));
        moved.truncate(most);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Log, RoundStats, Run};

    /// One seed's jobs by name, application and completion time.
    fn answer(name: &str, jobs: &[(&str, &str, f64)]) -> Answer {
        let run = Run { jobs: vec![], gpus: 4, rounds: RoundStats::default(), log: Log::default() };
        let mean = Spread::of(jobs.iter().map(|job| job.2)).mean;
        let jobs = jobs.iter().map(|(job, of, secs)| ((1, (*job).to_owned()), ((*of).to_owned(), *secs)));
        let runs = vec![Metrics { avg_jct_secs: mean, ..Metrics::of(&run) }];
        Answer { name: name.to_owned(), runs, by_group: false, jobs: jobs.collect() }
    }

    #[test] // Of two bert jobs one is twice as fast and one the same; ncf takes half as long again.
    fn who_gains_and_who_loses_is_said() {
        let base = answer("base", &[("a", "bert", 100.0), ("b", "bert", 200.0), ("c", "ncf", 60.0)]);
        let other = answer("other", &[("a", "bert", 50.0), ("b", "bert", 202.0), ("c", "ncf", 90.0)]);
        let shifts = other.shifts(&base);
        let seen: Vec<_> =
            shifts.iter().map(|shift| (shift.n_jobs, shift.jct_secs, shift.sooner_later)).collect();
        assert_eq!(seen[0], (3, [120.0, 114.0], Some([1.0 / 3.0, 1.0 / 3.0])));
        assert_eq!(seen[1], (2, [150.0, 126.0], Some([0.5, 0.0])));
        assert_eq!(seen[2], (1, [60.0, 90.0], Some([0.0, 1.0])));
        let losers: Vec<String> = other.losers(&base, 5).into_iter().map(|moved| moved.job).collect();
        assert_eq!(losers, ["c"]);
        assert!((other.against(&base, |run| run.avg_jct_secs).mean - 0.95).abs() < 1e-12);
    }

    #[test]
    fn no_change_is_no_change() {
        let base = answer("base", &[("a", "bert", 100.0)]);
        let shift = &base.shifts(&base)[0];
        assert_eq!((shift.jct_secs, shift.sooner_later), ([100.0, 100.0], Some([0.0, 0.0])));
        assert!(base.losers(&base, 5).is_empty());
    }

    #[test]
    fn other_jobs_cannot_be_compared_one_by_one() {
        let [few, many] = [&[("a", "bert", 100.0)][..], &[("a", "bert", 90.0), ("b", "bert", 10.0)][..]];
        let shift = &answer("more", many).shifts(&answer("base", few))[0];
        assert_eq!((shift.jct_secs, shift.sooner_later), ([100.0, 50.0], None));
    }
}
