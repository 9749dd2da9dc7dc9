//! From a snapshot to a problem: each job's table of options, as far as prices make them matter.

use pollux_model::{NodeId, Placement};

use crate::problem::{Keep, Options, Problem, Slot, Table};
use crate::settings::Settings;
use crate::snapshot::{Freedom, Job, NodeState, Snapshot};
use crate::solve::{Outlook, Sharp, Solution};
use crate::valuation::Valuation;

/// The problem of one round, and where its parts come from.
pub(crate) struct Tables<'v, 's> {
    valuation: &'v Valuation<'s>,
    pub(crate) problem: Problem,
    /// Most GPUs a job may hold, by job and pool.
    most: Vec<u32>,
    /// The problem's nodes as the snapshot knows them.
    pub(crate) nodes: Vec<NodeId>,
    /// GPUs of each pool's largest open node.
    largest: Vec<u32>,
}

impl<'v, 's> Tables<'v, 's> {
    /// Tables of all jobs, no longer than prices near `guess` make useful. Groups come later.
    pub(crate) fn new<K>(
        snapshot: &Snapshot<K>,
        valuation: &'v Valuation<'s>,
        settings: &Settings,
        guess: Option<&[f64]>,
    ) -> Self {
        let pools = valuation.pools();
        let cluster = snapshot.cluster();
        let pool_of = |node: &crate::snapshot::Node| {
            pools.binary_search_by(|pool| pool.gpu_type.cmp(&node.gpu_type)).unwrap_or(0)
        };
        let slots = cluster.nodes.iter().map(|node| Slot {
            pool: pool_of(node),
            gpus: node.gpus.saturating_sub(node.others),
            open: node.state == NodeState::Ready,
        });
        let mut positions: Vec<(NodeId, usize)> =
            cluster.nodes.iter().enumerate().map(|(position, node)| (node.id, position)).collect();
        positions.sort_unstable();
        let mut problem = Problem {
            n_pools: pools.len(),
            nodes: slots.collect(),
            avoid_interference: settings.avoid_interference,
            utility: valuation.utility(),
            ..Problem::default()
        };
        let mut open = vec![(0_u32, 0_u32); pools.len()];
        for slot in problem.nodes.iter().filter(|slot| slot.open) {
            open[slot.pool].0 = open[slot.pool].0.saturating_add(slot.gpus);
            open[slot.pool].1 = open[slot.pool].1.max(slot.gpus);
        }
        let mut tables = Self {
            valuation,
            problem: Problem::default(),
            most: Vec::with_capacity(snapshot.jobs().len() * pools.len()),
            nodes: cluster.nodes.iter().map(|node| node.id).collect(),
            largest: open.iter().map(|&(_, largest)| largest).collect(),
        };
        for (index, job) in snapshot.jobs().iter().enumerate() {
            let keep = tables.keep(index, job, cluster, &problem, &positions);
            let is_pinned = job.is_pinned() && keep.is_some();
            let mut options = Vec::with_capacity(pools.len());
            for (pool, &(gpus, largest)) in open.iter().enumerate() {
                let source = valuation.jobs()[index].pools[pool].as_ref();
                let most = source.map_or(0, |source| source.max.min(gpus));
                let most = if is_pinned || source.is_some_and(|source| source.min > most) { 0 } else { most };
                tables.most.push(most);
                let mut list = Options {
                    one_node: Vec::with_capacity(largest.min(most).min(16) as usize),
                    spread: Vec::with_capacity(most.min(16) as usize),
                };
                let enough = Enough {
                    price: guess.map(|guess| 0.7 * guess[pool]),
                    at_least: valuation.fair_gpus().saturating_mul(2).saturating_add(4),
                };
                tables.extend(&mut list, index, pool, most, &enough);
                options.push(list);
            }
            problem.jobs.push(Table {
                priority: job.priority,
                group: None,
                weight: valuation.jobs()[index].weight,
                nothing: (!is_pinned).then(|| valuation.worth_of_waiting(index)),
                keep,
                options,
            });
        }
        tables.problem = problem;
        tables
    }

    /// What a job holds, if it may stay there.
    fn keep<K>(
        &self,
        index: usize,
        job: &Job<K>,
        cluster: &crate::snapshot::Cluster,
        problem: &Problem,
        positions: &[(NodeId, usize)],
    ) -> Option<Keep> {
        let placement = job.holds.placement()?;
        let at: Vec<(usize, u32)> = {
            let mut at: Vec<_> = job
                .holds
                .iter()
                .filter_map(|(node, share)| {
                    let at = positions.binary_search_by_key(&node, |&(node, _)| node).ok()?;
                    Some((positions[at].1, share.n_replicas()))
                })
                .collect();
            at.sort_unstable();
            at
        };
        let pool = problem.nodes[at.first()?.0].pool;
        let must_go = at.iter().any(|&(node, _)| cluster.nodes[node].state == NodeState::Draining);
        let source = self.valuation.jobs()[index].pools[pool].as_ref();
        // A limit its user has lowered since counts; exploration does not take away what it has.
        let allowed = source.is_some_and(|source| {
            (source.min..=source.max_explored.max(source.max)).contains(&placement.n_replicas())
        }) || !self.valuation.jobs()[index].is_profiled()
            && job.freedom == Freedom::Elastic
            && source.is_some();
        if !job.is_pinned() && (must_go || !allowed) {
            return None;
        }
        Some(Keep { worth: self.valuation.worth(index, pool, placement, false), at })
    }

    /// Fills in worths up to `most` GPUs, or until more of them certainly cannot pay at the price.
    fn extend(&self, options: &mut Options, job: usize, pool: usize, most: u32, enough: &Enough) {
        let Some(source) = self.valuation.jobs()[job].pools[pool].as_ref() else { return };
        let value = &self.valuation.jobs()[job];
        let utility = self.valuation.utility();
        let mut best = f64::NEG_INFINITY;
        let mut gpus = 0;
        while gpus < most {
            gpus += 1;
            let worth = |nodes: u32| {
                let placement = Placement::new(nodes, gpus).filter(|_| gpus >= source.min);
                let speedup = placement.map_or(0.0, |placement| value.speedup(pool, placement));
                if speedup > 0.0 {
                    value.weight * utility.of(speedup * value.restart_factor)
                } else {
                    f64::NEG_INFINITY
                }
            };
            if gpus as usize > options.one_node.len() && gpus <= self.largest[pool] {
                options.one_node.push(worth(1));
            }
            if gpus >= 2 && gpus as usize > options.spread.len() + 1 {
                options.spread.push(worth(2));
            }
            let here = options.worth(gpus, false).max(options.worth(gpus, true));
            let price = enough.price.unwrap_or(0.0);
            best = best.max(here - price * f64::from(gpus));
            let done = match enough.price {
                Some(price) => gpus >= source.min && self.is_hopeless(job, pool, gpus + 1, price, best),
                None => gpus >= enough.at_least.max(source.min),
            };
            if done {
                break;
            }
        }
    }

    /// Whether no allocation from `gpus` GPUs on can be worth more than `best` after paying the price.
    fn is_hopeless(&self, job: usize, pool: usize, gpus: u32, price: f64, best: f64) -> bool {
        let net = |gpus: f64| self.valuation.ceiling(job, pool, gpus) - price * gpus;
        let gpus = f64::from(gpus);
        // The ceiling is concave: once it falls it goes on falling.
        net(gpus) <= best && net(gpus + 1.0) <= net(gpus)
    }

    /// Prices for the problem as it stands, its tables made long enough for them to be right.
    pub(crate) fn outlook(&mut self, guess: Option<&[f64]>) -> Outlook {
        let mut outlook = Outlook::new(&self.problem, guess);
        while self.lengthen(&outlook.proof.shadow.pool) {
            let guess = outlook.proof.shadow.pool;
            outlook = Outlook::new(&self.problem, Some(&guess));
        }
        outlook
    }

    /// Adds the options that could matter at these prices. False if there are none.
    pub(crate) fn lengthen(&mut self, prices: &[f64]) -> bool {
        let n_pools = self.problem.n_pools;
        let mut lengthened = false;
        for job in 0..self.problem.jobs.len() {
            for pool in 0..n_pools {
                let options = &self.problem.jobs[job].options[pool];
                let length = self.length(job, pool);
                let most = self.most[job * n_pools + pool];
                if most <= 1 || length >= most {
                    continue;
                }
                let nets = (1..=length).map(|k| {
                    options.worth(k, false).max(options.worth(k, true)) - prices[pool] * f64::from(k)
                });
                let best = nets.fold(f64::NEG_INFINITY, f64::max);
                if !self.is_hopeless(job, pool, length + 1, prices[pool], best) {
                    let mut options = std::mem::take(&mut self.problem.jobs[job].options[pool]);
                    let enough = Enough { price: Some(0.7 * prices[pool]), at_least: 0 };
                    self.extend(&mut options, job, pool, most, &enough);
                    self.problem.jobs[job].options[pool] = options;
                    lengthened = true;
                }
            }
        }
        lengthened
    }

    /// Adds the options that could matter at the prices of pieces. False if there are none.
    pub(crate) fn lengthen_for(&mut self, sharp: &Sharp) -> bool {
        let mut lengthened = false;
        for job in 0..self.problem.jobs.len() {
            for pool in 0..self.problem.n_pools {
                if let Some((gpus, _)) = self.beyond(job, pool, sharp) {
                    let mut options = std::mem::take(&mut self.problem.jobs[job].options[pool]);
                    let enough = Enough { price: None, at_least: gpus };
                    self.extend(&mut options, job, pool, gpus, &enough);
                    self.problem.jobs[job].options[pool] = options;
                    lengthened = true;
                }
            }
        }
        lengthened
    }

    /// What all options that are still left out could add to the bound.
    pub(crate) fn unlisted(&self, solution: &Solution) -> f64 {
        let Some(sharp) = &solution.sharp else { return 0.0 };
        let jobs = 0..self.problem.jobs.len();
        let most = |job| {
            (0..self.problem.n_pools)
                .filter_map(|pool| self.beyond(job, pool, sharp))
                .map(|(_, gain)| gain)
                .fold(0.0, f64::max)
        };
        jobs.map(most).sum()
    }

    /// The largest number of GPUs that a job's table leaves out although it might pay, and the most that any might.
    fn beyond(&self, job: usize, pool: usize, sharp: &Sharp) -> Option<(u32, f64)> {
        let length = self.length(job, pool);
        let most = self.most[job * self.problem.n_pools + pool];
        let costs = &sharp.costs[pool];
        let mut found: Option<(u32, f64)> = None;
        for gpus in length + 1..=most {
            // Beyond the list it costs no less than at its end.
            let cost = costs.get(gpus as usize).or(costs.last()).copied().unwrap_or(0.0);
            let gain = self.valuation.ceiling(job, pool, f64::from(gpus)) - cost - sharp.nets[job];
            if gain > 0.0 {
                found = Some((gpus, found.map_or(gain, |(_, most)| most.max(gain))));
            }
        }
        found
    }

    fn length(&self, job: usize, pool: usize) -> u32 {
        let options = &self.problem.jobs[job].options[pool];
        u32::try_from(options.one_node.len().max(options.spread.len() + 1)).unwrap_or(u32::MAX)
    }
}

/// How long a table has to be: until nothing more can pay at a price, or a first guess.
struct Enough {
    price: Option<f64>,
    at_least: u32,
}
