//! From JSON to a snapshot: the file, its nodes and groups.

use std::collections::BTreeMap;

use pollux_model::{GpuType, JobId, NodeId};
use pollux_policy::{Carried, Cluster, Group, GroupId, Job, Known, Node as ClusterNode, NodeState, Snapshot};

use super::error::{OwnedBy as _, Problem, Trouble};
use super::job::{self, Surroundings};
use super::{MOST_GPUS_PER_NODE, MOST_NODES, NamedSnapshot, VERSION};
use crate::fit_file::Problem as FieldProblem;
use crate::fit_file::node::Node;
use crate::fit_file::read::syntax;
use crate::json;
use crate::names::Names;
use crate::near::nearest;

const FILE: &[&str] = &["version", "comment", "nodes", "gpu_speeds", "groups", "jobs", "prices"];
const NODE: &[&str] = &["name", "count", "gpu_type", "gpus", "used_by_others", "state", "comment"];
const GROUP: &[&str] = &["name", "parent", "entitled", "caps", "comment"];

/// Most of anything that is counted; sums of a few of them stay far from overflow.
const MOST: u64 = 1_000_000_000;
const COUNT: &str = "a whole number from 0 to 1000000000";
const COUNT_FROM_ONE: &str = "a whole number from 1 to 1000000000";
const GPUS_OF_NODE: &str = "a whole number from 0 to 1024";
const NAME: &str = "a name: text without control characters or spaces at its ends";
const STATE: &str = "`ready`, `cordoned` or `draining`";
const SPEED: &str = "a positive number";
const PRICE: &str = "a number, zero or more";

pub(super) fn parse(bytes: &[u8]) -> Result<NamedSnapshot, Trouble> {
    let value = json::strict(bytes).map_err(|error| not_strict(&error))?;
    if !value.is_object() {
        return Err(FieldProblem::NotAnObject.into());
    }
    let file = Node::whole(&value);
    if let Some(version) = file.get("version")
        && version.value.as_u64() != Some(VERSION)
    {
        return Err(Problem::Version { found: version.value.to_string() }.into());
    }
    only(&file, "a snapshot", FILE)?;
    let mut nodes = NamedList::new("node");
    let mut cluster = Cluster { speeds: speeds(&file)?, ..Cluster::default() };
    for node in file.require("nodes")?.items("a list of nodes")? {
        let name = entry_name(&node)?;
        self::nodes(&node, name, &mut nodes, &mut cluster.nodes).of("node", name)?;
    }
    let mut groups = NamedList::new("group");
    if let Some(listed) = file.get("groups") {
        cluster.groups = self::groups(&listed, &mut groups)?;
    }
    let mut jobs = Vec::new();
    let mut job_names = NamedList::new("job");
    let around = Surroundings::new(&cluster, &nodes, &groups);
    for (position, job) in (0..).zip(file.require("jobs")?.items("a list of jobs")?) {
        let name = entry_name(&job)?;
        job_names.add(&job, name).of("job", name)?;
        jobs.push(job::job(&job, JobId(position), &around).of("job", name)?);
    }
    let job_names: BTreeMap<_, _> = job_names.names(|position| JobId(u64::from(position)));
    check_room(&cluster, &jobs, &nodes, &job_names)?;
    let names = Names { nodes: nodes.names(NodeId), groups: groups.names(GroupId), jobs: job_names };
    let prices = by_type(file.get("prices").as_ref(), |price| price.not_negative(PRICE))?;
    let carried = Carried { prices, ..Carried::default() };
    let snapshot = Snapshot::new(cluster, jobs).map_err(Problem::from)?.carrying(carried);
    Ok(NamedSnapshot { snapshot, names })
}

fn not_strict(error: &serde_json::Error) -> Problem {
    match syntax(error) {
        FieldProblem::Syntax { line, column, message } if error.is_data() => {
            Problem::Repeated { line, column, message }
        }
        problem => problem.into(),
    }
}

/// Refuses keys that are not known.
pub(super) fn only(node: &Node<'_>, of: &'static str, known: &'static [&'static str]) -> Result<(), Problem> {
    let unknown = node.object()?.keys().find(|key| !known.contains(&key.as_str()));
    let problem = |key: &String| Problem::UnknownKey {
        key: node.path_of(key),
        of,
        near: nearest(key, known.iter().copied()),
        known,
    };
    unknown.map_or(Ok(()), |key| Err(problem(key)))
}

/// Text that can be shown and told from other text.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && !text.chars().any(char::is_control)
}

fn name<'a>(node: &Node<'a>) -> Result<&'a str, FieldProblem> {
    let text = node.text(NAME)?;
    if is_name(text) { Ok(text) } else { Err(node.problem(NAME)) }
}

/// What an entry of a list calls itself.
fn entry_name<'a>(node: &Node<'a>) -> Result<&'a str, FieldProblem> {
    node.object()?;
    name(&node.require("name")?)
}

pub(super) fn gpu_type(node: &Node<'_>) -> Result<GpuType, FieldProblem> {
    name(node).map(GpuType::new)
}

/// An object with a value for each GPU type; empty if absent.
pub(super) fn by_type<T>(
    node: Option<&Node<'_>>,
    mut read: impl FnMut(&Node<'_>) -> Result<T, FieldProblem>,
) -> Result<BTreeMap<GpuType, T>, FieldProblem> {
    let Some(node) = node else { return Ok(BTreeMap::new()) };
    let mut values = BTreeMap::new();
    for key in node.object()?.keys() {
        if !is_name(key) {
            return Err(FieldProblem::Value { key: node.path.clone(), found: key.clone(), expected: NAME });
        }
        values.insert(GpuType::new(key), read(&node.require(key)?)?);
    }
    Ok(values)
}

pub(super) fn count(node: &Node<'_>) -> Result<u32, FieldProblem> {
    within(node, 0, MOST, COUNT)
}

pub(super) fn count_from_one(node: &Node<'_>) -> Result<u32, FieldProblem> {
    within(node, 1, MOST, COUNT_FROM_ONE)
}

fn within(node: &Node<'_>, least: u64, most: u64, expected: &'static str) -> Result<u32, FieldProblem> {
    let number = node.value.as_u64().filter(|number| (least..=most).contains(number));
    number.and_then(|number| u32::try_from(number).ok()).ok_or_else(|| node.problem(expected))
}

pub(super) fn positive(node: &Node<'_>, expected: &'static str) -> Result<f64, FieldProblem> {
    let number = node.value.as_f64().filter(|number| *number > 0.0);
    number.ok_or_else(|| node.problem(expected))
}

/// One of a few words; the first if absent.
pub(super) fn word<T: Copy>(
    node: Option<&Node<'_>>,
    words: &[(&str, T)],
    expected: &'static str,
) -> Result<T, FieldProblem> {
    let Some(node) = node else { return Ok(words[0].1) };
    let text = node.text(expected)?;
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| node.problem(expected))
}

fn speeds(file: &Node<'_>) -> Result<BTreeMap<GpuType, f64>, FieldProblem> {
    by_type(file.get("gpu_speeds").as_ref(), |speed| positive(speed, SPEED))
}

/// A node, or the `count` nodes that one entry stands for.
fn nodes(
    node: &Node<'_>,
    name: &str,
    names: &mut NamedList,
    nodes: &mut Vec<ClusterNode>,
) -> Result<(), Problem> {
    only(node, "a node", NODE)?;
    let gpu_type = node.get("gpu_type").map_or(Ok(GpuType::default()), |node| gpu_type(&node))?;
    let gpus_of = |node: &Node<'_>| within(node, 0, u64::from(MOST_GPUS_PER_NODE), GPUS_OF_NODE);
    let gpus = gpus_of(&node.require("gpus")?)?;
    let others = node.get("used_by_others").map_or(Ok(0), |others| gpus_of(&others))?;
    if others > gpus {
        return Err(Problem::Overfull { gpus, others, held: 0, by: Vec::new() });
    }
    let states =
        [("ready", NodeState::Ready), ("cordoned", NodeState::Cordoned), ("draining", NodeState::Draining)];
    let state = word(node.get("state").as_ref(), &states, STATE)?;
    let mut add = |name: &str| {
        if names.len() >= MOST_NODES {
            return Err(Problem::TooManyNodes { key: node.path.clone() });
        }
        let id = NodeId(names.add(node, name)?);
        nodes.push(ClusterNode { id, gpu_type: gpu_type.clone(), gpus, others, state });
        Ok(())
    };
    match node.get("count").map(|node| count_from_one(&node)).transpose()? {
        None => add(name),
        Some(count) => (0..count).try_for_each(|number| add(&format!("{name}-{number}"))),
    }
}

fn groups(listed: &Node<'_>, names: &mut NamedList) -> Result<Vec<Group>, Trouble> {
    let mut groups = Vec::new();
    for node in listed.items("a list of groups")? {
        let name = entry_name(&node)?;
        groups.push(group(&node, name, names).of("group", name)?);
    }
    // A parent may come after its children.
    for (node, group) in listed.items("a list of groups")?.zip(&mut groups) {
        if let Some(parent) = node.get("parent") {
            let name = entry_name(&node)?;
            group.parent = Some(GroupId(names.find(&parent).of("group", name)?));
        }
    }
    for (position, node) in listed.items("a list of groups")?.enumerate() {
        if is_cyclic(&groups, position) {
            let key = node.path_of("parent");
            return Err(Problem::CyclicGroups { key }).of("group", entry_name(&node)?);
        }
    }
    Ok(groups)
}

fn group(node: &Node<'_>, name: &str, names: &mut NamedList) -> Result<Group, Problem> {
    only(node, "a group", GROUP)?;
    let id = GroupId(names.add(node, name)?);
    let counts = |key: &str| by_type(node.get(key).as_ref(), count);
    Ok(Group { id, parent: None, entitled: counts("entitled")?, caps: counts("caps")? })
}

/// Whether the way up from a group never ends.
fn is_cyclic(groups: &[Group], position: usize) -> bool {
    let mut at = groups[position].parent;
    for _ in 0..groups.len() {
        let Some(GroupId(parent)) = at else { return false };
        at = groups.get(parent as usize).and_then(|group| group.parent);
    }
    at.is_some()
}

/// That no node holds more than it has.
fn check_room(
    cluster: &Cluster,
    jobs: &[Job<Known>],
    names: &NamedList,
    job_names: &BTreeMap<JobId, String>,
) -> Result<(), Trouble> {
    /// Holders named in the message.
    const SHOWN: usize = 4;
    let mut held = vec![0_u64; cluster.nodes.len()];
    for (node, share) in jobs.iter().flat_map(|job| job.holds.iter()) {
        held[node.0 as usize] += u64::from(share.n_replicas());
    }
    for (node, held) in cluster.nodes.iter().zip(held) {
        if held + u64::from(node.others) > u64::from(node.gpus) {
            let holders = jobs.iter().filter_map(|job| Some((job.id, job.holds.on(node.id)?.n_replicas())));
            let by = holders.take(SHOWN).map(|(id, gpus)| (job_names[&id].clone(), gpus)).collect();
            let problem = Problem::Overfull { gpus: node.gpus, others: node.others, held, by };
            return Err(problem).of("node", &names.names[node.id.0 as usize]);
        }
    }
    Ok(())
}

/// Names of a list of things; the position in the list is the id.
pub(super) struct NamedList {
    what: &'static str,
    names: Vec<String>,
    positions: BTreeMap<String, u32>,
}

impl NamedList {
    fn new(what: &'static str) -> Self {
        Self { what, names: Vec::new(), positions: BTreeMap::new() }
    }

    fn len(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// Takes a name, and gives its position.
    fn add(&mut self, node: &Node<'_>, name: &str) -> Result<u32, Problem> {
        let position = self.len();
        if self.positions.insert(name.to_owned(), position).is_some() {
            return Err(Problem::SameName {
                key: node.path_of("name"),
                what: self.what,
                name: name.to_owned(),
            });
        }
        self.names.push(name.to_owned());
        Ok(position)
    }

    /// The position of what a value names.
    pub(super) fn find(&self, node: &Node<'_>) -> Result<u32, Problem> {
        self.position(&node.path, node.text(NAME)?)
    }

    /// The position of what is named so at `key`.
    pub(super) fn position(&self, key: &str, name: &str) -> Result<u32, Problem> {
        /// Names listed in a hint.
        const SHOWN: usize = 6;
        self.positions.get(name).copied().ok_or_else(|| Problem::UnknownName {
            key: key.to_owned(),
            what: self.what,
            name: name.to_owned(),
            near: nearest(name, self.names.iter().map(String::as_str)).map(str::to_owned),
            known: (self.names.iter().take(SHOWN).cloned().collect(), self.names.len()),
        })
    }

    fn names<K: Ord>(self, id: impl Fn(u32) -> K) -> BTreeMap<K, String> {
        (0..).map(id).zip(self.names).collect()
    }
}
