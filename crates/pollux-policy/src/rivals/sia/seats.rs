//! Which nodes: parts of a node are never split, whole nodes are taken whole, and who can stay stays.

use std::cmp::Reverse;

use pollux_model::Allocation;

use super::menu::{Spot, Stock};

/// A job and what it was given of one GPU type.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) job: usize,
    pub(super) n_nodes: u32,
    pub(super) gpus: u32,
    /// What it holds, if it could stay there.
    pub(super) holds: Option<Allocation>,
}

/// Picks nodes for all seats of a type, the largest first. Who cannot stay without being in another's way is moved, the
/// fewest GPUs first. The allocations are in the order of the seats; one is none only if the nodes cannot hold all seats.
pub(super) fn assign(stock: &Stock, seats: &[Seat]) -> Vec<Option<Allocation>> {
    let mut stays: Vec<bool> = seats.iter().map(|seat| seat.holds.is_some()).collect();
    loop {
        let mut spots = stock.nodes.clone();
        let mut given: Vec<Option<Allocation>> = vec![None; seats.len()];
        for (seat, given) in
            seats.iter().zip(&mut given).zip(&stays).filter_map(|(pair, stays)| stays.then_some(pair))
        {
            given.clone_from(&seat.holds);
            take(&mut spots, given.as_ref());
        }
        let mut movers: Vec<usize> = (0..seats.len()).filter(|&index| !stays[index]).collect();
        movers.sort_by_key(|&index| Reverse((seats[index].n_nodes, seats[index].gpus.next_power_of_two())));
        let mut is_stuck = false;
        for index in movers {
            given[index] = pick(&spots, stock.unit, &seats[index]);
            take(&mut spots, given[index].as_ref());
            if given[index].is_none() && evict(&spots, stock.unit, seats, index, &mut stays) {
                is_stuck = true;
                break;
            }
        }
        // Each time round somebody stays no longer, so this ends.
        if !is_stuck {
            return given;
        }
    }
}

fn take(spots: &mut [Spot], allocation: Option<&Allocation>) {
    for (node, share) in allocation.into_iter().flat_map(Allocation::iter) {
        if let Some(spot) = spots.iter_mut().find(|spot| spot.node == node) {
            spot.free = spot.free.saturating_sub(share.n_replicas());
        }
    }
}

/// The fullest node that has as many GPUs, or so many whole ones; of equals the first.
fn pick(spots: &[Spot], unit: u32, seat: &Seat) -> Option<Allocation> {
    let is_spread = seat.n_nodes > 1;
    let needed = if is_spread { unit } else { seat.gpus };
    let mut fitting: Vec<&Spot> =
        spots.iter().filter(|spot| spot.free >= needed && (spot.is_clean || !is_spread)).collect();
    fitting.sort_by_key(|spot| (spot.free, spot.node));
    if fitting.len() < seat.n_nodes as usize {
        return None;
    }
    let mut missing = seat.gpus;
    let counts = fitting.iter().take(seat.n_nodes as usize).map(|spot| {
        let count = missing.min(needed);
        missing -= count;
        (spot.node, count)
    });
    Some(Allocation::whole(counts))
}

/// Makes room for a seat: those leave who are smaller and on the one node where that takes fewest GPUs, or else all. Whether
/// anybody was left to go.
fn evict(spots: &[Spot], unit: u32, seats: &[Seat], seat: usize, stays: &mut [bool]) -> bool {
    let is_spread = seats[seat].n_nodes > 1;
    let needed = if is_spread { unit } else { seats[seat].gpus };
    let mut best: Option<(u32, Vec<usize>)> = None;
    for spot in spots.iter().filter(|spot| spot.free < needed && (spot.is_clean || !is_spread)) {
        let is_there = |index: &usize| {
            let holds = seats[*index].holds.as_ref().filter(|_| stays[*index]);
            holds.is_some_and(|holds| {
                holds.on(spot.node).is_some() && holds.placement().is_some_and(|at| at.n_nodes() == 1)
            })
        };
        let mut there: Vec<usize> =
            (0..seats.len()).filter(is_there).filter(|&index| seats[index].gpus < needed).collect();
        there.sort_by_key(|&index| seats[index].gpus);
        let (mut leaving, mut gpus) = (Vec::new(), 0);
        for index in there {
            if spot.free + gpus < needed {
                gpus += seats[index].gpus;
                leaving.push(index);
            }
        }
        if spot.free + gpus >= needed && best.as_ref().is_none_or(|(fewest, _)| gpus < *fewest) {
            best = Some((gpus, leaving));
        }
    }
    let leaving =
        best.map_or_else(|| (0..seats.len()).filter(|&index| stays[index]).collect(), |(_, leaving)| leaving);
    for &index in &leaving {
        stays[index] = false;
    }
    !leaving.is_empty()
}
