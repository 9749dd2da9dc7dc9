//! Nodes that are rented: they come, and go.

use pollux_core::{Input, Outcome, Phase, Pool, PoolId};
use pollux_model::{NodeId, Timestamp};

use super::{Coming, World};
use crate::driver::job_id;
use crate::simulation::{Options, SimulationError};

impl World<'_> {
    /// The nodes that are there at the beginning.
    pub(super) fn rent(&mut self) -> Result<(), SimulationError> {
        let Some(cloud) = &self.options.cloud else { return Ok(()) };
        let pools: Vec<Pool> = cloud.pools.iter().map(|known| known.pool.clone()).collect();
        // Those that are there need not be ordered.
        let at_first = pools.iter().map(|pool| Pool { least: 0, ..pool.clone() }).collect();
        self.tell(Timestamp::ZERO, Input::PoolsSet(at_first))?;
        for known in &cloud.pools {
            for _ in 0..known.start {
                self.node_joins(Timestamp::ZERO, known.pool.id, Timestamp::ZERO)?;
            }
        }
        self.tell(Timestamp::ZERO, Input::PoolsSet(pools))
    }

    pub(super) fn node_joins(
        &mut self,
        now: Timestamp,
        pool: PoolId,
        ordered: Timestamp,
    ) -> Result<(), SimulationError> {
        let joined = self.fleet.as_mut().and_then(|fleet| fleet.join(now, ordered, pool));
        let Some(joined) = joined else { return Ok(()) };
        self.types.insert(joined.node, joined.gpu_type);
        if let Some(at) = joined.warned_at {
            self.schedule(at, Coming::Reclaim(joined.node));
        }
        self.tell(now, Input::PoolNodeJoined(joined.node, joined.pool))
    }

    /// A node goes, and what is still on it.
    pub(super) fn node_leaves(&mut self, now: Timestamp, node: NodeId) -> Result<(), SimulationError> {
        if !self.fleet.as_mut().is_some_and(|fleet| fleet.leave(now, node)) {
            return Ok(());
        }
        let is_there = |index: &usize| self.members[*index].allocation.on(node).is_some();
        let there: Vec<usize> = (0..self.members.len()).filter(is_there).collect();
        for index in &there {
            self.stop(now, *index);
        }
        self.tell(now, Input::NodeLost(node))?;
        for index in there {
            let phase = self.driver.scheduler().job(job_id(index)).map(|job| job.phase);
            if phase == Some(Phase::Ended(Outcome::Failed)) {
                let job = self.members[index].submission.name.clone();
                return Err(SimulationError::LostWithNode { job });
            }
        }
        Ok(())
    }
}

/// How fast nodes exchange gradients against those that were measured.
pub(super) fn network(options: &Options) -> f64 {
    options.cloud.as_ref().map_or(1.0, |cloud| cloud.network)
}
