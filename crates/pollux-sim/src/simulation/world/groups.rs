//! Groups of jobs: teams or queues.

use std::collections::{BTreeMap, BTreeSet};

use pollux_core::{Input, JobSpec};
use pollux_model::Timestamp;
use pollux_policy::{Group, GroupId};

use super::World;
use crate::simulation::SimulationError;
use crate::workload::Workload;

/// The groups that jobs of a workload name, numbered by name.
pub(super) fn numbered(workload: &Workload) -> BTreeMap<String, GroupId> {
    let names: BTreeSet<&String> = workload.jobs.iter().filter_map(|job| job.group.as_ref()).collect();
    names.into_iter().cloned().zip((0..).map(GroupId)).collect()
}

impl World<'_> {
    /// Tells the scheduler of the groups, if there are any. They are entitled to nothing and have no caps.
    pub(super) fn form_groups(&mut self) -> Result<(), SimulationError> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let group =
            |id: &GroupId| Group { id: *id, parent: None, entitled: BTreeMap::new(), caps: BTreeMap::new() };
        let groups = self.groups.values().map(group).collect();
        self.tell(Timestamp::ZERO, Input::GroupsSet(groups))
    }

    /// A job counts for its group, and as much as one of that group's jobs does.
    pub(super) fn join_group(&self, index: usize, spec: &mut JobSpec) {
        let Some(name) = &self.members[index].submission.group else { return };
        spec.group = self.groups.get(name).copied();
        spec.weight *= self.options.group_weights.get(name).copied().unwrap_or(1.0);
    }
}
