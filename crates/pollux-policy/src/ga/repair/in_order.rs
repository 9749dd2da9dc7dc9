//! Repair as the artifact has it: who comes first in the order keeps what it has.

use super::Repair;
use crate::ga::ground::count;
use pollux_model::Random;

impl Repair<'_> {
    /// Makes a member feasible, and no job span more than `most_nodes`.
    pub(in crate::ga) fn in_order(&mut self, member: &mut [u16], most_nodes: usize, random: &mut Random) {
        self.settle(member, random);
        if self.ground.avoid_interference {
            self.clear_after_second_distributed(member);
        }
        for row in self.free_rows() {
            let most = self.row_limit(row, member);
            self.cut_row(row, member, most, most_nodes, random);
        }
        self.cut_at_capacity(member);
        self.keep_caps_in_order(member, random);
        self.finish(member);
    }

    /// From the second distributed job of a node on, everything on it is cleared, jobs of that node alone
    /// included. The artifact's bug B2, and who is distributed is judged before anything is cleared.
    fn clear_after_second_distributed(&mut self, member: &mut [u16]) {
        let ground = self.ground;
        self.by_column.fill(0);
        for row in 0..ground.rows.len() {
            let is_pinned = row < ground.n_pinned;
            let cells = ground.row_mut(member, row);
            let is_distributed = cells.iter().filter(|&&cell| cell > 0).count() > 1;
            for (cell, seen) in cells.iter_mut().zip(&mut self.by_column) {
                *seen = seen.saturating_add(u16::from(is_distributed && *cell > 0));
                if *seen > 1 && !is_pinned {
                    *cell = 0;
                }
            }
        }
    }

    /// Walks over the row's nodes in random order, and cuts what comes after `most_gpus` or `most_nodes`.
    fn cut_row(
        &mut self,
        row: usize,
        member: &mut [u16],
        most_gpus: u32,
        most_nodes: usize,
        random: &mut Random,
    ) {
        let cells = self.ground.row_mut(member, row);
        let (mut gpus, mut n_nodes) = (0_u32, 0);
        for &cell in &*cells {
            gpus += u32::from(cell);
            n_nodes += usize::from(cell > 0);
        }
        if gpus <= most_gpus && n_nodes <= most_nodes {
            return;
        }
        self.drawn.clear();
        self.drawn.extend((0..cells.len()).filter(|&column| cells[column] > 0));
        random.shuffle(&mut self.drawn);
        let mut left = most_gpus;
        for (visited, &column) in self.drawn.iter().enumerate() {
            let most = if visited < most_nodes { left } else { 0 };
            let kept = u32::from(cells[column]).min(most);
            cells[column] = count(kept);
            left -= kept;
        }
    }

    /// Going down the order, every node gives what it still has.
    fn cut_at_capacity(&mut self, member: &mut [u16]) {
        let ground = self.ground;
        for (left, column) in self.by_column.iter_mut().zip(&ground.columns) {
            *left = column.gpus;
        }
        for cells in member.chunks_exact_mut(ground.width()) {
            for (cell, left) in cells.iter_mut().zip(&mut self.by_column) {
                *cell = (*cell).min(*left);
                *left -= *cell;
            }
        }
    }

    /// Going down the order, every group gives what it still may.
    fn keep_caps_in_order(&mut self, member: &mut [u16], random: &mut Random) {
        let ground = self.ground;
        self.by_cap.fill(0);
        for row in 0..ground.rows.len() {
            let caps = &ground.rows[row].caps;
            let Some(column) = ground.row(member, row).iter().position(|&cell| cell > 0) else { continue };
            let pool = ground.columns[column].pool;
            let caps = caps.iter().copied().filter(|&cap| ground.caps[cap].pool == pool);
            if row >= ground.n_pinned {
                let room = |cap: usize| ground.caps[cap].limit.saturating_sub(self.by_cap[cap]);
                let room = caps.clone().map(room).min().unwrap_or(u32::MAX);
                self.cut_row(row, member, room, usize::MAX, random);
            }
            let gpus: u32 = ground.row(member, row).iter().map(|&cell| u32::from(cell)).sum();
            caps.for_each(|cap| self.by_cap[cap] += gpus);
        }
    }
}
