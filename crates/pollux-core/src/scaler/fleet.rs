//! Nodes bought, drained and given back.

use std::collections::{BTreeMap, BTreeSet};

use pollux_model::{JobId, NodeId, Timestamp};
use pollux_policy::Snapshot;

use super::outlook::{open_gpus, utility_now};
use super::question::{PoolNow, SizeQuestion, Sizes};
use super::{Leaving, Pool, PoolId, ScaleRule, SizeId};
use crate::effect::Effect;
use crate::input::Refused;
use crate::job::{Job, Phase};
use crate::rounds::mixed;
use crate::scheduler::{Effects, Scheduler};

/// What is known of pools besides their nodes, which the ledger has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// The pools.
    pub stocks: BTreeMap<PoolId, Stock>,
    /// Since when the size is wrong, and in which way.
    pub wrong: Option<(Way, Timestamp)>,
    /// The latest question about sizes.
    pub latest: SizeId,
    /// The question whose answer is awaited.
    pub awaited: Option<SizeId>,
    /// When the latest question was asked.
    pub asked_at: Option<Timestamp>,
    /// The latest answer changed nothing.
    pub is_fruitless: bool,
}

/// A pool, what is wanted of it and what is on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct Stock {
    /// The pool.
    pub pool: Pool,
    /// Nodes it is to have.
    pub target: u32,
    /// Orders, and when they were given.
    pub pending: Vec<(Timestamp, u32)>,
    /// Orders that failed in a row.
    pub failures: u32,
    /// When the next order may be given.
    pub not_before: Timestamp,
}

/// In which way a cluster's size is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// More nodes would pay.
    TooSmall,
    /// Fewer nodes would do.
    TooLarge,
}

impl Fleet {
    /// What of it no scheduler can have written, if anything.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let is_sound = |(id, stock): (&PoolId, &Stock)| {
            let pending = stock.pending.iter().try_fold(0_u32, |sum, (_, nodes)| sum.checked_add(*nodes));
            *id == stock.pool.id && stock.pool.check().is_ok() && pending.is_some()
        };
        if !self.stocks.iter().all(is_sound) {
            Some("fleet.stocks")
        } else if self.awaited.is_some_and(|awaited| awaited != self.latest) {
            Some("fleet.awaited")
        } else {
            None
        }
    }
}

impl Stock {
    fn n_pending(&self) -> u32 {
        self.pending.iter().fold(0, |sum, (_, nodes)| sum.saturating_add(*nodes))
    }

    fn wanted(&self) -> u32 {
        self.target.clamp(self.pool.least, self.pool.most)
    }

    /// So many nodes are not awaited any more, the oldest orders first.
    fn settle(&mut self, mut nodes: u32) {
        for (_, order) in &mut self.pending {
            let settled = nodes.min(*order);
            *order -= settled;
            nodes -= settled;
        }
        self.pending.retain(|(_, order)| *order > 0);
    }
}

/// What is said of pools.
impl Scheduler {
    pub(crate) fn set_pools(&mut self, now: Timestamp, pools: Vec<Pool>) -> Effects {
        let mut stocks = BTreeMap::new();
        for pool in pools {
            pool.check()?;
            let id = pool.id;
            let target = self.in_service(id);
            let stock = Stock { pool, target, pending: Vec::new(), failures: 0, not_before: now };
            if stocks.insert(id, stock).is_some() {
                return Err(Refused::PoolInUse(id));
            }
        }
        let used = self.ledger.members().filter_map(|member| member.of_pool);
        let ordered = self.fleet.stocks.values().filter(|stock| stock.n_pending() > 0);
        for id in used.map(|(id, _)| id).chain(ordered.map(|stock| stock.pool.id)) {
            if !stocks.contains_key(&id) {
                return Err(Refused::PoolInUse(id));
            }
        }
        for (id, before) in std::mem::take(&mut self.fleet.stocks) {
            if let Some(stock) = stocks.get_mut(&id) {
                *stock = Stock { pool: stock.pool.clone(), ..before };
            }
        }
        self.fleet.stocks = stocks;
        Ok(self.happened(now))
    }

    pub(crate) fn join_pool(&mut self, now: Timestamp, node: NodeId, id: PoolId) -> Effects {
        let stock = self.fleet.stocks.get(&id).ok_or(Refused::UnknownPool(id))?;
        let effects = self.join(now, node, stock.pool.node.clone(), Some(id))?;
        let n_nodes = self.in_service(id);
        if let Some(stock) = self.fleet.stocks.get_mut(&id) {
            if stock.pending.is_empty() {
                stock.target = stock.target.max(n_nodes);
            }
            stock.settle(1);
            stock.failures = 0;
        }
        self.fleet.wrong = None;
        Ok(effects)
    }

    pub(crate) fn grow_failed(&mut self, now: Timestamp, id: PoolId, nodes: u32) -> Effects {
        let config = self.config;
        let stock = self.fleet.stocks.get_mut(&id).ok_or(Refused::UnknownPool(id))?;
        stock.settle(nodes);
        stock.failures = stock.failures.saturating_add(1);
        stock.not_before = now + config.back_off_after(stock.failures);
        Ok(vec![Effect::WakeAt(stock.not_before)])
    }

    /// A node will be gone soon: a plan moves its jobs, and who is still there shortly before is stopped.
    pub(crate) fn reclaim(&mut self, now: Timestamp, node: NodeId, deadline: Timestamp) -> Effects {
        self.known_node(node)?;
        self.ledger.set_leaving(node, Some(Leaving::Reclaimed(deadline)));
        self.withdraw();
        self.rounds.is_stale = true;
        let mut effects = vec![Effect::WakeAt(self.last_call(deadline).max(now))];
        if self.rounds.awaited.is_none() {
            effects.extend(self.solve(now));
        } else {
            self.rounds.is_urgent = true;
        }
        Ok(effects)
    }

    /// No answer comes any more to the question about sizes.
    pub(crate) fn forget_question(&mut self) {
        self.fleet.awaited = None;
    }

    pub(crate) fn resize(&mut self, id: SizeId, sizes: &Sizes) -> Effects {
        if self.fleet.awaited != Some(id) {
            return Err(Refused::UnknownQuestion(id));
        }
        self.fleet.awaited = None;
        self.fleet.is_fruitless = true;
        for (pool, size) in sizes {
            let n_nodes = self.in_service(*pool);
            if let Some(stock) = self.fleet.stocks.get_mut(pool) {
                stock.target = *size;
                self.fleet.is_fruitless &= stock.wanted() == n_nodes;
            }
        }
        Ok(Vec::new())
    }
}

/// When and what to ask.
impl Scheduler {
    /// Looks at a round that begins: whether the size of the cluster is to be thought about.
    pub(crate) fn look(&mut self, now: Timestamp, snapshot: &Snapshot) -> Option<Effect> {
        let scaler = self.config.scaler?;
        let is_busy = |stock: &Stock| !stock.pending.is_empty();
        if self.fleet.awaited.is_some() || self.fleet.stocks.is_empty() {
            return None;
        }
        if self.fleet.stocks.values().any(is_busy) {
            self.fleet.wrong = None;
            return None;
        }
        let is_starved = self.is_anybody_starved(snapshot);
        let waited = |since: Timestamp| now - since >= scaler.patience;
        let may_ask_again = !self.fleet.is_fruitless || self.fleet.asked_at.is_none_or(waited);
        let (is_due, way) = match scaler.rule {
            ScaleRule::Goodput { low, high } => {
                let utility = utility_now(snapshot);
                let way = match utility {
                    _ if is_starved => Way::TooSmall,
                    _ if utility > high => Way::TooSmall,
                    _ if utility < low => Way::TooLarge,
                    _ => {
                        self.fleet.wrong = None;
                        self.stay();
                        return None;
                    }
                };
                let since = self.fleet.wrong.filter(|(before, _)| *before == way).map_or(now, |(_, at)| at);
                self.fleet.wrong = Some((way, since));
                (waited(since) || is_starved && may_ask_again, Some(way))
            }
            ScaleRule::Cost { .. } | ScaleRule::Throughput { .. } => {
                let is_time = self.fleet.asked_at.is_none_or(waited);
                (is_time || is_starved && may_ask_again, None)
            }
        };
        is_due.then(|| self.ask(now, snapshot, scaler.rule, way))
    }

    fn ask(&mut self, now: Timestamp, snapshot: &Snapshot, rule: ScaleRule, way: Option<Way>) -> Effect {
        let id = SizeId(self.fleet.latest.0 + 1);
        self.fleet.latest = id;
        self.fleet.awaited = Some(id);
        self.fleet.asked_at = Some(now);
        self.fleet.wrong = None;
        let question = SizeQuestion {
            snapshot: snapshot.clone(),
            rule,
            may_grow: way != Some(Way::TooLarge),
            may_shrink: way != Some(Way::TooSmall),
            seed: mixed(self.config.seed, self.rounds.latest),
            pools: self.fleet.stocks.values().map(|stock| self.now_of(now, stock)).collect(),
        };
        Effect::Size { id, question: Box::new(question) }
    }

    /// Whether a job waits that the latest plan had nothing for, or that no plan could have anything for.
    fn is_anybody_starved(&self, snapshot: &Snapshot) -> bool {
        let nothing_there = open_gpus(snapshot.cluster()) <= 0.0;
        let mut waiting = snapshot.jobs().iter().filter(|job| job.holds.is_empty());
        waiting.any(|job| {
            let was_planned = self.jobs.get(&job.id).is_some_and(|job| job.explanation.is_some());
            nothing_there || was_planned
        })
    }

    fn now_of(&self, now: Timestamp, stock: &Stock) -> PoolNow {
        let fixed = self.fixed_nodes(now, &stock.pool);
        let mut nodes: Vec<(bool, u32, NodeId)> = self
            .nodes_of(stock.pool.id)
            .map(|(node, held)| (!fixed.contains(&node), u32::MAX - held, node))
            .collect();
        nodes.sort_unstable();
        let n_nodes = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let n_fixed = nodes.iter().filter(|(is_spare, ..)| !is_spare).count();
        PoolNow {
            pool: stock.pool.clone(),
            nodes: nodes.into_iter().map(|(.., node)| node).collect(),
            fixed: u32::try_from(n_fixed).unwrap_or(u32::MAX),
            most: if now < stock.not_before { n_nodes } else { stock.pool.most.max(n_nodes) },
        }
    }

    /// Nodes that are paid for anyway, or hold jobs that cannot be moved.
    fn fixed_nodes(&self, now: Timestamp, pool: &Pool) -> BTreeSet<NodeId> {
        let jobs = self.active.iter().map(|id| &self.jobs[id]).filter(|job| !is_movable(job));
        let mut fixed: BTreeSet<NodeId> =
            jobs.flat_map(|job| job.held.iter().chain(job.wanted.iter())).map(|(node, _)| node).collect();
        let is_paid = |joined: Timestamp| now - joined < pool.min_hold;
        let members = self.ledger.members();
        fixed.extend(members.filter(|m| m.of_pool.is_some_and(|(_, at)| is_paid(at))).map(|m| m.node));
        fixed
    }

    /// Nodes of a pool that stay, with the GPUs held there.
    fn nodes_of(&self, id: PoolId) -> impl Iterator<Item = (NodeId, u32)> {
        let is_of = move |of_pool: Option<(PoolId, Timestamp)>| of_pool.is_some_and(|(of, _)| of == id);
        let members = self.ledger.members();
        members.filter(move |m| is_of(m.of_pool) && m.leaving.is_none()).map(|m| (m.node, m.held))
    }

    fn in_service(&self, id: PoolId) -> u32 {
        u32::try_from(self.nodes_of(id).count()).unwrap_or(u32::MAX)
    }

    /// The sizes are right as they are.
    fn stay(&mut self) {
        let counts: Vec<(PoolId, u32)> =
            self.fleet.stocks.keys().map(|id| (*id, self.in_service(*id))).collect();
        for (id, n_nodes) in counts {
            if let Some(stock) = self.fleet.stocks.get_mut(&id) {
                stock.target = n_nodes.saturating_add(stock.n_pending());
            }
        }
    }
}

/// What is done about it.
impl Scheduler {
    /// After everything that happened: orders nodes, empties those that are spare and gives back who is empty.
    pub(crate) fn tend(&mut self, now: Timestamp) -> Vec<Effect> {
        let mut effects = self.make_last_calls(now);
        if self.fleet.stocks.is_empty() {
            return effects;
        }
        self.give_up_idle(now);
        let mut has_changed = false;
        let ids: Vec<PoolId> = self.fleet.stocks.keys().copied().collect();
        for id in ids {
            let n_nodes = self.in_service(id);
            let Some(stock) = self.fleet.stocks.get_mut(&id) else { continue };
            let overdue = |&(asked, _): &(Timestamp, u32)| stock.pool.overdue(asked) <= now;
            let n_overdue =
                stock.pending.iter().filter(|order| overdue(order)).map(|(_, nodes)| *nodes).sum();
            if n_overdue > 0 {
                stock.settle(n_overdue);
                stock.failures = stock.failures.saturating_add(1);
                stock.not_before = now + self.config.back_off_after(stock.failures);
            }
            let (wanted, pending) = (stock.wanted(), stock.n_pending());
            let coming = n_nodes.saturating_add(pending);
            if coming < wanted {
                let kept = self.keep_after_all(id, wanted - coming);
                has_changed |= kept > 0;
                effects.extend(self.order(now, id, wanted - coming - kept));
            } else if pending == 0 && n_nodes > wanted {
                has_changed |= self.empty_spare(now, id, n_nodes - wanted);
            }
        }
        if has_changed {
            self.fleet.wrong = None;
            self.withdraw();
            effects.extend(self.happened(now));
        }
        effects.extend(self.release_empty());
        effects
    }

    fn order(&mut self, now: Timestamp, id: PoolId, nodes: u32) -> Option<Effect> {
        let stock = self.fleet.stocks.get_mut(&id)?;
        if nodes == 0 || now < stock.not_before {
            return None;
        }
        stock.pending.push((now, nodes));
        Some(Effect::Grow { pool: id, nodes })
    }

    /// Nodes that were to go stay, up to so many; says how many.
    fn keep_after_all(&mut self, id: PoolId, most: u32) -> u32 {
        let is_of = |of_pool: Option<(PoolId, Timestamp)>| of_pool.is_some_and(|(of, _)| of == id);
        let members = self.ledger.members();
        let spare = members.filter(|m| is_of(m.of_pool) && m.leaving == Some(Leaving::Spare));
        let spare: Vec<NodeId> = spare.map(|member| member.node).take(most as usize).collect();
        for node in &spare {
            self.ledger.set_leaving(*node, None);
        }
        u32::try_from(spare.len()).unwrap_or(u32::MAX)
    }

    /// Begins to empty nodes that can be, those with the least on them first; says whether there are any.
    fn empty_spare(&mut self, now: Timestamp, id: PoolId, most: u32) -> bool {
        let Some(stock) = self.fleet.stocks.get(&id) else { return false };
        let PoolNow { nodes, fixed, .. } = self.now_of(now, stock);
        let spare: Vec<NodeId> = nodes[fixed as usize..].iter().rev().take(most as usize).copied().collect();
        for node in &spare {
            self.ledger.set_leaving(*node, Some(Leaving::Spare));
        }
        !spare.is_empty()
    }

    fn release_empty(&mut self) -> Vec<Effect> {
        let is_empty = |m: &crate::ledger::Member| m.leaving == Some(Leaving::Spare) && m.held == 0;
        let empty: Vec<NodeId> = self.ledger.members().filter(is_empty).map(|member| member.node).collect();
        for node in &empty {
            self.ledger.set_leaving(*node, Some(Leaving::Released));
        }
        empty.into_iter().map(|node| Effect::Release { node }).collect()
    }

    /// Jobs that are still on a node shortly before it is taken back are stopped, so that they save their state. Who
    /// never reported could not come back, and stays to the end.
    fn make_last_calls(&mut self, now: Timestamp) -> Vec<Effect> {
        let is_due = |leaving| matches!(leaving, Leaving::Reclaimed(at) if self.last_call(at) <= now);
        let due = self.ledger.leaving().filter(|(_, leaving)| is_due(*leaving));
        let nodes: Vec<NodeId> = due.map(|(node, _)| node).collect();
        let mut effects = Vec::new();
        for node in nodes {
            let is_there = |id: &&JobId| {
                let job = &self.jobs[id];
                job.held.on(node).is_some() && job.can_come_back()
            };
            let jobs: Vec<JobId> = self.active.iter().filter(is_there).copied().collect();
            for id in jobs {
                let Some(job) = self.jobs.get_mut(&id) else { continue };
                if matches!(job.phase, Phase::Starting | Phase::Running) {
                    job.wanted = pollux_model::Allocation::none();
                    effects.extend(self.ask_to_leave(now, id));
                }
            }
        }
        effects
    }

    /// When jobs must be asked to leave that are to be gone by then: a restart's cost earlier.
    fn last_call(&self, deadline: Timestamp) -> Timestamp {
        let cost = u64::try_from(self.config.restart_cost.as_micros()).unwrap_or(u64::MAX);
        Timestamp::from_micros(deadline.as_micros().saturating_sub(cost))
    }

    /// Where nobody has had anything to do for a while, no more than the fewest nodes are kept.
    fn give_up_idle(&mut self, now: Timestamp) {
        let is_idle = self.active.iter().all(|id| self.jobs[id].suspended && self.jobs[id].held.is_empty());
        let Some(scaler) = self.config.scaler.filter(|_| is_idle) else { return };
        let since = self.fleet.wrong.filter(|(way, _)| *way == Way::TooLarge).map_or(now, |(_, at)| at);
        self.fleet.wrong = Some((Way::TooLarge, since));
        if now - since >= scaler.patience {
            for stock in self.fleet.stocks.values_mut() {
                stock.target = 0;
            }
        }
    }

    /// Whether time alone may bring something about, though no job is there.
    pub(crate) fn is_restless(&self) -> bool {
        let scales = self.config.scaler.is_some();
        self.fleet.stocks.values().any(|stock| {
            let n_nodes = self.in_service(stock.pool.id);
            !stock.pending.is_empty() || n_nodes < stock.wanted() || scales && n_nodes > stock.pool.least
        })
    }

    /// GPUs of the largest node and of all, those included that could be had.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        self.fleet.stocks.values().fold(self.ledger.sizes(), |(largest, all), Stock { pool, .. }| {
            (largest.max(pool.node.gpus), all.max(pool.most.saturating_mul(pool.node.gpus)))
        })
    }
}

/// Whether a job would be moved off its node by a plan: it has reported, and may be stopped.
fn is_movable(job: &Job) -> bool {
    job.can_come_back() && job.spec.preemptible
}
