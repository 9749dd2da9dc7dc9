//! What Sia's choices share: GPUs of each type, caps of groups, and pieces of nodes where those could run out first.

use super::super::place::Room;
use super::menu::{Offer, Stock};
use super::program::Column;
use crate::snapshot::Job;

/// The rows of the program.
///
/// The paper has one for each GPU type. Where all nodes of a type are alike, empty and a power of two, whatever fits by
/// count can be placed. Where they are not (others' jobs, jobs that may not be moved, odd sizes) there is also a row for the pieces of
/// each size, and what fits those can be placed, the largest first.
pub(super) struct Rows {
    pub(super) room: Vec<u32>,
    n_pools: usize,
    pieces: Vec<Pieces>,
}

/// Pieces of one size, a power of two, of the nodes of a type.
struct Pieces {
    pool: usize,
    row: usize,
    size: Size,
}

#[derive(Clone, Copy)]
enum Size {
    Gpus(u32),
    /// A whole node without a part of another job that spans several.
    Clean,
}

impl Rows {
    /// For what is in stock and offered.
    pub(super) fn new(room: &Room, stocks: &[Stock], offers: &[Vec<Offer>]) -> Self {
        let count = |stock: &Stock| stock.nodes.iter().fold(0_u32, |sum, spot| sum.saturating_add(spot.free));
        let mut rows =
            Self { room: stocks.iter().map(count).collect(), n_pools: stocks.len(), pieces: Vec::new() };
        rows.room.extend(room.caps_left());
        for (pool, stock) in stocks.iter().enumerate() {
            let mut here = offers.iter().flatten().filter(|offer| offer.pool == pool);
            let is_odd = here.any(|offer| {
                if offer.n_nodes == 1 {
                    !offer.gpus.is_power_of_two()
                } else {
                    !offer.gpus.is_multiple_of(stock.unit)
                }
            });
            let mut size = 2;
            while size <= stock.unit {
                let n_pieces = stock.nodes.iter().map(|spot| spot.free / size).sum::<u32>();
                if is_odd || n_pieces * size < rows.room[pool] {
                    rows.add(pool, Size::Gpus(size), n_pieces);
                }
                size *= 2;
            }
            let whole = stock.nodes.iter().filter(|spot| spot.free >= stock.unit);
            if whole.clone().any(|spot| !spot.is_clean) {
                let n_clean = whole.filter(|spot| spot.is_clean).count();
                rows.add(pool, Size::Clean, u32::try_from(n_clean).unwrap_or(u32::MAX));
            }
        }
        rows
    }

    fn add(&mut self, pool: usize, size: Size, n_pieces: u32) {
        self.pieces.push(Pieces { pool, row: self.room.len(), size });
        self.room.push(n_pieces);
    }

    /// What a job takes of them by a choice that costs so much.
    pub(super) fn column<K>(
        &self,
        room: &Room,
        stocks: &[Stock],
        job: &Job<K>,
        offer: &Offer,
        cost: f64,
    ) -> Column {
        let mut uses = vec![(offer.pool, offer.gpus)];
        uses.extend(room.caps_on(job, offer.pool).into_iter().map(|cap| (self.n_pools + cap, offer.gpus)));
        let unit = stocks[offer.pool].unit;
        for pieces in self.pieces.iter().filter(|pieces| pieces.pool == offer.pool) {
            let taken = match pieces.size {
                Size::Clean if offer.n_nodes == 1 => 0,
                Size::Clean => offer.n_nodes,
                Size::Gpus(size) if offer.n_nodes > 1 => offer.n_nodes * (unit / size),
                Size::Gpus(size) if offer.gpus.next_power_of_two() < size => 0,
                Size::Gpus(size) => offer.gpus.div_ceil(size),
            };
            uses.push((pieces.row, taken));
        }
        uses.retain(|(_, amount)| *amount > 0);
        Column { cost, uses }
    }
}
