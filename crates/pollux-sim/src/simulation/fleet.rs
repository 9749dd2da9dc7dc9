//! Rented nodes of a simulated cluster: when they come, when they are taken back, what they cost.

use std::collections::BTreeMap;
use std::time::Duration;

use pollux_core::PoolId;
use pollux_model::{GpuType, NodeId, Timestamp};

use crate::bill::{NodeBill, PoolBill, SizeChange};
use crate::cloud::{Cloud, CloudPool};
use crate::random;

/// The nodes there are, and the bill so far.
pub(super) struct Fleet<'a> {
    cloud: &'a Cloud,
    seed: u64,
    n_joined: u32,
    /// By node its pool, and since when it is paid for.
    nodes: BTreeMap<NodeId, (usize, Timestamp)>,
    bill: NodeBill,
}

/// A node that has come.
pub(super) struct Joined {
    pub(super) node: NodeId,
    pub(super) pool: PoolId,
    pub(super) gpu_type: GpuType,
    /// When its provider says that it takes it back.
    pub(super) warned_at: Option<Timestamp>,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(cloud: &'a Cloud, seed: u64) -> Self {
        let pool = |CloudPool { name, pool, .. }: &CloudPool| PoolBill {
            name: name.clone(),
            gpus: pool.node.gpus,
            node_secs: 0.0,
            cost: 0.0,
            reclaimed: 0,
        };
        let bill = NodeBill { pools: cloud.pools.iter().map(pool).collect(), changes: Vec::new() };
        Self { cloud, seed, n_joined: 0, nodes: BTreeMap::new(), bill }
    }

    /// How long nodes of a pool take to be there.
    pub(super) fn ready_after(&self, pool: PoolId) -> Duration {
        self.cloud.pools.get(pool.0 as usize).map_or(Duration::ZERO, |found| found.pool.ready_after)
    }

    /// A node comes that was ordered then.
    pub(super) fn join(&mut self, now: Timestamp, ordered: Timestamp, pool: PoolId) -> Option<Joined> {
        let index = pool.0 as usize;
        let found = self.cloud.pools.get(index)?;
        let node = NodeId(self.n_joined);
        self.n_joined += 1;
        self.nodes.insert(node, (index, ordered));
        self.count(now, index);
        let warned_at = found.reclaims.filter(|reclaims| reclaims.per_hour > 0.0).map(|reclaims| {
            // A stream for each node: who comes or goes changes nothing for the others.
            let mut chance = random::numbered(self.seed, "reclaims", node.0.into());
            now + Duration::from_secs_f64(chance.exponential(3_600.0 / reclaims.per_hour))
        });
        Some(Joined { node, pool, gpu_type: found.pool.node.gpu_type.clone(), warned_at })
    }

    /// A node is to be taken back; says when it is gone, if it is still there.
    pub(super) fn reclaim(&mut self, now: Timestamp, node: NodeId) -> Option<Timestamp> {
        let (pool, _) = *self.nodes.get(&node)?;
        self.bill.pools[pool].reclaimed += 1;
        Some(now + self.cloud.pools[pool].reclaims?.warning)
    }

    /// A node goes; says whether it was there.
    pub(super) fn leave(&mut self, now: Timestamp, node: NodeId) -> bool {
        let Some((pool, since)) = self.nodes.remove(&node) else { return false };
        self.charge(now, pool, since);
        self.count(now, pool);
        true
    }

    /// What everything cost until now.
    pub(super) fn close(mut self, now: Timestamp) -> NodeBill {
        for (pool, since) in std::mem::take(&mut self.nodes).into_values() {
            self.charge(now, pool, since);
        }
        self.bill
    }

    fn charge(&mut self, now: Timestamp, pool: usize, since: Timestamp) {
        let found = &self.cloud.pools[pool].pool;
        let secs = (now - since).max(found.min_hold).as_secs_f64();
        self.bill.pools[pool].node_secs += secs;
        self.bill.pools[pool].cost += secs / 3_600.0 * found.price;
    }

    fn count(&mut self, at: Timestamp, pool: usize) {
        let nodes = self.nodes.values().filter(|(of, _)| *of == pool).count();
        let nodes = u32::try_from(nodes).unwrap_or(u32::MAX);
        match self.bill.changes.last_mut() {
            Some(last) if last.at == at && last.pool == pool => last.nodes = nodes,
            _ => self.bill.changes.push(SizeChange { at, pool, nodes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::cloud::parse_cloud;

    #[test] // 7 an hour: half an hour is 3.5, a minute is billed as ten of them, and the last runs for an hour.
    fn a_node_is_paid_for_from_order_to_return() {
        let text = r#"{"version": 1, "pools": [{"name": "a", "gpu_type": "t4", "gpus": 4,
            "nodes": {"min": 0, "max": 8}, "price_per_hour": 7, "min_hold_s": 600}]}"#;
        let cloud = parse_cloud(Path::new("c.json"), text).unwrap();
        let mut fleet = Fleet::new(&cloud, 1);
        let at = Timestamp::from_secs;
        let mut join = |now, ordered| fleet.join(at(now), at(ordered), PoolId(0)).unwrap().node;
        let (one, other, last) = (join(60, 0), join(60, 60), join(100, 100));
        assert!(fleet.leave(at(120), other));
        assert!(fleet.leave(at(1_800), one));
        assert!(!fleet.leave(at(1_800), one));
        let bill = fleet.close(at(3_700));
        assert_eq!(last, NodeId(2));
        assert!((bill.cost() - (3.5 + 7.0 / 6.0 + 7.0)).abs() < 1e-9, "{bill:?}");
        let sizes = [(60, 2), (100, 3), (120, 2), (1_800, 1)].map(|(secs, nodes)| (at(secs), nodes));
        assert_eq!(bill.totals(), sizes);
        assert!(bill.to_csv().ends_with("\n1800,a,1\n"));
    }
}
