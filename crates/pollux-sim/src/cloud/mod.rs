//! Clusters whose nodes are rented: pools with prices, and how their sizes are chosen.
//!
//! [`parse_cloud`] reads one from JSON; `docs/reference/cluster.md` describes the format.

mod file;

use std::time::Duration;

use pollux_core::Pool;
pub use pollux_core::{ScaleRule, Scaler};

pub use file::{CloudError, parse_cloud, read_cloud};

use crate::cluster::ClusterShape;

/// A cluster of rented nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Cloud {
    /// What it is called by.
    pub name: String,
    /// Its pools, numbered from 0.
    pub pools: Vec<CloudPool>,
    /// How sizes are chosen; if not at all, they stay as they are.
    pub scaler: Option<Scaler>,
    /// How fast nodes exchange gradients against those that profiles were measured on: 2 is twice as fast.
    pub network: f64,
}

/// A pool, and how it behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudPool {
    /// What it is called by.
    pub name: String,
    /// What the scheduler is told of it.
    pub pool: Pool,
    /// Nodes that are there at the beginning.
    pub start: u32,
    /// How often nodes are taken back; never if none.
    pub reclaims: Option<Reclaims>,
}

/// How a provider takes nodes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reclaims {
    /// Of one node, on average.
    pub per_hour: f64,
    /// Time from the warning until the node is gone.
    pub warning: Duration,
}

impl Cloud {
    /// The cluster with every pool as large as it may be.
    pub fn shape(&self) -> ClusterShape {
        let pools = self.pools.iter().map(|CloudPool { pool, .. }| (pool.most, pool.node.clone()));
        ClusterShape::of_pools(pools.collect())
    }
}
