//! How a node is filled best.

use super::{Program, entry};

/// Nodes that can be filled in the same ways.
pub(super) struct NodeKind {
    pub(super) pool: usize,
    pub(super) gpus: u32,
    /// Whether a part of a job that spans nodes may come.
    pub(super) takes_part: bool,
    /// Places that jobs hold here: the size, whether it is a part, the row.
    pub(super) kept: Vec<(u32, bool, usize)>,
    pub(super) row: usize,
    pub(super) n: f64,
}

/// A way to fill a node.
pub(super) struct Filling {
    pub(super) value: f64,
    pub(super) pieces: Vec<u32>,
    pub(super) parts: Vec<u32>,
    pub(super) kept: Vec<usize>,
}

impl Program<'_> {
    /// The most that a node can earn, and how.
    pub(super) fn fill(&self, prices: &[f64], kind: usize) -> Filling {
        let kind = &self.kinds[kind];
        let width = kind.gpus as usize + 1;
        // Layers: what the first so many items make of g GPUs, without and with a part among them.
        let mut layers: Vec<[Vec<f64>; 2]> = vec![[vec![0.0; width], vec![f64::NEG_INFINITY; width]]];
        for &(size, is_part, link) in &kind.kept {
            let mut next = layers[layers.len() - 1].clone();
            let last = &layers[layers.len() - 1];
            let size = size as usize;
            let exclusive = is_part && self.problem.avoid_interference;
            for gpus in size..width {
                let gain = prices[link];
                if exclusive {
                    next[1][gpus] = next[1][gpus].max(last[0][gpus - size] + gain);
                } else {
                    next[0][gpus] = next[0][gpus].max(last[0][gpus - size] + gain);
                    next[1][gpus] = next[1][gpus].max(last[1][gpus - size] + gain);
                }
            }
            layers.push(next);
        }
        // A part from outside.
        let mut with_part = layers[layers.len() - 1].clone();
        let last = layers[layers.len() - 1].clone();
        let mut part_of = vec![0_u32; width];
        if kind.takes_part && self.problem.avoid_interference {
            for gpus in 1..width {
                for part in 1..=gpus {
                    let sum = last[0][gpus - part] + prices[self.part_row(kind.pool, entry(part))];
                    if sum > with_part[1][gpus] {
                        with_part[1][gpus] = sum;
                        part_of[gpus] = entry(part);
                    }
                }
            }
        }
        // Pieces, as many as fit.
        let piece_price = |gpus: usize| {
            let piece = prices[self.piece_row(kind.pool, entry(gpus))];
            let part = prices[self.part_row(kind.pool, entry(gpus))];
            if !self.problem.avoid_interference && part > piece { (part, true) } else { (piece, false) }
        };
        let mut pieces = vec![0.0; width];
        let mut piece_of = vec![0_usize; width];
        for gpus in 1..width {
            for size in 1..=gpus {
                let sum = pieces[gpus - size] + piece_price(size).0;
                if sum > pieces[gpus] {
                    pieces[gpus] = sum;
                    piece_of[gpus] = size;
                }
            }
        }
        let mut filling =
            Filling { value: f64::NEG_INFINITY, pieces: Vec::new(), parts: Vec::new(), kept: Vec::new() };
        let (mut at, mut side) = (0, 0);
        for gpus in 0..width {
            for (index, layer) in with_part.iter().enumerate() {
                let sum = layer[gpus] + pieces[width - 1 - gpus];
                if sum > filling.value {
                    (filling.value, at, side) = (sum, gpus, index);
                }
            }
        }
        let mut left = width - 1 - at;
        while left > 0 && piece_of[left] > 0 {
            let size = piece_of[left];
            if piece_price(size).1 {
                filling.parts.push(entry(size));
            } else {
                filling.pieces.push(entry(size));
            }
            left -= size;
        }
        if side == 1 && part_of[at] > 0 && with_part[1][at] > last[1][at] {
            filling.parts.push(part_of[at]);
            at -= part_of[at] as usize;
            side = 0;
        }
        for (index, &(size, is_part, link)) in kind.kept.iter().enumerate().rev() {
            let (before, here) = (&layers[index], layers[index + 1][side][at]);
            // Bit for bit the same where the item was left out.
            if here.to_bits() == before[side][at].to_bits() {
                continue;
            }
            filling.kept.push(link);
            at -= size as usize;
            if is_part && self.problem.avoid_interference {
                side = 0;
            }
        }
        filling
    }
}
