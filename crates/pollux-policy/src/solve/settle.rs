//! Old and new positions matched, so that the fewest jobs move.

use super::state::{Kind, State};

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
        if !before.beats(state.rank(), 0.0) {
            return true;
        }
        state.clear(job);
    }
    state.put(job, held.kind, held.worth, &held.at);
    false
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
    let mut done = 0;
    for (&(a, _), &(b, _)) in old.iter().zip(&new) {
        if !swap(state, a, b) {
            break;
        }
        done += 1;
    }
    if done == old.len() && state.rank().beats(before, 0.0) {
        return true;
    }
    for (&(a, _), &(b, _)) in old.iter().zip(&new).take(done).rev() {
        swap(state, a, b);
    }
    false
}

/// Exchanges all that two like nodes hold. False, and nothing done, if something there cannot move.
fn swap(state: &mut State<'_>, a: usize, b: usize) -> bool {
    let mut jobs: Vec<u32> = state.tenants[a].iter().chain(&state.tenants[b]).copied().collect();
    jobs.sort_unstable();
    jobs.dedup();
    if a == b || !state.problem.nodes[a].open || jobs.iter().any(|&job| !state.is_movable(job as usize)) {
        return false;
    }
    let before: Vec<_> = jobs.iter().map(|&job| state.held[job as usize].clone()).collect();
    for &job in &jobs {
        state.clear(job as usize);
    }
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
        if worth == f64::NEG_INFINITY {
            // A kept job whose table no longer offers its size elsewhere.
            for &job in &jobs {
                state.clear(job as usize);
            }
            for (&job, held) in jobs.iter().zip(&before) {
                state.put(job as usize, held.kind, held.worth, &held.at);
            }
            return false;
        }
        state.put(job as usize, kind, worth, &at);
    }
    true
}
