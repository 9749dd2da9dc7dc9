//! The algorithm as the authors' artifact codes it: NSGA-II over fitness and utility, structured mutation, and
//! repair in favour of the least attained service.
//!
//! Semantics after petuum/adaptdl, branch `osdi21-artifact`, and its library pymoo 0.4; the code is ours.

use super::front::{Objectives, dominates, survivors};
use super::ground::Ground;
use super::herd::Herd;
use super::mutation::Mutation;
use super::rates::Rates;
use super::repair::Repair;
use super::{Found, Task};
use crate::plan::Stopped;
use crate::valuation::Valuation;
use pollux_model::Random;

/// Most GPUs of one job, hard-coded in the artifact.
pub(super) const MOST_GPUS: u32 = 64;

/// Most nodes of one job, hard-coded in the artifact.
pub(super) const MOST_NODES: usize = 16;

/// How often parents mate in one generation before fewer children have to do.
const MATING_TRIES: u32 = 101;

/// Parents exchange rows with this probability.
const CROSSOVER: f64 = 0.9;

/// One search.
struct Search<'a> {
    ground: &'a Ground,
    valuation: &'a Valuation<'a>,
    rates: Rates<'a>,
    mutation: Mutation<'a>,
    repair: Repair<'a>,
    random: Random,
    herd: Herd,
    weight: f64,
    /// By slot.
    objectives: Vec<Objectives>,
    fingerprints: Vec<u64>,
    crowding: Vec<f64>,
    /// Slots of the population, and how many of the first are on the front.
    living: Vec<usize>,
    n_front: usize,
    newcomers: Vec<usize>,
    /// Places in the population, in the order in which they are drawn for tournaments.
    deck: Vec<usize>,
    /// Whether a column is in use.
    used: Vec<u16>,
    units: u64,
}

/// Searches. `start` are the members of the last round's front; where there are none, the present allocation
/// is all there is to begin with.
pub(super) fn search(
    task: &Task<'_>,
    valuation: &Valuation<'_>,
    rates: Rates<'_>,
    start: &[Vec<u16>],
    random: Random,
) -> Found {
    let ground = task.ground;
    // Room for two children beyond those that are kept.
    let n_slots = 2 * task.population + 2;
    let mut search = Search {
        ground,
        valuation,
        rates,
        mutation: Mutation::new(ground),
        repair: Repair::new(ground),
        random,
        herd: Herd::new(n_slots, ground.current.len()),
        weight: valuation.jobs().iter().map(|job| job.weight).sum(),
        objectives: vec![[0.0; 2]; n_slots],
        fingerprints: vec![0; n_slots],
        crowding: vec![0.0; n_slots],
        living: Vec::with_capacity(n_slots),
        n_front: 0,
        newcomers: Vec::with_capacity(n_slots),
        deck: Vec::new(),
        used: vec![0; ground.width()],
        units: 0,
    };
    search.begin(start, task.population);
    // The first generation is the one that was there.
    let mut generation = 1;
    let stopped = loop {
        if let Some(stopped) = task.stop(generation, search.units) {
            break stopped;
        }
        search.breed(task.population);
        if search.newcomers.is_empty() {
            break Stopped::Done;
        }
        search.survive(task.population);
        generation += 1;
    };
    search.found(stopped)
}

impl Search<'_> {
    fn begin(&mut self, start: &[Vec<u16>], population: usize) {
        let ground = self.ground;
        for member in start.iter().take(population) {
            self.admit_new(member, population);
        }
        if start.is_empty() {
            self.admit_new(&ground.current, population);
        }
        self.survive(population);
    }

    fn admit_new(&mut self, member: &[u16], population: usize) {
        if let Some(slot) = self.herd.take() {
            self.herd.member_mut(slot).copy_from_slice(member);
            self.admit(slot, population);
        }
    }

    /// Parents mate until there are as many new children as members, or tries run out.
    fn breed(&mut self, population: usize) {
        for _ in 0..MATING_TRIES {
            let missing = population.saturating_sub(self.newcomers.len());
            if missing == 0 {
                break;
            }
            let n_matings = missing.div_ceil(2);
            self.deal(n_matings * 4);
            for mating in 0..n_matings {
                let drawn = &self.deck[mating * 4..mating * 4 + 4];
                let drawn = [drawn[0], drawn[1], drawn[2], drawn[3]].map(|place| self.living[place]);
                let first = self.tournament(drawn[0], drawn[1]);
                let second = self.tournament(drawn[2], drawn[3]);
                self.mate(first, second, population);
            }
        }
    }

    /// Fills the deck with one random order of the population after the other.
    fn deal(&mut self, n: usize) {
        self.deck.clear();
        while self.deck.len() < n {
            let start = self.deck.len();
            self.deck.extend(0..self.living.len());
            self.random.shuffle(&mut self.deck[start..]);
        }
    }

    /// The one that dominates; else the one with more room around it; else either.
    fn tournament(&mut self, a: usize, b: usize) -> usize {
        let (left, right) = (self.objectives[a], self.objectives[b]);
        if dominates(left, right) {
            a
        } else if dominates(right, left) {
            b
        } else if self.crowding[a] > self.crowding[b] {
            a
        } else if self.crowding[b] > self.crowding[a] || self.random.chance(0.5) {
            b
        } else {
            a
        }
    }

    /// Two children, which exchange the rows before one point.
    fn mate(&mut self, first: usize, second: usize, population: usize) {
        let n_rows = self.ground.rows.len();
        let point = if self.random.chance(CROSSOVER) { self.random.below(n_rows) } else { 0 };
        let (cut, end) = (point * self.ground.width(), self.herd.size());
        for (head, tail) in [(second, first), (first, second)] {
            let Some(child) = self.herd.take() else { return };
            self.herd.copy(head, child, 0..cut);
            self.herd.copy(tail, child, cut..end);
            self.mutation.mutate(self.herd.member_mut(child), &mut self.random);
            self.admit(child, population);
        }
    }

    /// Repairs a member and, unless it is there already or there is no room, judges it and lets it in.
    fn admit(&mut self, slot: usize, population: usize) {
        self.repair.in_order(self.herd.member_mut(slot), MOST_NODES, &mut self.random);
        let fingerprint = self.herd.fingerprint(slot);
        let is_same = |&other: &usize| {
            self.fingerprints[other] == fingerprint && self.herd.member(other) == self.herd.member(slot)
        };
        let is_known = self.living.iter().any(is_same) || self.newcomers.iter().any(is_same);
        if is_known || self.newcomers.len() >= population {
            self.herd.give_back(slot);
            return;
        }
        self.fingerprints[slot] = fingerprint;
        self.objectives[slot] = self.judge(slot);
        self.units += 1;
        self.newcomers.push(slot);
    }

    /// Minus fitness, and minus speed-ups per GPU of the nodes in use.
    fn judge(&mut self, slot: usize) -> Objectives {
        let member = self.herd.member(slot);
        self.used.fill(0);
        let (mut utility, mut speedups) = (0.0, 0.0);
        for row in 0..self.ground.rows.len() {
            let cells = self.ground.row(member, row);
            let worth = self.rates.of_row(row, cells);
            utility += worth.utility;
            speedups += worth.speedup;
            for (&cell, used) in cells.iter().zip(&mut self.used) {
                *used |= cell;
            }
        }
        let in_use = self.ground.columns.iter().zip(&self.used).filter(|(_, used)| **used > 0);
        let gpus: u32 = in_use.map(|(column, _)| u32::from(column.gpus)).sum();
        [-self.valuation.mean(utility, self.weight), -speedups / f64::from(gpus.max(1))]
    }

    fn survive(&mut self, population: usize) {
        let mut all = std::mem::take(&mut self.living);
        all.append(&mut self.newcomers);
        let points: Vec<Objectives> = all.iter().map(|&slot| self.objectives[slot]).collect();
        let survivors = survivors(&points, population, &mut self.random);
        let mut is_alive = vec![false; all.len()];
        for survivor in &survivors {
            is_alive[survivor.index] = true;
            self.crowding[all[survivor.index]] = survivor.crowding;
            self.living.push(all[survivor.index]);
        }
        self.n_front = survivors.iter().take_while(|survivor| survivor.rank == 0).count();
        for (slot, is_alive) in all.into_iter().zip(is_alive) {
            if !is_alive {
                self.herd.give_back(slot);
            }
        }
    }

    /// The front, the fittest first: the second objective decides nothing from here on (B8).
    fn found(mut self, stopped: Stopped) -> Found {
        let objectives = &self.objectives;
        let front = &mut self.living[..self.n_front];
        front.sort_by(|&a, &b| objectives[a][0].total_cmp(&objectives[b][0]));
        let members = front.iter().map(|&slot| self.herd.member(slot).to_vec()).collect();
        Found { members, units: self.units, stopped }
    }
}
