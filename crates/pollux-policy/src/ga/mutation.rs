//! The artifact's mutation: rows go back, lose something, and grow where GPUs are free.

use super::ground::{Ground, count};
use pollux_model::Random;

/// A row returns to the present allocation with this probability.
const RETURN: f64 = 0.1;

/// A row loses something with this probability, and then each of its cells with this probability.
const LOSS: f64 = 0.1;

/// Mutates members of one round; holds the room it needs to work.
#[derive(Debug)]
pub(super) struct Mutation<'a> {
    ground: &'a Ground,
    /// Jobs that may come, by pool.
    n_fitting: Vec<usize>,
    /// GPUs in use, by column.
    used: Vec<u16>,
    /// Jobs there, by column.
    there: Vec<u16>,
    /// Columns with a free GPU.
    open: Vec<usize>,
}

impl<'a> Mutation<'a> {
    pub(super) fn new(ground: &'a Ground) -> Self {
        let free = &ground.rows[ground.n_pinned..];
        let n_fitting = |pool: usize| free.iter().filter(|row| row.bounds[pool].max > 0).count();
        Self {
            ground,
            n_fitting: (0..ground.n_pools).map(n_fitting).collect(),
            used: vec![0; ground.width()],
            there: vec![0; ground.width()],
            open: Vec::with_capacity(ground.width()),
        }
    }

    /// The three steps, one after the other. The outcome may need repair.
    pub(super) fn mutate(&mut self, member: &mut [u16], random: &mut Random) {
        let ground = self.ground;
        for row in ground.n_pinned..ground.rows.len() {
            if random.chance(RETURN) {
                ground.row_mut(member, row).copy_from_slice(ground.row(&ground.current, row));
            }
        }
        for row in ground.n_pinned..ground.rows.len() {
            if random.chance(LOSS) {
                for cell in ground.row_mut(member, row) {
                    if random.chance(LOSS) {
                        *cell = 0;
                    }
                }
            }
        }
        self.find_room(member);
        self.grow(member, random);
    }

    fn find_room(&mut self, member: &[u16]) {
        let ground = self.ground;
        self.used.fill(0);
        self.there.fill(0);
        for cells in member.chunks_exact(ground.width()) {
            for ((&cell, used), there) in cells.iter().zip(&mut self.used).zip(&mut self.there) {
                *used = used.saturating_add(cell);
                *there = there.saturating_add(u16::from(cell > 0));
            }
        }
        let used = &self.used;
        let has_room =
            |&column: &usize| ground.columns[column].is_open && used[column] < ground.columns[column].gpus;
        self.open.clear();
        self.open.extend((0..ground.width()).filter(has_room));
    }

    /// Every job that fits on a node with a free GPU grows there with probability one over the number of such
    /// jobs, or, independently, one over the number of jobs on the node if it is one of them: to any count
    /// from what it has to what the node has.
    fn grow(&self, member: &mut [u16], random: &mut Random) {
        let ground = self.ground;
        for row in ground.n_pinned..ground.rows.len() {
            let cells = ground.row_mut(member, row);
            for &column in &self.open {
                let node = &ground.columns[column];
                if ground.rows[row].bounds[node.pool].max == 0 {
                    continue;
                }
                let mut chance = 1.0 / self.n_fitting[node.pool] as f64;
                let cell = cells[column];
                if cell > 0 {
                    chance += (1.0 - chance) / f64::from(self.there[column]);
                }
                if random.chance(chance) {
                    let more = random.below(usize::from(node.gpus.saturating_sub(cell)) + 1);
                    cells[column] = cell + count(u32::try_from(more).unwrap_or(0));
                }
            }
        }
    }
}
