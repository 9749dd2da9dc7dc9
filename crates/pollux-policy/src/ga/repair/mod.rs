//! Making members feasible. Every step only removes GPUs, so what one step set right the next leaves right.

mod at_random;
mod in_order;

use super::ground::Ground;
use pollux_model::Random;

/// Repairs members of one round; holds the room it needs to work.
#[derive(Debug)]
pub(super) struct Repair<'a> {
    ground: &'a Ground,
    /// GPUs of a row by pool.
    by_pool: Vec<u32>,
    /// Columns, or rows, or both, to draw from.
    drawn: Vec<usize>,
    /// Something counted for each column.
    by_column: Vec<u16>,
    /// Something counted for each row.
    by_row: Vec<u16>,
    /// Something counted for each cap.
    by_cap: Vec<u32>,
}

impl<'a> Repair<'a> {
    pub(super) fn new(ground: &'a Ground) -> Self {
        Self {
            ground,
            by_pool: vec![0; ground.n_pools],
            drawn: Vec::new(),
            by_column: vec![0; ground.width()],
            by_row: vec![0; ground.rows.len()],
            by_cap: vec![0; ground.caps.len()],
        }
    }

    fn free_rows(&self) -> std::ops::Range<usize> {
        self.ground.n_pinned..self.ground.rows.len()
    }

    /// What the artifact does not know: pinned rows stay, closed nodes take nobody new, and a row has GPUs of
    /// one type, that of a GPU drawn from it.
    fn settle(&mut self, member: &mut [u16], random: &mut Random) {
        let ground = self.ground;
        let pinned = ground.n_pinned * ground.width();
        member[..pinned].copy_from_slice(&ground.current[..pinned]);
        if !ground.has_closed && ground.n_pools == 1 {
            return;
        }
        for row in self.free_rows() {
            leave_closed(ground, row, ground.row_mut(member, row));
            if ground.n_pools > 1 {
                self.keep_one_type(row, ground.row_mut(member, row), random);
            }
        }
    }

    fn keep_one_type(&mut self, row: usize, cells: &mut [u16], random: &mut Random) {
        let ground = self.ground;
        self.by_pool.fill(0);
        for (column, &cell) in cells.iter().enumerate() {
            let pool = ground.columns[column].pool;
            if ground.rows[row].bounds[pool].max > 0 {
                self.by_pool[pool] += u32::from(cell);
            }
        }
        let total: u32 = self.by_pool.iter().sum();
        let mut drawn = random.below(total as usize);
        let kept = self.by_pool.iter().position(|&gpus| {
            let is_here = drawn < gpus as usize;
            drawn = drawn.saturating_sub(gpus as usize);
            is_here
        });
        for (cell, column) in cells.iter_mut().zip(&ground.columns) {
            if Some(column.pool) != kept {
                *cell = 0;
            }
        }
    }

    /// Most GPUs a row may have, given the type of those it has.
    fn row_limit(&self, row: usize, member: &[u16]) -> u32 {
        let cells = self.ground.row(member, row);
        let held = cells.iter().position(|&cell| cell > 0);
        held.map_or(0, |column| self.ground.rows[row].bounds[self.ground.columns[column].pool].max)
    }

    /// Rows that lost something may not be where only the present allocation may stay, and rows below
    /// their least hold nothing.
    fn finish(&self, member: &mut [u16]) {
        let ground = self.ground;
        for row in self.free_rows() {
            let cells = ground.row_mut(member, row);
            if ground.has_closed {
                leave_closed(ground, row, cells);
            }
            let gpus: u32 = cells.iter().map(|&cell| u32::from(cell)).sum();
            if let Some(column) = cells.iter().position(|&cell| cell > 0)
                && gpus < ground.rows[row].bounds[ground.columns[column].pool].min
            {
                cells.fill(0);
            }
        }
    }
}

/// Leaves closed nodes, unless the row is the present allocation and may stay.
fn leave_closed(ground: &Ground, row: usize, cells: &mut [u16]) {
    let at = || cells.iter().zip(&ground.columns);
    if at().all(|(&cell, column)| cell == 0 || column.is_open) {
        return;
    }
    let may_stay = at().all(|(&cell, column)| cell == 0 || column.may_stay);
    if may_stay && ground.is_current(row, cells) {
        return;
    }
    for (cell, column) in cells.iter_mut().zip(&ground.columns) {
        if !column.is_open {
            *cell = 0;
        }
    }
}
