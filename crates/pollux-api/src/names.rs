//! What people call nodes, groups and jobs. Inside they are numbers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pollux_model::{JobId, NodeId};
use pollux_policy::GroupId;

/// The names that belong to the ids of a snapshot and its plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names of nodes.
    pub nodes: BTreeMap<NodeId, String>,
    /// Names of groups.
    pub groups: BTreeMap<GroupId, String>,
    /// Names of jobs.
    pub jobs: BTreeMap<JobId, String>,
}

impl Names {
    /// The node's name; `node-7` for number 7 if it has none.
    pub fn node(&self, id: NodeId) -> Cow<'_, str> {
        named(&self.nodes, &id, "node", u64::from(id.0))
    }

    /// The group's name; `group-7` for number 7 if it has none.
    pub fn group(&self, id: GroupId) -> Cow<'_, str> {
        named(&self.groups, &id, "group", u64::from(id.0))
    }

    /// The job's name; `job-7` for number 7 if it has none.
    pub fn job(&self, id: JobId) -> Cow<'_, str> {
        named(&self.jobs, &id, "job", id.0)
    }
}

fn named<'a, K: Ord>(names: &'a BTreeMap<K, String>, id: &K, what: &str, number: u64) -> Cow<'a, str> {
    names.get(id).map_or_else(|| format!("{what}-{number}").into(), |name| name.as_str().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_name_is_called_by_its_number() {
        let jobs = BTreeMap::from([(JobId(3), "bert".to_owned())]);
        let names = Names { jobs, ..Names::default() };
        assert_eq!((names.job(JobId(3)).as_ref(), names.job(JobId(4)).as_ref()), ("bert", "job-4"));
        assert_eq!((names.node(NodeId(0)).as_ref(), names.group(GroupId(1)).as_ref()), ("node-0", "group-1"));
    }
}
