//! Random small problems: cost tables of every shape, drawn from a seed.

use pollux_policy::problem::{Cap, Choice, Keep, Options, Problem, Slot, Table};
use pollux_policy::{Priority, Utility};

use super::Dice;

/// A problem, and what its sums mean.
#[derive(Clone, Debug)]
pub struct Drawn {
    pub problem: Problem,
    /// What the worths are utilities of.
    pub utility: Utility,
    /// The weight of each job.
    pub weights: Vec<f64>,
}

/// How large a problem is: from, to.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub nodes: (u64, u64),
    pub gpus: (u64, u64),
    pub jobs: (u64, u64),
}

impl Size {
    /// For the exhaustive search.
    pub const SMALL: Self = Self { nodes: (1, 4), gpus: (1, 4), jobs: (2, 5) };
    /// For trying every combination of choices.
    pub const TINY: Self = Self { nodes: (1, 3), gpus: (1, 2), jobs: (1, 3) };
}

impl Drawn {
    /// The power mean of the speed-ups of the jobs that hold something, restart prices included.
    pub fn mean(&self, choices: &[Choice]) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for ((table, choice), own) in self.problem.jobs.iter().zip(choices).zip(&self.weights) {
            sum += match choice {
                Choice::Nothing => continue,
                Choice::Keep => table.keep.as_ref().map_or(f64::NAN, |keep| keep.worth),
                Choice::Place(at) => {
                    let gpus = at.iter().map(|(_, gpus)| gpus).sum();
                    table.options[self.problem.nodes[at[0].0].pool].worth(gpus, at.len() > 1)
                }
            };
            weight += own;
        }
        if weight > 0.0 { self.utility.mean(sum / weight) } else { 0.0 }
    }
}

/// Draws a problem.
pub fn draw(dice: &mut Dice, size: &Size) -> Drawn {
    let utility = match dice.whole(0, 6) {
        0..=2 => Utility::new(-1.0, 0.0, 1.0),
        3 => Utility::new(1.0, 0.0, 1.0),
        4 => Utility::new(0.0, 0.0, 1.0),
        5 => Utility::new(0.5, 0.0, 1.0),
        // With a floor, or a starved job would be worth 1e29 and drown all others.
        _ => Utility::new(-10.0, 0.1, 1.0),
    };
    let n_pools = dice.one_of(&[1, 1, 1, 2, 2, 3]);
    let nodes = draw_nodes(dice, size, n_pools);
    let (caps, groups) = draw_groups(dice, n_pools);
    let mut free: Vec<u32> = nodes.iter().map(|slot| slot.gpus).collect();
    let has_priorities = dice.chance(0.4);
    let has_weights = dice.chance(0.3);
    let n_jobs = dice.whole(size.jobs.0, size.jobs.1);
    let (mut jobs, mut weights) = (Vec::new(), Vec::new());
    for _ in 0..n_jobs {
        let weight = if has_weights { dice.log_uniform(0.3, 3.0) } else { 1.0 };
        let holds = draw_holds(dice, &nodes, &mut free);
        let speedups = draw_speedups(dice, n_pools);
        let mut table = draw_table(dice, &nodes, &speedups, holds, |speedup| weight * utility.of(speedup));
        if has_priorities {
            table.priority = dice.one_of(&[Priority::Low, Priority::Normal, Priority::High]);
        }
        if !groups.is_empty() && dice.chance(0.8) {
            table.group = Some(dice.index(groups.len()));
        }
        table.weight = weight;
        jobs.push(table);
        weights.push(weight);
    }
    let avoid_interference = dice.chance(0.8);
    let problem = Problem { n_pools, nodes, caps, groups, jobs, avoid_interference, utility };
    Drawn { problem, utility, weights }
}

fn draw_nodes(dice: &mut Dice, size: &Size, n_pools: usize) -> Vec<Slot> {
    let n_nodes = dice.whole(size.nodes.0, size.nodes.1).max(dice.whole(size.nodes.0, size.nodes.1));
    let same_size = dice.chance(0.5).then(|| dice.whole(size.gpus.0, size.gpus.1) as u32);
    let mut node = || Slot {
        pool: dice.index(n_pools),
        gpus: match same_size {
            // Others use all of it.
            _ if dice.chance(0.03) => 0,
            Some(gpus) => gpus,
            None => dice.whole(size.gpus.0, size.gpus.1) as u32,
        },
        open: dice.chance(0.88),
    };
    (0..n_nodes).map(|_| node()).collect()
}

/// Caps over a tree of groups; each group's list holds its ancestors' caps too.
fn draw_groups(dice: &mut Dice, n_pools: usize) -> (Vec<Cap>, Vec<Vec<usize>>) {
    let n_groups = if dice.chance(0.5) { 0 } else { dice.whole(1, 3) as usize };
    let (mut caps, mut groups) = (Vec::new(), Vec::<Vec<usize>>::new());
    for group in 0..n_groups {
        let has_parent = group > 0 && dice.chance(0.6);
        let mut over = if has_parent { groups[dice.index(group)].clone() } else { Vec::new() };
        for pool in 0..n_pools {
            if dice.chance(0.5) {
                over.push(caps.len());
                let most = if dice.chance(0.7) { 3 } else { 8 };
                caps.push(Cap { pool, limit: dice.whole(0, most) as u32 });
            }
        }
        groups.push(over);
    }
    (caps, groups)
}

/// Some free GPUs of one pool, or none.
fn draw_holds(dice: &mut Dice, nodes: &[Slot], free: &mut [u32]) -> Vec<(usize, u32)> {
    let mut holds = Vec::new();
    if dice.chance(0.5) {
        return holds;
    }
    let pool = dice.one_of(nodes).pool;
    let may_span = dice.chance(0.4);
    for node in 0..nodes.len() {
        let stays_out = (!may_span && !holds.is_empty()) || dice.chance(0.3);
        if nodes[node].pool != pool || free[node] == 0 || stays_out {
            continue;
        }
        let gpus = dice.whole(1, u64::from(free[node])) as u32;
        free[node] -= gpus;
        holds.push((node, gpus));
    }
    holds
}

/// Speed-ups by GPUs, on one node and on several; zero where it may not run.
struct Speedups {
    one_node: Vec<f64>,
    spread: Vec<f64>,
}

/// For each pool: smooth or jagged, some with a minimum, some without the right to be there.
fn draw_speedups(dice: &mut Dice, n_pools: usize) -> Vec<Speedups> {
    let is_jagged = dice.chance(0.25);
    let is_stranger = dice.chance(0.04);
    let exponent = dice.unit();
    let saturation = if dice.chance(0.3) { dice.log_uniform(1.0, 8.0) } else { f64::INFINITY };
    let network = if dice.chance(0.3) { 1.1 } else { dice.log_uniform(0.4, 1.0) };
    let fewest = if dice.chance(0.2) { dice.whole(2, 5) as usize } else { 1 };
    let most = if dice.chance(0.6) { 16 } else { dice.whole(1, 6) as usize };
    let base = dice.log_uniform(0.1, 3.0);
    let mut pool = |_| {
        let speed = dice.log_uniform(0.3, 3.0);
        if is_stranger || dice.chance(0.12) {
            return Speedups { one_node: Vec::new(), spread: Vec::new() };
        }
        let mut speedup = |gpus: usize, factor: f64| {
            let smooth = libm::pow((gpus as f64).min(saturation), exponent);
            let shape = if is_jagged { dice.log_uniform(0.3, 3.0) } else { smooth };
            if gpus < fewest { 0.0 } else { base * speed * shape * factor }
        };
        let one_node = (1..=most.min(6)).map(|gpus| speedup(gpus, 1.0)).collect();
        let spread = (2..=most).map(|gpus| speedup(gpus, network)).collect();
        Speedups { one_node, spread: if dice.chance(0.85) { spread } else { Vec::new() } }
    };
    (0..n_pools).map(&mut pool).collect()
}

fn draw_table(
    dice: &mut Dice,
    nodes: &[Slot],
    speedups: &[Speedups],
    holds: Vec<(usize, u32)>,
    worth: impl Fn(f64) -> f64,
) -> Table {
    let factor = match dice.whole(0, 9) {
        _ if holds.is_empty() => 1.0,
        // So young that a restart leaves nothing of it.
        0 => 0.0,
        1 => 1.0,
        _ => 0.4 + 0.6 * dice.unit(),
    };
    let moved = |speedups: &[f64]| -> Vec<f64> {
        let worth_of =
            |&speedup: &f64| if speedup > 0.0 { worth(speedup * factor) } else { f64::NEG_INFINITY };
        speedups.iter().map(worth_of).collect()
    };
    let options = speedups
        .iter()
        .map(|pool| Options { one_node: moved(&pool.one_node), spread: moved(&pool.spread) })
        .collect();
    let mut table = Table { nothing: Some(worth(0.0)), options, ..Table::default() };
    if let Some(&(first, _)) = holds.first()
        && dice.chance(0.9)
    {
        let gpus: u32 = holds.iter().map(|(_, gpus)| gpus).sum();
        let pool = &speedups[nodes[first].pool];
        let (list, least) = if holds.len() > 1 { (&pool.spread, 2) } else { (&pool.one_node, 1) };
        let speedup = list.get(gpus as usize - least).copied().filter(|speedup| *speedup > 0.0);
        // What it holds may be more than it may ask for now.
        let speedup = speedup.unwrap_or_else(|| dice.log_uniform(0.1, 3.0));
        table.keep = Some(Keep { worth: worth(speedup), at: holds });
        if dice.chance(0.15) {
            table.nothing = None;
            table.options = vec![Options::default(); speedups.len()];
        }
    }
    table
}
