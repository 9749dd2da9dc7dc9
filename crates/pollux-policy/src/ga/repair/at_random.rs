//! Repair as the paper has it: whatever is too much is removed at random.

use super::Repair;
use pollux_model::Random;

impl Repair<'_> {
    /// Makes a member feasible.
    pub(in crate::ga) fn at_random(&mut self, member: &mut [u16], random: &mut Random) {
        self.settle(member, random);
        for row in self.free_rows() {
            self.shrink_row(row, member, random);
        }
        if self.ground.avoid_interference {
            self.part_distributed(member, random);
        }
        self.empty_overfull_nodes(member, random);
        self.keep_caps_at_random(member, random);
        self.finish(member);
    }

    /// Takes single GPUs from random cells until the row is within its limit.
    fn shrink_row(&mut self, row: usize, member: &mut [u16], random: &mut Random) {
        let most = self.row_limit(row, member);
        let cells = self.ground.row_mut(member, row);
        let excess = cells.iter().map(|&cell| u32::from(cell)).sum::<u32>().saturating_sub(most);
        if excess > 0 {
            self.drawn.clear();
            self.drawn.extend((0..cells.len()).filter(|&column| cells[column] > 0));
            take_at_random(cells, &mut self.drawn, excess, random);
        }
    }

    /// On every node with more than one distributed job, random ones leave the node until one is left.
    fn part_distributed(&mut self, member: &mut [u16], random: &mut Random) {
        let (ground, width) = (self.ground, self.ground.width());
        self.by_column.fill(0);
        for row in 0..ground.rows.len() {
            let cells = ground.row(member, row);
            let spans = cells.iter().filter(|&&cell| cell > 0).count();
            self.by_row[row] = u16::try_from(spans).unwrap_or(u16::MAX);
            if spans > 1 {
                for (&cell, jobs) in cells.iter().zip(&mut self.by_column) {
                    *jobs = jobs.saturating_add(u16::from(cell > 0));
                }
            }
        }
        for column in 0..width {
            if self.by_column[column] < 2 {
                continue;
            }
            // Jobs that left other nodes may by now be on this one alone.
            let is_here = |row: usize, spans: &[u16]| member[row * width + column] > 0 && spans[row] > 1;
            let pinned = (0..ground.n_pinned).filter(|&row| is_here(row, &self.by_row)).count();
            self.drawn.clear();
            self.drawn.extend(self.free_rows().filter(|&row| is_here(row, &self.by_row)));
            while !self.drawn.is_empty() && pinned + self.drawn.len() > 1 {
                let row = self.drawn.swap_remove(random.below(self.drawn.len()));
                member[row * width + column] = 0;
                self.by_row[row] -= 1;
            }
        }
    }

    /// Takes single GPUs from random cells of every node that has too few.
    fn empty_overfull_nodes(&mut self, member: &mut [u16], random: &mut Random) {
        let (ground, width) = (self.ground, self.ground.width());
        self.by_column.fill(0);
        for cells in member.chunks_exact(width) {
            for (&cell, used) in cells.iter().zip(&mut self.by_column) {
                *used = used.saturating_add(cell);
            }
        }
        for column in 0..width {
            let used = self.by_column[column];
            let excess = u32::from(used.saturating_sub(ground.columns[column].gpus));
            if excess > 0 {
                self.drawn.clear();
                let cells = self.free_rows().map(|row| row * width + column);
                self.drawn.extend(cells.filter(|&cell| member[cell] > 0));
                take_at_random(member, &mut self.drawn, excess, random);
            }
        }
    }

    /// Takes single GPUs from random cells of every group that has too many.
    fn keep_caps_at_random(&mut self, member: &mut [u16], random: &mut Random) {
        let (ground, width) = (self.ground, self.ground.width());
        for (index, cap) in ground.caps.iter().enumerate() {
            let mut held = 0_u32;
            self.drawn.clear();
            for row in (0..ground.rows.len()).filter(|&row| ground.rows[row].caps.contains(&index)) {
                for column in (0..width).filter(|&column| ground.columns[column].pool == cap.pool) {
                    let cell = row * width + column;
                    held += u32::from(member[cell]);
                    if member[cell] > 0 && row >= ground.n_pinned {
                        self.drawn.push(cell);
                    }
                }
            }
            take_at_random(member, &mut self.drawn, held.saturating_sub(cap.limit), random);
        }
    }
}

/// Takes `excess` GPUs, one at a time, each from a random one of the `drawn` cells that still has any.
fn take_at_random(cells: &mut [u16], drawn: &mut Vec<usize>, mut excess: u32, random: &mut Random) {
    while excess > 0 && !drawn.is_empty() {
        let at = random.below(drawn.len());
        let cell = &mut cells[drawn[at]];
        *cell -= 1;
        excess -= 1;
        if *cell == 0 {
            drawn.swap_remove(at);
        }
    }
}
