//! Nodes that came and went, and what they cost.

use std::fmt::Write as _;

use pollux_model::Timestamp;

/// What became of rented nodes; empty where none are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeBill {
    /// The pools.
    pub pools: Vec<PoolBill>,
    /// Their sizes from each moment on, by time.
    pub changes: Vec<SizeChange>,
}

/// What one pool cost.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolBill {
    /// Its name.
    pub name: String,
    /// GPUs of a node.
    pub gpus: u32,
    /// Seconds of all its nodes, from order to return, the shortest that is billed at least.
    pub node_secs: f64,
    /// What they cost.
    pub cost: f64,
    /// Nodes that were taken back.
    pub reclaimed: u32,
}

/// A pool has another size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeChange {
    /// From then on.
    pub at: Timestamp,
    /// The pool's place in the list.
    pub pool: usize,
    /// Its nodes.
    pub nodes: u32,
}

impl NodeBill {
    /// Whether no node was rented.
    pub fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// What all nodes cost.
    pub fn cost(&self) -> f64 {
        self.pools.iter().fold(0.0, |sum, pool| sum + pool.cost)
    }

    /// Hours of all nodes.
    pub fn node_hours(&self) -> f64 {
        self.pools.iter().fold(0.0, |sum, pool| sum + pool.node_secs) / 3_600.0
    }

    /// Seconds of all their GPUs.
    pub fn gpu_secs(&self) -> f64 {
        self.pools.iter().fold(0.0, |sum, pool| sum + pool.node_secs * f64::from(pool.gpus))
    }

    /// Nodes of all pools together, from each moment on.
    pub fn totals(&self) -> Vec<(Timestamp, u32)> {
        let mut sizes = vec![0; self.pools.len()];
        let mut totals: Vec<(Timestamp, u32)> = Vec::new();
        for change in &self.changes {
            sizes[change.pool] = change.nodes;
            let total = sizes.iter().sum();
            match totals.last_mut() {
                Some(last) if last.0 == change.at => last.1 = total,
                _ => totals.push((change.at, total)),
            }
        }
        totals
    }

    /// As lines of CSV: `time_s,pool,nodes`.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("time_s,pool,nodes\n");
        for SizeChange { at, pool, nodes } in &self.changes {
            let written = writeln!(text, "{},{},{nodes}", at.as_secs_f64(), self.pools[*pool].name);
            debug_assert!(written.is_ok(), "a string takes all text");
        }
        text
    }
}
