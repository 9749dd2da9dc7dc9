//! The authors' genetic algorithm, as they describe it and as they code it: what Pollux's own solver is
//! compared with.

mod carried;
mod front;
mod ground;
mod herd;
mod mutation;
mod osdi21;
mod paper;
mod rates;
mod repair;

use std::sync::Arc;

use ground::Ground;
use rates::Rates;

use crate::plan::{Decision, JobPlan, Limit, Plan, Reason, Stopped, Work};
use crate::policy::{About, Policy, Terms};
use crate::settings::Settings;
use crate::snapshot::{Carried, Freedom, Learned, NodeState, Snapshot};
use crate::valuation::{Stake, Valuation};
use pollux_model::Random;

/// Allocations bred by mutation, crossover, selection and repair.
///
/// ```
/// use pollux_policy::{Genetic, Policy};
///
/// assert_eq!(Genetic::paper().about().name, "pollux-ga-paper");
/// let hasty = Genetic { generations: 10, ..Genetic::osdi21() };
/// assert_eq!(hasty.about().name, "pollux-ga-osdi21");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Genetic {
    /// Which of the two descriptions to follow.
    pub variant: Variant,
    /// Members kept from generation to generation.
    pub population: u32,
    /// Generations bred; the artifact counts the one it starts from.
    pub generations: u32,
    /// The objective. The artifact's scale is taken from the cluster, whatever stands here.
    pub settings: Settings,
}

/// Two descriptions of one algorithm, which differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The paper's: one objective, cells mutated blindly, rows mixed at random, random repair, and the whole
    /// population carried over by the ids of jobs and nodes. Priorities decide who starves last.
    Paper,
    /// The artifact's: NSGA-II with utility as a second objective, jobs with the least attained service first
    /// in every repair, and its oddities: the front carried over by position (B1), innocents cleared with
    /// interference (B2), fair share on one node (B3), first starts discounted (B6), starvation swamping the
    /// mean (B7), the second objective unused in the end (B8). It knows no priorities.
    Osdi21,
}

impl Genetic {
    /// As the paper describes it, with its population of 100 and 100 generations.
    pub const fn paper() -> Self {
        Self { variant: Variant::Paper, population: 100, generations: 100, settings: Settings::PAPER }
    }

    /// As the artifact codes it, with the same numbers.
    pub fn osdi21() -> Self {
        Self { variant: Variant::Osdi21, population: 100, generations: 100, settings: Settings::osdi21(4) }
    }

    fn settings(&self, snapshot: &Snapshot<Learned>) -> Settings {
        if self.variant == Variant::Paper {
            return self.settings;
        }
        let nodes = snapshot.cluster().nodes.iter().filter(|node| node.state != NodeState::Draining);
        let gpus: u64 = nodes.clone().map(|node| u64::from(node.gpus.saturating_sub(node.others))).sum();
        Settings { scale: nodes.count() as f64 / gpus.max(1) as f64, ..self.settings }
    }

    /// Members evaluated at most.
    fn budget(&self) -> u64 {
        let generations = match self.variant {
            Variant::Paper => u64::from(self.generations) + 1,
            Variant::Osdi21 => u64::from(self.generations),
        };
        u64::from(self.population.max(1)) * generations
    }

    fn search(&self, snapshot: &Snapshot<Learned>, task: &Task<'_>, valuation: &Valuation<'_>) -> Found {
        let ground = task.ground;
        let rates = Rates::new(ground, valuation, self.variant, self.settings.fair_share);
        let random = Random::seeded(task.terms.seed.0);
        let population = snapshot.carried().population.as_deref();
        match self.variant {
            Variant::Paper => {
                let start = population.map(|old| carried::by_id(old, ground, snapshot)).unwrap_or_default();
                let priorities: Vec<_> =
                    ground.rows.iter().map(|row| snapshot.jobs()[row.job].priority).collect();
                paper::search(task, rates, &start, &priorities, random)
            }
            Variant::Osdi21 => {
                let start =
                    population.map(|old| carried::by_position(old, ground, snapshot)).unwrap_or_default();
                osdi21::search(task, valuation, rates, &start, random)
            }
        }
    }
}

impl Policy for Genetic {
    type Knows = Learned;

    fn about(&self) -> About {
        match self.variant {
            Variant::Paper => About {
                name: "pollux-ga-paper",
                summary: "fair shares of goodput, bred by the genetic algorithm of the paper",
                source: "Qiao et al., OSDI 2021",
                adapts_batch: true,
            },
            Variant::Osdi21 => About {
                name: "pollux-ga-osdi21",
                summary: "fair shares of goodput, bred as the authors' artifact does it, oddities included",
                source: "petuum/adaptdl, branch osdi21",
                adapts_batch: true,
            },
        }
    }

    fn plan(&self, snapshot: &Snapshot<Learned>, terms: &Terms<'_>) -> Plan {
        let settings = self.settings(snapshot);
        let stakes: Vec<Stake> =
            snapshot.jobs().iter().map(|job| Stake { weight: job.weight, remaining_secs: None }).collect();
        let valuation = Valuation::new(snapshot, &settings, &stakes);
        let most_gpus = match self.variant {
            Variant::Paper => u32::MAX,
            Variant::Osdi21 => osdi21::MOST_GPUS,
        };
        let ground = Ground::new(snapshot, &valuation, self.variant, most_gpus, settings.avoid_interference);
        let task = Task {
            ground: &ground,
            population: self.population.max(1) as usize,
            generations: if terms.work.is_some() { u64::MAX } else { u64::from(self.generations) },
            units: terms.work.unwrap_or_else(|| self.budget()),
            terms,
        };
        let has_something_to_do = ground.n_pinned < ground.rows.len() && ground.width() > 0;
        let found = if has_something_to_do {
            self.search(snapshot, &task, &valuation)
        } else {
            Found { members: vec![ground.current.clone()], units: 0, stopped: Stopped::Done }
        };
        let mut rates = Rates::new(&ground, &valuation, self.variant, settings.fair_share);
        let best = found.members.first().unwrap_or(&ground.current);
        let members = found.members.iter().map(Vec::as_slice);
        let population = has_something_to_do.then(|| Arc::new(carried::store(&ground, snapshot, members)));
        Plan {
            jobs: answers(snapshot, &ground, &mut rates, best),
            certificate: None,
            work: Work { units: found.units, budget: task.units, stopped: found.stopped },
            carried: Carried { population, ..Carried::default() },
        }
    }
}

/// What both searches are told.
#[derive(Debug)]
struct Task<'a> {
    ground: &'a Ground,
    population: usize,
    /// Generations at most.
    generations: u64,
    /// Members to evaluate at most, give or take a generation.
    units: u64,
    terms: &'a Terms<'a>,
}

impl Task<'_> {
    /// Whether to stop before a generation, and why.
    fn stop(&self, generation: u64, units: u64) -> Option<Stopped> {
        if generation >= self.generations || units >= self.units {
            Some(Stopped::Budget)
        } else {
            self.terms.is_late().then_some(Stopped::Deadline)
        }
    }
}

/// What a search brings back.
#[derive(Debug)]
struct Found {
    /// What to carry over, the best first.
    members: Vec<Vec<u16>>,
    units: u64,
    stopped: Stopped,
}

/// One answer for each job, in the order of the snapshot.
fn answers(
    snapshot: &Snapshot<Learned>,
    ground: &Ground,
    rates: &mut Rates<'_>,
    best: &[u16],
) -> Vec<JobPlan> {
    let mut answers: Vec<(usize, JobPlan)> = Vec::with_capacity(ground.rows.len());
    for (index, row) in ground.rows.iter().enumerate() {
        let job = &snapshot.jobs()[row.job];
        let cells = ground.row(best, index);
        let allocation = ground.allocation(snapshot, cells);
        let decision = if allocation.is_empty() {
            Decision::Wait
        } else if allocation == job.holds {
            Decision::Keep
        } else {
            Decision::Place
        };
        let limit = match job.freedom {
            Freedom::Restarting => Limit::Restarting,
            _ if job.is_pinned() => Limit::Pinned,
            _ if allocation.is_empty() && !ground.is_possible(index) => Limit::Impossible,
            _ => Limit::Unstated,
        };
        let speedup = (!allocation.is_empty()).then(|| rates.of_row(index, cells).speedup);
        let reason = Reason { speedup, limit, ..Reason::default() };
        answers.push((row.job, JobPlan { job: job.id, decision, allocation, reason }));
    }
    answers.sort_by_key(|(job, _)| *job);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
