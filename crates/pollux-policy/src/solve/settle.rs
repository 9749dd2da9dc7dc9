//! Old and new positions matched, so that the fewest jobs move.

use super::state::{Kind, Rank, State};

/// So many nodes are exchanged at most for those who had to make room.
const LONGEST_CHAIN: usize = 8;

/// Swaps the contents of like nodes, and puts jobs back, where that makes a job stay and costs nothing.
pub(crate) fn settle(state: &mut State<'_>) {
    for _ in 0..4 {
        let mut settled = false;
        for job in 0..state.held.len() {
            if state.held[job].kind == Kind::New && state.problem.jobs[job].keep.is_some() {
                settled |= put_back(state, job) || swap_back(state, job);
            }
        }
        if !settled {
            break;
        }
    }
}

/// Gives a job what it held, if that is free.
fn put_back(state: &mut State<'_>, job: usize) -> bool {
    let held = state.held[job].clone();
    let before = state.rank();
    state.clear(job);
    if state.can_keep(job) {
        state.keep(job);
        if is_no_worse(state.rank(), before) {
            return true;
        }
        state.clear(job);
    }
    state.put(job, held.kind, held.worth, &held.at);
    false
}

/// Where moving costs nothing the sum does not tell who stays.
fn is_better(state: &State<'_>, before: Rank, stayers: i32) -> bool {
    let after = state.rank();
    after.beats(before, tiny(before)) || (stayers > 0 && is_no_worse(after, before))
}

/// A node like this one that a job here would rather be on, since it was there; none that was exchanged before.
fn wish(state: &State<'_>, here: usize, done: &[(usize, usize)]) -> Option<usize> {
    let problem = state.problem;
    let home = |&job: &u32| {
        let (keep, held) = (problem.jobs[job as usize].keep.as_ref()?, &state.held[job as usize]);
        let (&[(home, gpus)], &[(_, now)]) = (&keep.at[..], &held.at[..]) else { return None };
        let is_new = done.iter().all(|&(a, b)| a != home && b != home);
        (gpus == now && is_new && problem.nodes[home] == problem.nodes[here]).then_some(home)
    };
    state.tenants[here].iter().find_map(home)
}

fn is_no_worse(after: Rank, before: Rank) -> bool {
    !before.beats(after, tiny(before))
}

/// What the order of a sum may change it by.
fn tiny(rank: Rank) -> f64 {
    1e-12 * rank.sum.abs()
}

/// Swaps whole nodes until a job is where it was, if they are alike and all gain together.
fn swap_back(state: &mut State<'_>, job: usize) -> bool {
    let problem = state.problem;
    let Some(keep) = &problem.jobs[job].keep else { return false };
    let mut old = keep.at.clone();
    let mut new: Vec<(usize, u32)> =
        state.held[job].at.iter().map(|&(node, gpus)| (node as usize, gpus)).collect();
    // Those already in place stay; the rest is paired by size.
    let shared: Vec<(usize, u32)> = old.iter().copied().filter(|part| new.contains(part)).collect();
    old.retain(|part| !shared.contains(part));
    new.retain(|part| !shared.contains(part));
    old.sort_unstable_by_key(|&(node, gpus)| (gpus, node));
    new.sort_unstable_by_key(|&(node, gpus)| (gpus, node));
    let alike =
        |(&(a, k), &(b, l)): (&(usize, u32), &(usize, u32))| k == l && problem.nodes[a] == problem.nodes[b];
    if old.len() != new.len() || !old.iter().zip(&new).all(alike) {
        return false;
    }
    let before = state.rank();
    let mut done: Vec<(usize, usize)> = Vec::new();
    let (mut fits, mut stayers) = (true, 0);
    for part in 0..old.len() {
        let (home, here) = (old[part].0, new[part].0);
        if home == here {
            continue;
        }
        let Some(more) = swap(state, home, here) else {
            fits = false;
            break;
        };
        stayers += more;
        done.push((home, here));
        // What was at home is here now.
        for (node, _) in &mut new[part + 1..] {
            *node = if *node == home { here } else { *node };
        }
    }
    // Who had to make room is in the job's old place, and may go home from there in turn.
    while let Some(&(_, here)) = done.last()
        && fits
        && done.len() < old.len() + LONGEST_CHAIN
        && !is_better(state, before, stayers)
    {
        let Some(home) = wish(state, here, &done) else { break };
        let Some(more) = swap(state, home, here) else { break };
        stayers += more;
        done.push((home, here));
    }
    if fits && is_better(state, before, stayers) {
        return true;
    }
    for (home, here) in done.into_iter().rev() {
        swap(state, home, here);
    }
    false
}

/// Exchanges what two like nodes hold, but for jobs that cannot move; says how many more jobs stay then. None, and
/// nothing done, if that does not fit.
fn swap(state: &mut State<'_>, a: usize, b: usize) -> Option<i32> {
    let mut jobs: Vec<u32> = state.tenants[a].iter().chain(&state.tenants[b]).copied().collect();
    jobs.retain(|&job| state.is_movable(job as usize));
    jobs.sort_unstable();
    jobs.dedup();
    if !state.problem.nodes[a].open || !state.problem.nodes[b].open {
        return None;
    }
    let before: Vec<_> = jobs.iter().map(|&job| state.held[job as usize].clone()).collect();
    for &job in &jobs {
        state.clear(job as usize);
    }
    let mut stayers = 0;
    for (&job, held) in jobs.iter().zip(&before) {
        let mut at = held.at.clone();
        for (node, _) in &mut at {
            let here = *node as usize;
            if here == a || here == b {
                *node = super::state::index(if here == a { b } else { a });
            }
        }
        at.sort_unstable();
        let (kind, worth) = state.worth_at(job as usize, held.pool, &at);
        // A table may no longer offer the size of a kept job elsewhere; those that cannot move may be in the way.
        if worth == f64::NEG_INFINITY || !has_room(state, &at) {
            for &job in &jobs {
                state.clear(job as usize);
            }
            for (&job, held) in jobs.iter().zip(&before) {
                state.put(job as usize, held.kind, held.worth, &held.at);
            }
            return None;
        }
        stayers += i32::from(kind == Kind::Keep) - i32::from(held.kind == Kind::Keep);
        state.put(job as usize, kind, worth, &at);
    }
    Some(stayers)
}

/// Whether a job could hold these GPUs besides all others.
fn has_room(state: &State<'_>, at: &[(u32, u32)]) -> bool {
    let is_apart = |node: usize| !state.problem.avoid_interference || state.spreads[node] == 0;
    at.iter()
        .all(|&(node, gpus)| state.free[node as usize] >= gpus && (at.len() == 1 || is_apart(node as usize)))
}
