//! What a policy is shown: the cluster, its groups, the jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pollux_model::{Allocation, GpuType, JobCurves, JobId, NodeId};

/// One round's input. Everything in it refers to something that exists; [`Snapshot::new`] sees to that.
///
/// `K` is what the policy may know of each job beyond what every scheduler sees.
#[derive(Clone, Debug)]
pub struct Snapshot<K = Known> {
    cluster: Cluster,
    jobs: Vec<Job<K>>,
    carried: Carried,
}

/// Nodes, groups and GPU types.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Groups of jobs (queues), a forest by `parent`.
    pub groups: Vec<Group>,
    /// How fast one GPU of a type is against the others, for jobs that have not run there; 1 if absent.
    pub speeds: BTreeMap<GpuType, f64>,
}

/// A machine with GPUs of one type.
#[derive(Clone, Debug)]
pub struct Node {
    /// Which node.
    pub id: NodeId,
    /// The type of its GPUs.
    pub gpu_type: GpuType,
    /// How many it has.
    pub gpus: u32,
    /// How many of them others use, who are none of our jobs.
    pub others: u32,
    /// Whether jobs may come and must go.
    pub state: NodeState,
}

/// Whether jobs may come to a node and whether they must go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeState {
    /// Open to all.
    #[default]
    Ready,
    /// Nobody new; who is there may stay.
    Cordoned,
    /// Nobody new; who can move leaves.
    Draining,
}

/// A group of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// A queue: what its jobs are entitled to, and what they may hold at most.
#[derive(Clone, Debug)]
pub struct Group {
    /// Which group.
    pub id: GroupId,
    /// The group it is part of.
    pub parent: Option<GroupId>,
    /// GPUs of each type that its jobs come first for. What they leave idle, others borrow.
    pub entitled: BTreeMap<GpuType, u32>,
    /// GPUs of each type that its jobs may hold at most, borrowed ones included.
    pub caps: BTreeMap<GpuType, u32>,
}

/// A job that runs or wants to.
#[derive(Clone, Debug)]
pub struct Job<K = Known> {
    /// Which job.
    pub id: JobId,
    /// The group it counts for.
    pub group: Option<GroupId>,
    /// Who starves last.
    pub priority: Priority,
    /// How much its speed-up counts in the mean.
    pub weight: f64,
    /// Fewest GPUs it can run on; at least one.
    pub min_gpus: u32,
    /// Most GPUs it may hold.
    pub max_gpus: Option<u32>,
    /// GPU types it may use; all if empty.
    pub types: BTreeSet<GpuType>,
    /// What may be done with it.
    pub freedom: Freedom,
    /// What it holds now.
    pub holds: Allocation,
    /// Time since its submission.
    pub age: Duration,
    /// GPU-seconds it has held so far.
    pub attained: f64,
    /// Restarts so far.
    pub restarts: u32,
    /// What a restart costs it, as measured.
    pub restart_cost: Duration,
    /// What this policy may know besides.
    pub knows: K,
}

/// Who starves last: no job of a lower priority runs at the expense of one of a higher that could.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Runs on what is left.
    Low,
    /// The default.
    #[default]
    Normal,
    /// Before all others.
    High,
}

/// What the scheduler may do with a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freedom {
    /// Resize and move it.
    #[default]
    Elastic,
    /// Place it once; then it stays where it is.
    NonPreemptible,
    /// It never reports, so a restart could destroy it: it gets what it asks for and stays.
    Rigid {
        /// How many GPUs it asks for.
        gpus: u32,
    },
    /// It is on its way to what it holds; not again until it has arrived.
    Restarting,
}

/// All that any policy may know of a job.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// What the job's agent reported.
    pub learned: Learned,
    /// What its user declared: useful samples still to process.
    pub remaining: Option<f64>,
    /// What its user asked for, as one must of schedulers that do not choose.
    pub request: Option<Request>,
    /// What nobody can know but a simulator.
    pub oracle: Option<Oracle>,
}

/// What a job's user asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// How many GPUs.
    pub gpus: u32,
}

/// The truth about a job's future, from a simulator: what policies "with an oracle" are given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Oracle {
    /// Iterations still to do at the user's batch size. How they are counted is the caller's: the authors' artifact
    /// counts them from the end of the current epoch, and as 1 in the last one (B5).
    pub remaining_iterations: f64,
    /// True seconds of one iteration at the user's batch size on 1, 2, .. GPUs, on as few nodes as hold them.
    pub step_secs: Arc<[f64]>,
    /// The same by GPU type, where several are told apart; empty if not.
    pub step_secs_by_type: Arc<BTreeMap<GpuType, Arc<[f64]>>>,
    /// Most GPUs the user's batch can be dealt to.
    pub max_gpus: u32,
}

impl Oracle {
    /// Seconds of one iteration on so many GPUs; on more than are listed, as on the last. None if none is.
    ///
    /// ```
    /// use pollux_policy::Oracle;
    ///
    /// let oracle = Oracle { remaining_iterations: 100.0, step_secs: [0.5, 0.25].into(), max_gpus: 4, ..Oracle::default() };
    /// assert_eq!(oracle.step_secs_on(2), Some(0.25));
    /// assert_eq!(oracle.step_secs_on(3), Some(0.25));
    /// ```
    pub fn step_secs_on(&self, gpus: u32) -> Option<f64> {
        let at = (gpus.max(1) as usize).min(self.step_secs.len());
        self.step_secs.get(at.checked_sub(1)?).copied()
    }

    /// Seconds of one iteration on so many GPUs of a type; none if it runs on no so many there. Where types are not told apart,
    /// as on any.
    pub fn step_secs_on_type(&self, gpu_type: &GpuType, gpus: u32) -> Option<f64> {
        if self.step_secs_by_type.is_empty() {
            return self.step_secs_on(gpus);
        }
        let steps = self.step_secs_by_type.get(gpu_type)?;
        steps.get((gpus as usize).checked_sub(1)?).copied()
    }
}

/// The knowledge of a policy that gives users what they ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// What the user asked for.
    pub request: Option<Request>,
}

/// The knowledge of a policy with an oracle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreseen {
    /// The truth, where a simulator tells it.
    pub oracle: Option<Oracle>,
}

/// What a job's agent reported.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// Goodput by placement and GPU type; empty until the first report.
    pub curves: Arc<JobCurves>,
    /// Most GPUs the job has run on so far.
    pub most_gpus: u32,
}

/// A view of all that is known: what a policy declares to need.
pub trait Knowledge: Sized {
    /// Takes its part.
    fn of(known: &Known) -> Self;
}

impl Knowledge for Known {
    fn of(known: &Known) -> Self {
        known.clone()
    }
}

impl Knowledge for Learned {
    fn of(known: &Known) -> Self {
        known.learned.clone()
    }
}

impl Knowledge for Requested {
    fn of(known: &Known) -> Self {
        Self { request: known.request }
    }
}

impl Knowledge for Foreseen {
    fn of(known: &Known) -> Self {
        Self { oracle: known.oracle.clone() }
    }
}

impl Knowledge for () {
    fn of(_: &Known) -> Self {}
}

/// What a policy hands itself from round to round. Part of the input, so that any round can be replayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Carried {
    /// What a GPU of each type was worth: where the search for prices starts.
    pub prices: BTreeMap<GpuType, f64>,
    /// What a genetic algorithm bred.
    pub population: Option<Arc<Population>>,
    /// Jobs that were demoted, in that order; for policies with queues by attained service.
    pub queue: Vec<JobId>,
    /// What jobs received of each GPU type; for policies that divide time among types.
    pub served: BTreeMap<JobId, Served>,
}

/// What a job received of each GPU type so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// Seconds on each type.
    pub secs: BTreeMap<GpuType, f64>,
    /// The type it was seen on last.
    pub last: Option<GpuType>,
    /// GPU-seconds that are counted in the above.
    pub attained: f64,
}

/// Candidate allocations of a genetic algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Population {
    /// The rows of each member.
    pub jobs: Vec<JobId>,
    /// The columns of each member.
    pub nodes: Vec<NodeId>,
    /// GPUs by job and node, row after row.
    pub members: Vec<Vec<u32>>,
}

/// Most GPUs of one node.
const MOST_GPUS: u32 = 1 << 16;

/// Why a snapshot is none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SnapshotError {
    /// Two nodes with one id.
    #[error("node {0:?} is listed twice")]
    DuplicateNode(NodeId),
    /// More GPUs than any machine has.
    #[error("node {node:?} has {gpus} GPUs; at most {most} can be")]
    TooManyGpus {
        /// The node.
        node: NodeId,
        /// GPUs it is said to have.
        gpus: u32,
        /// GPUs a node can have.
        most: u32,
    },
    /// Two jobs with one id.
    #[error("job {0:?} is listed twice")]
    DuplicateJob(JobId),
    /// Two groups with one id.
    #[error("group {0:?} is listed twice")]
    DuplicateGroup(GroupId),
    /// A job on a node that is not there.
    #[error("job {job:?} holds GPUs on node {node:?}, which is not in the cluster")]
    UnknownNode {
        /// The job.
        job: JobId,
        /// The node.
        node: NodeId,
    },
    /// A job or group refers to a group that is not there.
    #[error("group {0:?} is not in the snapshot")]
    UnknownGroup(GroupId),
    /// A group is its own ancestor.
    #[error("group {0:?} is part of itself")]
    CyclicGroups(GroupId),
    /// A node holds more than it has.
    #[error("node {node:?} has {gpus} GPUs, but {held} are held by jobs and {others} by others")]
    Overfull {
        /// The node.
        node: NodeId,
        /// GPUs it has.
        gpus: u32,
        /// GPUs our jobs hold.
        held: u64,
        /// GPUs others use.
        others: u32,
    },
    /// A job on GPUs of two types at once.
    #[error("job {0:?} holds GPUs of more than one type")]
    MixedTypes(JobId),
    /// A job holds a part of a GPU, which this policy does not share out.
    #[error("job {0:?} holds a part of a GPU; this policy hands out whole ones")]
    PartOfGpu(JobId),
    /// A number that must be positive is not.
    #[error("job {job:?}: {what} must be a positive number")]
    NotPositive {
        /// The job.
        job: JobId,
        /// Which number.
        what: &'static str,
    },
    /// Fewest above most.
    #[error("job {job:?} needs at least {min} GPUs but may hold at most {max}")]
    MinAboveMax {
        /// The job.
        job: JobId,
        /// Fewest.
        min: u32,
        /// Most.
        max: u32,
    },
    /// A type's speed is no number.
    #[error("the speed of GPU type {0} must be a positive number")]
    BadSpeed(GpuType),
    /// A job that is restarting must be on its way to something.
    #[error("job {0:?} is restarting but holds nothing")]
    RestartingNowhere(JobId),
}

impl<K> Snapshot<K> {
    /// Checks that everything referred to exists and that nothing is held twice.
    pub fn new(cluster: Cluster, jobs: Vec<Job<K>>) -> Result<Self, SnapshotError> {
        check_cluster(&cluster)?;
        let snapshot = Self { cluster, jobs, carried: Carried::default() };
        snapshot.check_jobs()?;
        Ok(snapshot)
    }

    /// With what the policy's last plan carried over.
    #[must_use]
    pub fn carrying(mut self, carried: Carried) -> Self {
        self.carried = carried;
        self
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The jobs, in the order of the plan's answers.
    pub fn jobs(&self) -> &[Job<K>] {
        &self.jobs
    }

    /// What the policy's last plan carried over.
    pub fn carried(&self) -> &Carried {
        &self.carried
    }

    fn check_jobs(&self) -> Result<(), SnapshotError> {
        let types: BTreeMap<NodeId, &GpuType> =
            self.cluster.nodes.iter().map(|node| (node.id, &node.gpu_type)).collect();
        let groups: BTreeSet<GroupId> = self.cluster.groups.iter().map(|group| group.id).collect();
        let mut seen = BTreeSet::new();
        let mut held = BTreeMap::<NodeId, u64>::new();
        for job in &self.jobs {
            if !seen.insert(job.id) {
                return Err(SnapshotError::DuplicateJob(job.id));
            }
            if let Some(group) = job.group
                && !groups.contains(&group)
            {
                return Err(SnapshotError::UnknownGroup(group));
            }
            check_numbers(job)?;
            let mut on = None;
            for (node, share) in job.holds.iter() {
                let Some(gpu_type) = types.get(&node) else {
                    return Err(SnapshotError::UnknownNode { job: job.id, node });
                };
                if on.replace(*gpu_type).is_some_and(|other| other != *gpu_type) {
                    return Err(SnapshotError::MixedTypes(job.id));
                }
                if !share.is_whole() {
                    return Err(SnapshotError::PartOfGpu(job.id));
                }
                *held.entry(node).or_default() += u64::from(share.n_replicas());
            }
            if job.freedom == Freedom::Restarting && job.holds.is_empty() {
                return Err(SnapshotError::RestartingNowhere(job.id));
            }
        }
        for node in &self.cluster.nodes {
            let held = held.get(&node.id).copied().unwrap_or(0);
            if held + u64::from(node.others) > u64::from(node.gpus) {
                let (id, gpus, others) = (node.id, node.gpus, node.others);
                return Err(SnapshotError::Overfull { node: id, gpus, held, others });
            }
        }
        Ok(())
    }
}

impl Snapshot<Known> {
    /// The same round as a policy may see it that knows less.
    pub fn seen_with<K: Knowledge>(&self) -> Snapshot<K> {
        let jobs = self.jobs.iter().map(|job| job.seen_with(K::of(&job.knows))).collect();
        Snapshot { cluster: self.cluster.clone(), jobs, carried: self.carried.clone() }
    }

    /// The same round with what a simulator knows of each job's future.
    #[must_use]
    pub fn foreseeing(mut self, mut oracle: impl FnMut(JobId) -> Option<Oracle>) -> Self {
        for job in &mut self.jobs {
            job.knows.oracle = oracle(job.id);
        }
        self
    }
}

impl<K> Job<K> {
    /// The same job with other knowledge.
    pub(crate) fn seen_with<L>(&self, knows: L) -> Job<L> {
        Job {
            id: self.id,
            group: self.group,
            priority: self.priority,
            weight: self.weight,
            min_gpus: self.min_gpus,
            max_gpus: self.max_gpus,
            types: self.types.clone(),
            freedom: self.freedom,
            holds: self.holds.clone(),
            age: self.age,
            attained: self.attained,
            restarts: self.restarts,
            restart_cost: self.restart_cost,
            knows,
        }
    }

    /// Whether it ever ran.
    pub fn has_run(&self) -> bool {
        !self.holds.is_empty() || self.attained > 0.0 || self.restarts > 0
    }

    /// Whether nothing may be done to it now.
    pub fn is_pinned(&self) -> bool {
        match self.freedom {
            Freedom::Elastic => false,
            Freedom::NonPreemptible | Freedom::Rigid { .. } => !self.holds.is_empty(),
            Freedom::Restarting => true,
        }
    }
}

fn check_cluster(cluster: &Cluster) -> Result<(), SnapshotError> {
    let mut nodes = BTreeSet::new();
    for node in &cluster.nodes {
        if !nodes.insert(node.id) {
            return Err(SnapshotError::DuplicateNode(node.id));
        }
        if node.gpus > MOST_GPUS {
            return Err(SnapshotError::TooManyGpus { node: node.id, gpus: node.gpus, most: MOST_GPUS });
        }
    }
    let mut parents = BTreeMap::new();
    for group in &cluster.groups {
        if parents.insert(group.id, group.parent).is_some() {
            return Err(SnapshotError::DuplicateGroup(group.id));
        }
    }
    for group in &cluster.groups {
        let mut at = group.parent;
        // Who is on a loop comes back to itself within as many steps as there are groups.
        for _ in 0..parents.len() {
            let Some(id) = at else { break };
            if id == group.id {
                return Err(SnapshotError::CyclicGroups(id));
            }
            at = *parents.get(&id).ok_or(SnapshotError::UnknownGroup(id))?;
        }
    }
    for (gpu_type, speed) in &cluster.speeds {
        if !(*speed > 0.0 && speed.is_finite()) {
            return Err(SnapshotError::BadSpeed(gpu_type.clone()));
        }
    }
    Ok(())
}

fn check_numbers<K>(job: &Job<K>) -> Result<(), SnapshotError> {
    let id = job.id;
    let positive =
        |what, fine: bool| if fine { Ok(()) } else { Err(SnapshotError::NotPositive { job: id, what }) };
    positive("its weight", job.weight > 0.0 && job.weight.is_finite())?;
    positive("its fewest GPUs", job.min_gpus > 0)?;
    positive("the GPU-seconds it has held", job.attained >= 0.0 && job.attained.is_finite())?;
    if let Freedom::Rigid { gpus } = job.freedom {
        positive("the GPUs it asks for", gpus > 0)?;
    }
    match job.max_gpus {
        Some(max) if max < job.min_gpus => {
            Err(SnapshotError::MinAboveMax { job: id, min: job.min_gpus, max })
        }
        _ => Ok(()),
    }
}
