//! The algorithm as the paper describes it (section 4.2): one objective, blind mutation, random repair.

use std::cmp::Ordering;

use super::ground::{Ground, count};
use super::herd::Herd;
use super::rates::Rates;
use super::repair::Repair;
use super::{Found, Task};
use crate::plan::Starved;
use crate::snapshot::Priority;
use pollux_model::Random;

/// How good a member is. Where jobs starve the paper's mean is zero whatever the others do, so the number of
/// starved jobs comes first, as everywhere in this crate.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    starved: Starved,
    sum: f64,
}

impl Score {
    /// The better one first.
    fn order(&self, other: &Self) -> Ordering {
        self.starved.cmp(&other.starved).then(other.sum.total_cmp(&self.sum))
    }
}

/// One search.
struct Search<'a> {
    ground: &'a Ground,
    rates: Rates<'a>,
    repair: Repair<'a>,
    priorities: &'a [Priority],
    random: Random,
    herd: Herd,
    /// By slot.
    scores: Vec<Score>,
    /// Slots of the population, the best first.
    living: Vec<usize>,
    newcomers: Vec<usize>,
    units: u64,
}

/// Searches; `start` are the members of the last round, the best first, and `priorities` those of the rows.
pub(super) fn search(
    task: &Task<'_>,
    rates: Rates<'_>,
    start: &[Vec<u16>],
    priorities: &[Priority],
    random: Random,
) -> Found {
    let ground = task.ground;
    let n_slots = 2 * task.population;
    let mut search = Search {
        ground,
        rates,
        repair: Repair::new(ground),
        priorities,
        random,
        herd: Herd::new(n_slots, ground.current.len()),
        scores: vec![Score::default(); n_slots],
        living: Vec::with_capacity(n_slots),
        newcomers: Vec::with_capacity(task.population),
        units: 0,
    };
    search.begin(start, task.population);
    let mut generation = 0;
    let stopped = loop {
        if let Some(stopped) = task.stop(generation, search.units) {
            break stopped;
        }
        search.breed(task.population);
        search.survive(task.population);
        generation += 1;
    };
    let members: Vec<Vec<u16>> =
        search.living.iter().map(|&slot| search.herd.member(slot).to_vec()).collect();
    Found { members, units: search.units, stopped }
}

impl Search<'_> {
    /// The present allocation, the last round's population, and for what is missing mutants of the present.
    fn begin(&mut self, start: &[Vec<u16>], population: usize) {
        let ground = self.ground;
        for index in 0..population {
            let Some(slot) = self.herd.take() else { break };
            let from = index.checked_sub(1).and_then(|index| start.get(index));
            self.herd.member_mut(slot).copy_from_slice(from.unwrap_or(&ground.current));
            if index > start.len() {
                self.mutate(slot);
            }
            self.settle(slot);
            self.newcomers.push(slot);
        }
        self.survive(population);
    }

    fn breed(&mut self, population: usize) {
        for _ in 0..population {
            let Some(child) = self.herd.take() else { break };
            let (first, second) = (self.tournament(), self.tournament());
            self.cross(first, second, child);
            self.mutate(child);
            self.settle(child);
            self.newcomers.push(child);
        }
    }

    /// The better of two drawn at random. The population is in order, so the earlier one is.
    fn tournament(&mut self) -> usize {
        let n = self.living.len();
        let at = self.random.below(n).min(self.random.below(n));
        self.living[at]
    }

    /// Every row from either parent. The paper mutates first and crosses then; since cells mutate one by one
    /// that is the same as mutating the child.
    fn cross(&mut self, first: usize, second: usize, child: usize) {
        let width = self.ground.width();
        let mut bits = 0;
        for row in 0..self.ground.rows.len() {
            if row % 64 == 0 {
                bits = self.random.bits();
            }
            let parent = if bits & 1 == 0 { first } else { second };
            bits >>= 1;
            self.herd.copy(parent, child, row * width..(row + 1) * width);
        }
    }

    /// Every cell with probability one over the number of nodes to any count the node has.
    fn mutate(&mut self, slot: usize) {
        let (ground, width) = (self.ground, self.ground.width());
        let rate = 1.0 / width as f64;
        let member = self.herd.member_mut(slot);
        for row in ground.n_pinned..ground.rows.len() {
            for column in 0..width {
                if self.random.chance(rate) && ground.may_come(row, column) {
                    let gpus = self.random.below(usize::from(ground.columns[column].gpus) + 1);
                    member[row * width + column] = count(u32::try_from(gpus).unwrap_or(0));
                }
            }
        }
    }

    /// Repairs and judges.
    fn settle(&mut self, slot: usize) {
        self.repair.at_random(self.herd.member_mut(slot), &mut self.random);
        let member = self.herd.member(slot);
        let mut score = Score::default();
        for row in 0..self.ground.rows.len() {
            let worth = self.rates.of_row(row, self.ground.row(member, row));
            score.sum += worth.utility;
            if worth.gpus == 0 {
                *score.starved.of(self.priorities[row]) += 1;
            }
        }
        self.scores[slot] = score;
        self.units += 1;
    }

    /// The worst make room; between equals the older stay.
    fn survive(&mut self, population: usize) {
        self.living.append(&mut self.newcomers);
        let scores = &self.scores;
        self.living.sort_by(|&a, &b| scores[a].order(&scores[b]));
        while self.living.len() > population {
            if let Some(slot) = self.living.pop() {
                self.herd.give_back(slot);
            }
        }
    }
}
