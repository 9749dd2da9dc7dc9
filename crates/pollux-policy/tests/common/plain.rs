//! The plainest nodes and jobs, to be edited.

use std::sync::Arc;
use std::time::Duration;

use pollux_model::{Allocation, GpuType, JobCurves, JobId, NodeId};
use pollux_policy::{Freedom, Job, Known, Learned, Node, NodeState, Priority};

use super::Dice;
use super::random_snapshot::draw_model;

/// An open node.
pub fn node(id: NodeId, gpu_type: &str, gpus: u32) -> Node {
    Node { id, gpu_type: GpuType::new(gpu_type), gpus, others: 0, state: NodeState::Ready }
}

/// A job that holds nothing and of which nothing is known.
pub fn job(id: JobId) -> Job {
    Job {
        id,
        group: None,
        priority: Priority::Normal,
        weight: 1.0,
        min_gpus: 1,
        max_gpus: None,
        types: [].into(),
        freedom: Freedom::Elastic,
        holds: Allocation::none(),
        age: Duration::from_mins(10),
        attained: 0.0,
        restarts: 0,
        restart_cost: Duration::from_secs(30),
        knows: Known::default(),
    }
}

/// A job that reported, on GPUs that are all as fast.
pub fn profiled(id: JobId, gpu_types: &[&str], most_gpus: u32) -> Job {
    let mut curves = JobCurves::default();
    let model = draw_model(&mut Dice(1));
    curves.update(gpu_types.iter().map(|name| (GpuType::new(name), model.clone())).collect(), 4, 8);
    Job {
        knows: Known { learned: Learned { curves: Arc::new(curves), most_gpus }, ..Known::default() },
        ..job(id)
    }
}
