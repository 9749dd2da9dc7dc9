//! Dividing the GPUs of one node.

use super::Search;
use crate::solve::state::{Held, index};

/// A job that takes part in dividing a node.
#[derive(Clone, Copy)]
pub(super) struct Sharer {
    pub(super) job: u32,
    /// GPUs here now.
    pub(super) here: u32,
}

impl Search<'_> {
    /// Divides a node's GPUs among the jobs that are on it in the best way there is.
    pub(super) fn share(&mut self, node: usize) {
        let state = &self.state;
        let pool = state.problem.nodes[node].pool;
        let mut sharers = std::mem::take(&mut self.scratch.sharers);
        sharers.clear();
        let mut total = state.free[node];
        for &job in &state.tenants[node] {
            if state.is_movable(job as usize) {
                let here = state.held[job as usize].at.iter().find(|&&(at, _)| at as usize == node);
                let here = here.map_or(0, |&(_, gpus)| gpus);
                total += here;
                sharers.push(Sharer { job, here });
            }
        }
        self.units += 1;
        if !sharers.is_empty() && total as usize >= sharers.len() {
            self.divide(node, pool, total, &sharers);
        }
        self.scratch.sharers = sharers;
    }

    fn divide(&mut self, node: usize, pool: usize, total: u32, sharers: &[Sharer]) {
        let width = total as usize + 1;
        let mut worth = std::mem::take(&mut self.scratch.worth);
        worth.clear();
        let mut before = 0.0;
        for sharer in sharers {
            self.push_worth(&mut worth, node, pool, total, *sharer);
            before += self.state.held[sharer.job as usize].worth;
        }
        // best[g]: the most that the sharers so far make of at most g GPUs; each has at least one.
        let mut best = std::mem::take(&mut self.scratch.best);
        let mut choice = std::mem::take(&mut self.scratch.choice);
        best.clear();
        best.resize(width, 0.0);
        choice.clear();
        let rows = width * sharers.len();
        choice.resize(rows + sharers.len(), 0);
        for (turn, row) in worth.chunks(width).enumerate() {
            for gpus in (0..width).rev() {
                let mut most = f64::NEG_INFINITY;
                for own in 1..=gpus {
                    let sum = best[gpus - own] + row[own];
                    if sum > most {
                        most = sum;
                        choice[turn * width + gpus] = index(own);
                    }
                }
                best[gpus] = most;
            }
        }
        if best[width - 1] > before + 1e-12 * before.abs() {
            let mut gpus = total;
            for turn in (0..sharers.len()).rev() {
                let own = choice[turn * width + gpus as usize];
                choice[rows + turn] = own;
                gpus -= own;
            }
            self.apply_division(node, pool, sharers, &choice[rows..]);
        }
        (self.scratch.worth, self.scratch.best, self.scratch.choice) = (worth, best, choice);
    }

    /// What 0, 1, .. GPUs of this node would be worth to a job on it.
    fn push_worth(&self, worth: &mut Vec<f64>, node: usize, pool: usize, total: u32, sharer: Sharer) {
        let job = sharer.job as usize;
        let (held, table) = (&self.state.held[job], &self.state.problem.jobs[job]);
        let elsewhere = held.gpus - sharer.here;
        let most = sharer.here.saturating_add(self.state.allowed(job, pool));
        let kept = table.keep.as_ref().and_then(|keep| {
            let same = keep.at.len() == held.at.len()
                && keep
                    .at
                    .iter()
                    .zip(&held.at)
                    .all(|(old, new)| old.0 == new.0 as usize && (old.1 == new.1 || old.0 == node));
            let here = keep.at.iter().find(|&&(at, _)| at == node)?;
            same.then_some((here.1, keep.worth))
        });
        let may_change = held.at.iter().all(|&(at, _)| self.state.problem.nodes[at as usize].open);
        let most = if may_change { most } else { 0 };
        worth.push(f64::NEG_INFINITY);
        for gpus in 1..=total {
            let value = match kept {
                Some((here, kept)) if here == gpus => kept,
                _ if gpus > most => f64::NEG_INFINITY,
                _ => table
                    .options
                    .get(pool)
                    .map_or(f64::NEG_INFINITY, |options| options.worth(elsewhere + gpus, elsewhere > 0)),
            };
            worth.push(value);
        }
    }

    /// Makes a division true; if caps over several of the jobs forbid it, nothing changes.
    fn apply_division(&mut self, node: usize, pool: usize, sharers: &[Sharer], gpus: &[u32]) {
        let mut changed: Vec<(usize, Held)> = Vec::new();
        for (sharer, &own) in sharers.iter().zip(gpus) {
            if own != sharer.here {
                let job = sharer.job as usize;
                self.record(job);
                changed.push((job, self.state.held[job].clone()));
                self.state.clear(job);
            }
        }
        let mut fits = true;
        for (sharer, &own) in sharers.iter().zip(gpus).filter(|(sharer, own)| **own != sharer.here) {
            let job = sharer.job as usize;
            let Some((_, held)) = changed.iter().find(|(other, _)| *other == job) else { continue };
            let mut at = held.at.clone();
            for (there, count) in &mut at {
                if *there as usize == node {
                    *count = own;
                }
            }
            let total = at.iter().map(|&(_, count)| count).sum::<u32>();
            if total > self.state.allowed(job, pool) {
                fits = false;
                break;
            }
            let (kind, worth) = self.state.worth_at(job, pool, &at);
            self.state.put(job, kind, worth, &at);
        }
        if !fits {
            for (job, _) in &changed {
                self.state.clear(*job);
            }
            for (job, held) in changed {
                self.state.put(job, held.kind, held.worth, &held.at);
            }
        }
    }

    /// Offers a node's free GPUs to some of the jobs that span nodes.
    pub(super) fn lend(&mut self, node: usize) {
        let pool = self.state.problem.nodes[node].pool;
        if !self.state.may_spread_to(node) {
            return;
        }
        for _ in 0..3 {
            let free = self.state.free[node];
            if self.state.spreading.jobs.is_empty() || free == 0 {
                return;
            }
            self.units += 1;
            let spreading = &self.state.spreading.jobs;
            let job = spreading[self.random.below(spreading.len())] as usize;
            let held = &self.state.held[job];
            let unfit =
                |&(at, _): &(u32, u32)| at as usize == node || !self.state.problem.nodes[at as usize].open;
            if held.pool != pool || !self.state.is_movable(job) || held.at.iter().any(unfit) {
                continue;
            }
            let options = &self.state.problem.jobs[job].options[pool];
            let most = free.min(self.state.allowed(job, pool));
            let best = (1..=most).map(|extra| (options.worth(held.gpus + extra, true), extra));
            let best = best.max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((worth, extra)) = best
                && worth > held.worth
            {
                let mut at = held.at.clone();
                at.push((index(node), extra));
                at.sort_unstable();
                self.record(job);
                self.state.clear(job);
                let (kind, worth) = self.state.worth_at(job, pool, &at);
                self.state.put(job, kind, worth, &at);
            }
        }
    }
}
