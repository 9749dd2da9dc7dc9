//! Who holds what while the search goes on, with everything a move needs to know kept up to date.

use super::dual::{CLASSES, class};
use super::hull::Hulls;
use crate::problem::{Choice, Problem};

/// What one job holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    pub(crate) kind: Kind,
    pub(crate) worth: f64,
    pub(crate) pool: usize,
    pub(crate) gpus: u32,
    /// GPUs by node, in ascending order of nodes.
    pub(crate) at: Vec<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Nothing,
    Keep,
    New,
}

/// Some of the jobs, in no order, with quick changes.
#[derive(Clone, Debug)]
pub(crate) struct Roll {
    pub(crate) jobs: Vec<u32>,
    places: Vec<u32>,
}

impl Roll {
    fn new(n_jobs: usize) -> Self {
        Self { jobs: Vec::new(), places: vec![u32::MAX; n_jobs] }
    }

    fn add(&mut self, job: usize) {
        self.places[job] = index(self.jobs.len());
        self.jobs.push(index(job));
    }

    fn remove(&mut self, job: usize) {
        let place = self.places[job] as usize;
        if place < self.jobs.len() {
            self.jobs.swap_remove(place);
            self.places[job] = u32::MAX;
            if let Some(&moved) = self.jobs.get(place) {
                self.places[moved as usize] = index(place);
            }
        }
    }
}

/// Starved jobs first, weighed so that one of a higher priority outweighs all of lower ones; then the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rank {
    pub(crate) starved: f64,
    pub(crate) sum: f64,
}

impl Rank {
    /// Whether this is better by more than `margin` in the sum.
    pub(crate) fn beats(self, other: Self, margin: f64) -> bool {
        self.starves_fewer(other) || (!other.starves_fewer(self) && self.sum > other.sum + margin)
    }

    pub(crate) fn starves_fewer(self, other: Self) -> bool {
        // Weights are whole numbers.
        self.starved < other.starved - 0.5
    }
}

/// An allocation in the making.
#[derive(Clone, Debug)]
pub(crate) struct State<'p> {
    pub(crate) problem: &'p Problem,
    pub(crate) hulls: &'p Hulls,
    pub(crate) held: Vec<Held>,
    pub(crate) free: Vec<u32>,
    /// Jobs on several nodes, by node.
    pub(crate) spreads: Vec<u32>,
    pub(crate) tenants: Vec<Vec<u32>>,
    /// Open nodes by pool and free GPUs.
    room: Vec<Vec<Vec<u32>>>,
    /// Where in its list of `room` a node stands.
    place_in_room: Vec<u32>,
    /// GPUs, by pool, that a job on several nodes could have.
    pub(crate) spread_room: Vec<u64>,
    pub(crate) cap_left: Vec<i64>,
    /// What it is worth to the jobs that hold something.
    pub(crate) running: f64,
    /// What it is worth to those that hold nothing and could. Apart, since it may be of quite another size.
    pub(crate) waiting: f64,
    starved: f64,
    /// Jobs on several nodes.
    pub(crate) spreading: Roll,
    /// Jobs that hold nothing and could.
    pub(crate) idle: Roll,
    /// Weight in the mean of those that hold something.
    pub(crate) weight: f64,
    /// Weight of a starved job, by class.
    starved_weight: [f64; CLASSES],
    scratch: Vec<(u32, u32)>,
}

impl<'p> State<'p> {
    /// Nobody holds anything but those who must.
    pub(crate) fn new(problem: &'p Problem, hulls: &'p Hulls) -> Self {
        let mut counts = [0.0; CLASSES];
        for table in &problem.jobs {
            counts[class(table)] += 1.0;
        }
        let mut starved_weight = [1.0; CLASSES];
        for higher in 1..CLASSES {
            // One of a class outweighs all below it.
            starved_weight[higher] = starved_weight[higher - 1] * (counts[higher - 1] + 1.0);
        }
        let largest = problem.nodes.iter().map(|slot| slot.gpus as usize).max().unwrap_or(0);
        let mut state = Self {
            problem,
            hulls,
            held: vec![Held::default(); problem.jobs.len()],
            free: problem.nodes.iter().map(|slot| slot.gpus).collect(),
            spreads: vec![0; problem.nodes.len()],
            tenants: vec![Vec::new(); problem.nodes.len()],
            room: vec![vec![Vec::new(); largest + 1]; problem.n_pools],
            place_in_room: vec![0; problem.nodes.len()],
            spread_room: vec![0; problem.n_pools],
            cap_left: problem.caps.iter().map(|cap| i64::from(cap.limit)).collect(),
            running: 0.0,
            waiting: 0.0,
            starved: 0.0,
            spreading: Roll::new(problem.jobs.len()),
            idle: Roll::new(problem.jobs.len()),
            weight: 0.0,
            starved_weight,
            scratch: Vec::new(),
        };
        for (node, slot) in problem.nodes.iter().enumerate() {
            if slot.open {
                state.enter_room(node);
                state.spread_room[slot.pool] += u64::from(slot.gpus);
            }
        }
        for (job, table) in problem.jobs.iter().enumerate() {
            let nothing = table.nothing.unwrap_or(0.0);
            state.held[job].worth = nothing;
            if hulls.has_hope(job) {
                state.idle.add(job);
                state.waiting += nothing;
            }
            state.starved += state.starved_weight[class(table)];
        }
        for (job, table) in problem.jobs.iter().enumerate() {
            if table.nothing.is_none() && table.keep.is_some() {
                state.keep(job);
            }
        }
        state
    }

    /// Whether the search may do anything with a job.
    pub(crate) fn is_movable(&self, job: usize) -> bool {
        self.problem.jobs[job].nothing.is_some()
    }

    fn enter_room(&mut self, node: usize) {
        let list = &mut self.room[self.problem.nodes[node].pool][self.free[node] as usize];
        self.place_in_room[node] = index(list.len());
        list.push(index(node));
    }

    fn leave_room(&mut self, node: usize) {
        let list = &mut self.room[self.problem.nodes[node].pool][self.free[node] as usize];
        let at = self.place_in_room[node] as usize;
        list.swap_remove(at);
        if let Some(&moved) = list.get(at) {
            self.place_in_room[moved as usize] = index(at);
        }
    }

    /// Open nodes of a pool with exactly this many free GPUs.
    pub(crate) fn with_free(&self, pool: usize, free: u32) -> &[u32] {
        self.room[pool].get(free as usize).map_or(&[], Vec::as_slice)
    }

    /// Most GPUs free on one open node of a pool.
    pub(crate) fn most_free(&self, pool: usize) -> u32 {
        let lists = &self.room[pool];
        (0..lists.len()).rev().find(|&free| !lists[free].is_empty()).map_or(0, index)
    }

    fn is_open_to_spread(&self, node: usize) -> bool {
        self.problem.nodes[node].open && (self.spreads[node] == 0 || !self.problem.avoid_interference)
    }

    /// Changes a node's free GPUs and how many jobs on several nodes it hosts.
    fn change_node(&mut self, node: usize, gpus: i64, spreads: i32) {
        let pool = self.problem.nodes[node].pool;
        let open = self.problem.nodes[node].open;
        if self.is_open_to_spread(node) {
            self.spread_room[pool] -= u64::from(self.free[node]);
        }
        if open {
            self.leave_room(node);
        }
        self.free[node] = u32::try_from(i64::from(self.free[node]) - gpus).unwrap_or(0);
        self.spreads[node] = self.spreads[node].saturating_add_signed(spreads);
        if open {
            self.enter_room(node);
        }
        if self.is_open_to_spread(node) {
            self.spread_room[pool] += u64::from(self.free[node]);
        }
    }

    fn change_caps(&mut self, job: usize, pool: usize, gpus: i64) {
        let hulls = self.hulls;
        for &cap in hulls.caps(job, pool) {
            self.cap_left[cap] -= gpus;
        }
    }

    /// GPUs of a pool that a job's caps leave it.
    pub(crate) fn allowed(&self, job: usize, pool: usize) -> u32 {
        let left = self.hulls.caps(job, pool).iter().map(|&cap| self.cap_left[cap]).min();
        left.map_or(u32::MAX, |left| u32::try_from(left.max(0)).unwrap_or(u32::MAX))
    }

    /// Takes everything from a job.
    pub(crate) fn clear(&mut self, job: usize) {
        if self.held[job].kind == Kind::Nothing {
            return;
        }
        let mut at = std::mem::take(&mut self.held[job].at);
        let spread = i32::from(at.len() > 1);
        for &(node, gpus) in &at {
            let node = node as usize;
            self.change_node(node, -i64::from(gpus), -spread);
            let tenants = &mut self.tenants[node];
            if let Some(position) = tenants.iter().position(|&tenant| tenant as usize == job) {
                tenants.swap_remove(position);
            }
        }
        if spread == 1 {
            self.spreading.remove(job);
        }
        at.clear();
        let (pool, gpus) = (self.held[job].pool, self.held[job].gpus);
        self.change_caps(job, pool, -i64::from(gpus));
        let table = &self.problem.jobs[job];
        let nothing = table.nothing.unwrap_or(0.0);
        self.running -= self.held[job].worth;
        self.waiting += nothing;
        self.weight -= table.weight;
        self.starved += self.starved_weight[class(table)];
        self.idle.add(job);
        self.held[job] = Held { kind: Kind::Nothing, worth: nothing, pool: 0, gpus: 0, at };
    }

    /// Gives a job that holds nothing these GPUs, which must be free.
    pub(crate) fn put(&mut self, job: usize, kind: Kind, worth: f64, at: &[(u32, u32)]) {
        debug_assert!(self.held[job].kind == Kind::Nothing);
        let spread = i32::from(at.len() > 1);
        let mut gpus = 0;
        for &(node, count) in at {
            self.change_node(node as usize, i64::from(count), spread);
            self.tenants[node as usize].push(index(job));
            gpus += count;
        }
        let pool = at.first().map_or(0, |&(node, _)| self.problem.nodes[node as usize].pool);
        self.change_caps(job, pool, i64::from(gpus));
        if spread == 1 {
            self.spreading.add(job);
        }
        let held = &mut self.held[job];
        self.running += worth;
        self.idle.remove(job);
        self.waiting = if self.idle.jobs.is_empty() { 0.0 } else { self.waiting - held.worth };
        self.weight += self.problem.jobs[job].weight;
        self.starved -= self.starved_weight[class(&self.problem.jobs[job])];
        (held.kind, held.worth, held.pool, held.gpus) = (kind, worth, pool, gpus);
        held.at.clear();
        held.at.extend_from_slice(at);
    }

    /// Gives a job back what the problem says it holds.
    pub(crate) fn keep(&mut self, job: usize) {
        let problem = self.problem;
        let Some(keep) = &problem.jobs[job].keep else { return };
        let mut at = std::mem::take(&mut self.scratch);
        at.clear();
        at.extend(keep.at.iter().map(|&(node, gpus)| (index(node), gpus)));
        self.put(job, Kind::Keep, keep.worth, &at);
        self.scratch = at;
    }

    /// Whether a job that holds nothing could have back what it held.
    pub(crate) fn can_keep(&self, job: usize) -> bool {
        let Some(keep) = &self.problem.jobs[job].keep else { return false };
        let spread = keep.at.len() > 1 && self.problem.avoid_interference;
        let fits =
            |&(node, gpus): &(usize, u32)| self.free[node] >= gpus && !(spread && self.spreads[node] > 0);
        let gpus = keep.at.iter().map(|&(_, gpus)| gpus).sum::<u32>();
        let pool = keep.at.first().map_or(0, |&(node, _)| self.problem.nodes[node].pool);
        keep.at.iter().all(fits) && gpus <= self.allowed(job, pool)
    }

    /// What GPUs at these nodes are worth to a job: kept where they are what it holds, nothing to be had on
    /// closed nodes otherwise.
    pub(crate) fn worth_at(&self, job: usize, pool: usize, at: &[(u32, u32)]) -> (Kind, f64) {
        let table = &self.problem.jobs[job];
        if let Some(keep) = &table.keep
            && keep.at.len() == at.len()
            && keep.at.iter().zip(at).all(|(old, new)| old.0 == new.0 as usize && old.1 == new.1)
        {
            return (Kind::Keep, keep.worth);
        }
        if at.iter().any(|&(node, _)| !self.problem.nodes[node as usize].open) {
            return (Kind::New, f64::NEG_INFINITY);
        }
        let gpus = at.iter().map(|&(_, gpus)| gpus).sum();
        (
            Kind::New,
            table.options.get(pool).map_or(f64::NEG_INFINITY, |options| options.worth(gpus, at.len() > 1)),
        )
    }

    /// Whether a job that spans nodes may come to this one.
    pub(crate) fn may_spread_to(&self, node: usize) -> bool {
        self.is_open_to_spread(node)
    }

    /// The weight of so many starved jobs of each class.
    pub(crate) fn weight_of_starved(&self, starved: [u32; CLASSES]) -> f64 {
        starved.iter().zip(self.starved_weight).map(|(&n, weight)| f64::from(n) * weight).sum()
    }

    /// Jobs that hold nothing, by class.
    pub(crate) fn starved(&self) -> [u32; CLASSES] {
        let mut starved = [0; CLASSES];
        for (table, held) in self.problem.jobs.iter().zip(&self.held) {
            starved[class(table)] += u32::from(held.kind == Kind::Nothing);
        }
        starved
    }

    /// How good this is.
    pub(crate) fn rank(&self) -> Rank {
        Rank { starved: self.starved, sum: self.running + self.waiting }
    }

    /// The sums anew, free of what many additions lost.
    pub(crate) fn recount(&mut self) {
        let running = self.held.iter().filter(|held| held.kind != Kind::Nothing);
        self.running = running.map(|held| held.worth).sum();
        self.waiting = self.idle.jobs.iter().map(|&job| self.held[job as usize].worth).sum();
    }

    /// The choices as the problem knows them.
    pub(crate) fn choices(&self) -> Vec<Choice> {
        let choice = |held: &Held| match held.kind {
            Kind::Nothing => Choice::Nothing,
            Kind::Keep => Choice::Keep,
            Kind::New => Choice::Place(held.at.iter().map(|&(node, gpus)| (node as usize, gpus)).collect()),
        };
        self.held.iter().map(choice).collect()
    }
}

pub(crate) fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
