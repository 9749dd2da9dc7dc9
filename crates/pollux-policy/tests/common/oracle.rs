//! The exhaustive answer to a small problem: every choice of every job, remembered by what it leaves to the
//! jobs after it.
//!
//! Written apart from `Problem::score`, which it is checked against.

use std::collections::BTreeMap;
use std::rc::Rc;

use pollux_policy::problem::{Choice, Problem, Table};
use pollux_policy::{Priority, Starved};

/// The best of all choices.
#[derive(Clone, Debug)]
pub struct Exact {
    /// The highest sum for every count of starved jobs that can be had.
    pub best: BTreeMap<Starved, f64>,
    /// Fewest starved jobs.
    pub starved: Starved,
    /// The highest sum with as few.
    pub sum: f64,
    /// One choice for each job that attains both.
    pub choices: Vec<Choice>,
}

/// Tries everything. None if what must be kept does not fit.
pub fn exhaust(problem: &Problem) -> Option<Exact> {
    let mut search = Search::new(problem);
    let start = search.start()?;
    let values = search.best_from(0, &search.canonical(0, &start));
    let best: BTreeMap<Starved, f64> = values
        .iter()
        .enumerate()
        .filter(|(_, sum)| **sum > f64::NEG_INFINITY)
        .map(|(index, sum)| (search.starved_at(index), *sum + search.fixed))
        .collect();
    let (&starved, &sum) = best.first_key_value()?;
    let choices = search.retrace(start, starved);
    Some(Exact { best, starved, sum, choices })
}

/// What is left to the jobs that have not chosen yet.
#[derive(Clone, Debug, PartialEq)]
struct Left {
    /// Free GPUs of each node, and whether a job that spans nodes may come.
    nodes: Vec<(u8, bool)>,
    /// GPUs that each cap still allows.
    caps: Vec<u8>,
}

/// One thing a job can have: GPUs by node, and what they are worth.
type Taking = (Vec<(usize, u32)>, f64);

type Visit<'a> = dyn FnMut(&[(usize, u32)]) + 'a;

struct Search<'a> {
    problem: &'a Problem,
    /// The jobs that have a choice; those that hold something first, since they tell nodes apart.
    order: Vec<usize>,
    /// For each position in `order`: the nodes that some job from there on may keep.
    named: Vec<Vec<bool>>,
    /// For each position in `order`: the caps that some job from there on counts for.
    counted: Vec<Vec<bool>>,
    /// Jobs of each priority that may starve: high, normal, low.
    may_starve: [usize; 3],
    /// What the jobs are worth that must keep what they hold.
    fixed: f64,
    memo: Vec<BTreeMap<u128, Rc<[f64]>>>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem) -> Self {
        assert!(problem.nodes.len() + problem.caps.len() <= 16, "a state is 16 bytes");
        let jobs = &problem.jobs;
        let mut order: Vec<usize> = (0..jobs.len()).filter(|&job| jobs[job].nothing.is_some()).collect();
        order.sort_by_key(|&job| jobs[job].keep.is_none());
        let mut named = vec![vec![false; problem.nodes.len()]; order.len() + 1];
        let mut counted = vec![vec![false; problem.caps.len()]; order.len() + 1];
        for at in (0..order.len()).rev() {
            let (before, after) = named.split_at_mut(at + 1);
            before[at].clone_from(&after[0]);
            let (before, after) = counted.split_at_mut(at + 1);
            before[at].clone_from(&after[0]);
            for &(node, _) in jobs[order[at]].keep.iter().flat_map(|keep| &keep.at) {
                named[at][node] = true;
            }
            for &cap in caps_of(problem, &jobs[order[at]]) {
                counted[at][cap] = true;
            }
        }
        let mut may_starve = [0; 3];
        for &job in &order {
            may_starve[rank(jobs[job].priority)] += 1;
        }
        let must_keep = jobs.iter().filter(|job| job.nothing.is_none());
        let fixed = must_keep.filter_map(|job| Some(job.keep.as_ref()?.worth)).sum();
        let memo = vec![BTreeMap::new(); order.len() + 1];
        Self { problem, order, named, counted, may_starve, fixed, memo }
    }

    /// What the jobs leave that must keep what they hold. They may exceed caps and share nodes among
    /// themselves; nobody may join them there.
    fn start(&self) -> Option<Left> {
        let problem = self.problem;
        let mut left = Left {
            nodes: problem.nodes.iter().map(|slot| (byte(slot.gpus), true)).collect(),
            caps: problem.caps.iter().map(|cap| byte(cap.limit)).collect(),
        };
        for job in problem.jobs.iter().filter(|job| job.nothing.is_none()) {
            let at = &job.keep.as_ref()?.at;
            for &(node, gpus) in at {
                left.nodes[node].0 = left.nodes[node].0.checked_sub(byte(gpus))?;
                left.nodes[node].1 &= !problem.avoid_interference || at.len() < 2;
                for &cap in caps_of(problem, job) {
                    if problem.caps[cap].pool == problem.nodes[node].pool {
                        left.caps[cap] = left.caps[cap].saturating_sub(byte(gpus));
                    }
                }
            }
        }
        Some(left)
    }

    /// The highest sum for each count of starved jobs among those from `at` on.
    fn best_from(&mut self, at: usize, left: &Left) -> Rc<[f64]> {
        let key = pack(left);
        if let Some(known) = self.memo[at].get(&key) {
            return Rc::clone(known);
        }
        let mut best = vec![f64::NEG_INFINITY; self.may_starve.iter().map(|n| n + 1).product()];
        if at == self.order.len() {
            best[0] = 0.0;
        } else {
            let job = &self.problem.jobs[self.order[at]];
            let nothing = job.nothing.expect("only jobs with a choice");
            let step = self.step(job.priority);
            let rest = self.best_from(at + 1, &self.canonical(at + 1, left));
            for index in step..best.len() {
                best[index] = nothing + rest[index - step];
            }
            for (taken, worth) in self.takings(at, left) {
                let next = self.after(job, left, &taken);
                let rest = self.best_from(at + 1, &self.canonical(at + 1, &next));
                for (best, rest) in best.iter_mut().zip(rest.iter()) {
                    *best = best.max(worth + rest);
                }
            }
        }
        let best: Rc<[f64]> = best.into();
        self.memo[at].insert(key, Rc::clone(&best));
        best
    }

    /// Choices that attain the best with these starved jobs.
    #[expect(clippy::float_cmp, reason = "the same sums as before, to the last bit")]
    fn retrace(&mut self, mut left: Left, starved: Starved) -> Vec<Choice> {
        let mut choices = vec![Choice::Keep; self.problem.jobs.len()];
        let mut index = self.index_of(starved);
        for at in 0..self.order.len() {
            let job = &self.problem.jobs[self.order[at]];
            let wanted = self.best_from(at, &self.canonical(at, &left))[index];
            let step = self.step(job.priority);
            let rest = self.best_from(at + 1, &self.canonical(at + 1, &left));
            if index >= step && job.nothing.map(|nothing| nothing + rest[index - step]) == Some(wanted) {
                choices[self.order[at]] = Choice::Nothing;
                index -= step;
                continue;
            }
            let found = self.takings(at, &left).into_iter().find_map(|(taken, worth)| {
                let next = self.after(job, &left, &taken);
                let rest = self.best_from(at + 1, &self.canonical(at + 1, &next));
                (worth + rest[index] == wanted).then_some((taken, worth, next))
            });
            let (taken, worth, next) = found.expect("what was best once is best again");
            let keeps = job.keep.as_ref().is_some_and(|keep| keep.at == taken && keep.worth == worth);
            choices[self.order[at]] = if keeps { Choice::Keep } else { Choice::Place(taken) };
            left = next;
        }
        choices
    }

    /// Everything a job can have besides nothing.
    fn takings(&self, at: usize, left: &Left) -> Vec<Taking> {
        let job = &self.problem.jobs[self.order[at]];
        let mut takings = Vec::new();
        if let Some(keep) = &job.keep
            && self.fits(job, left, &keep.at)
        {
            takings.push((keep.at.clone(), keep.worth));
        }
        for (pool, options) in job.options.iter().enumerate() {
            let open: Vec<usize> = (0..self.problem.nodes.len())
                .filter(|&node| self.problem.nodes[node].open && self.problem.nodes[node].pool == pool)
                .collect();
            self.fill(at, left, &open, &mut Vec::new(), &mut |taken| {
                let gpus: u32 = taken.iter().map(|(_, gpus)| gpus).sum();
                let worth = match taken.len() {
                    0 => None,
                    1 => options.one_node.get(gpus as usize - 1),
                    _ => options.spread.get(gpus as usize - 2),
                };
                if let Some(&worth) = worth
                    && worth > f64::NEG_INFINITY
                    && self.fits(job, left, taken)
                {
                    takings.push((taken.to_vec(), worth));
                }
            });
        }
        takings
    }

    /// Every way to take GPUs of the first of `nodes` and those after it. Nodes that no one can tell apart are
    /// filled in one order only.
    fn fill(
        &self,
        at: usize,
        left: &Left,
        nodes: &[usize],
        taken: &mut Vec<(usize, u32)>,
        visit: &mut Visit<'_>,
    ) {
        let Some((&node, others)) = nodes.split_first() else { return visit(taken) };
        let mut most = u32::from(left.nodes[node].0);
        let named = &self.named[at];
        if let Some(before) =
            (0..node).rev().find(|&other| self.problem.nodes[other] == self.problem.nodes[node])
            && left.nodes[before] == left.nodes[node]
            && !named[before]
            && !named[node]
        {
            most = most.min(taken.iter().find(|(other, _)| *other == before).map_or(0, |(_, gpus)| *gpus));
        }
        self.fill(at, left, others, taken, visit);
        for gpus in 1..=most {
            taken.push((node, gpus));
            self.fill(at, left, others, taken, visit);
            taken.pop();
        }
    }

    fn fits(&self, job: &Table, left: &Left, taken: &[(usize, u32)]) -> bool {
        let room = taken.iter().all(|&(node, gpus)| {
            let (free, spread_may_come) = left.nodes[node];
            gpus <= u32::from(free) && (taken.len() < 2 || spread_may_come)
        });
        let within = |&cap: &usize| self.counting(cap, taken) <= u32::from(left.caps[cap]);
        room && caps_of(self.problem, job).iter().all(within)
    }

    fn after(&self, job: &Table, left: &Left, taken: &[(usize, u32)]) -> Left {
        let mut left = left.clone();
        for &(node, gpus) in taken {
            left.nodes[node].0 -= byte(gpus);
            left.nodes[node].1 &= !self.problem.avoid_interference || taken.len() < 2;
        }
        for &cap in caps_of(self.problem, job) {
            left.caps[cap] -= byte(self.counting(cap, taken));
        }
        left
    }

    /// GPUs that count for a cap.
    fn counting(&self, cap: usize, taken: &[(usize, u32)]) -> u32 {
        let pool = self.problem.caps[cap].pool;
        taken.iter().filter(|(node, _)| self.problem.nodes[*node].pool == pool).map(|(_, gpus)| gpus).sum()
    }

    /// The same for all that is equally good: nodes that no job from `at` on holds are sorted, and what none of
    /// them can use is dropped.
    fn canonical(&self, at: usize, left: &Left) -> Left {
        let mut left = left.clone();
        let slots = &self.problem.nodes;
        let mut alike = BTreeMap::<(usize, u32), Vec<usize>>::new();
        for node in (0..slots.len()).filter(|&node| !self.named[at][node]) {
            if slots[node].open {
                alike.entry((slots[node].pool, slots[node].gpus)).or_default().push(node);
            } else {
                left.nodes[node] = (0, false);
            }
        }
        for nodes in alike.values() {
            let mut states: Vec<(u8, bool)> = nodes.iter().map(|&node| left.nodes[node]).collect();
            states.sort_unstable();
            for (&node, state) in nodes.iter().zip(states) {
                left.nodes[node] = state;
            }
        }
        for (cap, allows) in left.caps.iter_mut().enumerate() {
            *allows = if self.counted[at][cap] { *allows } else { 0 };
        }
        left
    }

    /// How far apart in `best_from`'s answer one more starved job of a priority is.
    fn step(&self, priority: Priority) -> usize {
        self.may_starve.iter().skip(rank(priority) + 1).map(|n| n + 1).product()
    }

    fn index_of(&self, starved: Starved) -> usize {
        starved.high as usize * self.step(Priority::High)
            + starved.normal as usize * self.step(Priority::Normal)
            + starved.low as usize
    }

    fn starved_at(&self, index: usize) -> Starved {
        let [_, normal, low] = self.may_starve.map(|n| n + 1);
        Starved {
            high: (index / (normal * low)) as u32,
            normal: (index / low % normal) as u32,
            low: (index % low) as u32,
        }
    }
}

fn caps_of<'a>(problem: &'a Problem, job: &Table) -> &'a [usize] {
    job.group.map_or(&[], |group| &problem.groups[group])
}

fn rank(priority: Priority) -> usize {
    match priority {
        Priority::High => 0,
        Priority::Normal => 1,
        Priority::Low => 2,
    }
}

fn byte(gpus: u32) -> u8 {
    u8::try_from(gpus).unwrap_or(u8::MAX >> 1).min(u8::MAX >> 1)
}

fn pack(left: &Left) -> u128 {
    let nodes = left.nodes.iter().map(|&(free, spread_may_come)| free << 1 | u8::from(spread_may_come));
    nodes.chain(left.caps.iter().copied()).fold(0, |key, byte| key << 8 | u128::from(byte))
}
