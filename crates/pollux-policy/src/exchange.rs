//! What one GPU more or fewer is worth at least: what a job and its neighbours can do among themselves.

use crate::problem::{Choice, Problem};
use crate::reason::Present;
use crate::solve::Hulls;

/// A plan, node by node.
pub(crate) struct Floor<'a> {
    hulls: &'a Hulls,
    choices: &'a [Choice],
    /// GPUs that nobody holds.
    free: Vec<u32>,
    /// Jobs by node, with their GPUs there.
    tenants: Vec<Vec<(usize, u32)>>,
    /// Jobs on several nodes, by node.
    spreads: Vec<u32>,
    /// For each pool, some open nodes with free GPUs that a job on several nodes may use.
    spare: Vec<Vec<usize>>,
    /// GPUs under each cap that are still to be had.
    pub(crate) cap_left: Vec<i64>,
}

/// As many nodes with spare GPUs are remembered; a job spans few of them.
const MOST_SPARE: usize = 64;

impl<'a> Floor<'a> {
    pub(crate) fn new(problem: &Problem, hulls: &'a Hulls, choices: &'a [Choice]) -> Self {
        let mut floor = Self {
            hulls,
            choices,
            free: problem.nodes.iter().map(|slot| slot.gpus).collect(),
            tenants: vec![Vec::new(); problem.nodes.len()],
            spreads: vec![0; problem.nodes.len()],
            spare: vec![Vec::new(); problem.n_pools],
            cap_left: problem.caps.iter().map(|cap| i64::from(cap.limit)).collect(),
        };
        for (job, choice) in choices.iter().enumerate() {
            let places = problem.places(job, choice);
            for &(node, gpus) in places {
                floor.free[node] = floor.free[node].saturating_sub(gpus);
                floor.tenants[node].push((job, gpus));
                floor.spreads[node] += u32::from(places.len() > 1);
                for &cap in hulls.caps(job, problem.nodes[node].pool) {
                    floor.cap_left[cap] -= i64::from(gpus);
                }
            }
        }
        for (node, slot) in problem.nodes.iter().enumerate() {
            let is_open = slot.open && (floor.spreads[node] == 0 || !problem.avoid_interference);
            if floor.free[node] > 0 && is_open && floor.spare[slot.pool].len() < MOST_SPARE {
                floor.spare[slot.pool].push(node);
            }
        }
        floor
    }

    /// By how much the sum changes if the job holds `gpus`, one more or fewer than now, and at most one neighbour
    /// changes with it. None if that cannot be.
    pub(crate) fn exchange(&self, problem: &Problem, present: &Present<'_>, gpus: u32) -> Option<f64> {
        let places = problem.places(present.job, present.choice);
        if places.iter().any(|&(node, _)| !problem.nodes[node].open) {
            return None;
        }
        let change = if gpus < present.gpus {
            with_fewer(problem, present, places)
        } else {
            self.with_more(problem, present, places)
        };
        Some(change).filter(|change| change.is_finite())
    }

    fn with_more(&self, problem: &Problem, present: &Present<'_>, places: &[(usize, u32)]) -> f64 {
        let options = &problem.jobs[present.job].options[present.pool];
        let in_place = options.worth(present.gpus + 1, present.is_spread) - present.worth;
        let spread = options.worth(present.gpus + 1, true) - present.worth;
        let mut best = f64::NEG_INFINITY;
        if self.may_grow(present.job, present.pool) {
            if places.iter().any(|&(node, _)| self.free[node] > 0) {
                best = best.max(in_place);
            }
            let may_spread = present.is_spread
                || places.iter().all(|&(node, _)| self.spreads[node] == 0 || !problem.avoid_interference);
            let elsewhere = |node: &usize| places.iter().all(|&(own, _)| own != *node);
            if may_spread && self.spare[present.pool].iter().any(elsewhere) {
                best = best.max(spread);
            }
        }
        for &(node, _) in places {
            for &(other, gpus) in &self.tenants[node] {
                if other != present.job && gpus > 1 {
                    best = best.max(in_place + self.giving(problem, present, other));
                }
            }
        }
        best
    }

    /// What a neighbour loses that gives one GPU.
    fn giving(&self, problem: &Problem, present: &Present<'_>, other: usize) -> f64 {
        let table = &problem.jobs[other];
        let places = problem.places(other, &self.choices[other]);
        let is_open = places.iter().all(|&(node, _)| problem.nodes[node].open);
        // Where no more may be had under a cap, only who is under the same ones can give.
        let may_take = || {
            self.may_grow(present.job, present.pool)
                || self.hulls.caps(present.job, present.pool) == self.hulls.caps(other, present.pool)
        };
        if table.nothing.is_none() || !is_open || !may_take() {
            return f64::NEG_INFINITY;
        }
        let gpus: u32 = places.iter().map(|&(_, gpus)| gpus).sum();
        let now = problem.worth(other, &self.choices[other]).unwrap_or(f64::INFINITY);
        table.options[present.pool].worth(gpus - 1, places.len() > 1) - now
    }

    fn may_grow(&self, job: usize, pool: usize) -> bool {
        self.hulls.caps(job, pool).iter().all(|&cap| self.cap_left[cap] > 0)
    }
}

fn with_fewer(problem: &Problem, present: &Present<'_>, places: &[(usize, u32)]) -> f64 {
    let options = &problem.jobs[present.job].options[present.pool];
    let left = present.gpus - 1;
    // Two nodes of which one has a single GPU can become one.
    let has_single = places.iter().any(|&(_, gpus)| gpus == 1);
    let may_be_one = places.len() == 1 || (places.len() == 2 && has_single);
    let may_be_several = places.len() > 2 || (places.len() == 2 && places.iter().any(|&(_, gpus)| gpus > 1));
    let on_one = if may_be_one { options.worth(left, false) } else { f64::NEG_INFINITY };
    let on_several = if may_be_several { options.worth(left, true) } else { f64::NEG_INFINITY };
    on_one.max(on_several) - present.worth
}
