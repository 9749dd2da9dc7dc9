//! What a policy is.

use std::time::Duration;

use crate::plan::Plan;
use crate::snapshot::{Knowledge, Known, Snapshot};

/// A scheduling policy: a function from a round's snapshot and a seed to a plan.
///
/// What it may know of a job is in its type: the scheduler shows it no more. It may leave jobs waiting,
/// reject them, share GPUs among them ([`pollux_model::GpuShare`]) and choose its cadence.
///
/// A first policy of one's own, which knows nothing of jobs and leaves everything as it is:
///
/// ```
/// use pollux_policy::*;
///
/// struct Lazy;
///
/// impl Policy for Lazy {
///     type Knows = ();
///
///     fn about(&self) -> About {
///         let (summary, source) = ("leaves everything as it is", "this example");
///         About { name: "lazy", summary, source, adapts_batch: false }
///     }
///
///     fn plan(&self, snapshot: &Snapshot<()>, _: &Terms<'_>) -> Plan {
///         let answer = |job: &Job<()>| JobPlan {
///             job: job.id,
///             decision: if job.holds.is_empty() { Decision::Wait } else { Decision::Keep },
///             allocation: job.holds.clone(),
///             reason: Reason::default(),
///         };
///         Plan {
///             jobs: snapshot.jobs().iter().map(answer).collect(),
///             certificate: None,
///             work: Work { units: 0, budget: 0, stopped: Stopped::Done },
///             carried: Carried::default(),
///         }
///     }
/// }
///
/// let nobody = Snapshot::new(Cluster::default(), Vec::new()).unwrap();
/// assert!(AnyPolicy::plan(&Lazy, &nobody, &Terms::seeded(1)).jobs.is_empty());
/// ```
pub trait Policy {
    /// What it may know of each job beyond what every scheduler sees.
    type Knows: Knowledge;

    /// Its name and where it comes from.
    fn about(&self) -> About;

    /// When it wants to be asked.
    fn cadence(&self) -> Cadence {
        Cadence { every: Duration::from_mins(1), on_events: None }
    }

    /// The plan: a function of its arguments alone. Caches may save time, never change it.
    fn plan(&self, snapshot: &Snapshot<Self::Knows>, terms: &Terms<'_>) -> Plan;

    /// The same plan from everything that is known. For policies that are generic in what they are shown, and so
    /// need no copy to see less.
    fn plan_with_all(&self, snapshot: &Snapshot<Known>, terms: &Terms<'_>) -> Plan {
        self.plan(&snapshot.seen_with(), terms)
    }
}

/// A policy's card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The name it is chosen by.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Who thought of it.
    pub source: &'static str,
    /// Whether jobs choose their own batch under it; else they keep their user's.
    pub adapts_batch: bool,
}

/// When a policy wants to be asked for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cadence {
    /// At least this often.
    pub every: Duration,
    /// Also when a job arrives or ends, but no sooner than this after the plan before.
    pub on_events: Option<Duration>,
}

impl Cadence {
    /// The same with another time between plans, if one is given. Whoever asks for quick rounds wants quick answers:
    /// events wait no longer than that.
    #[must_use]
    pub fn with_round(self, every: Option<Duration>) -> Self {
        every.map_or(self, |every| Self { every, on_events: self.on_events.map(|apart| apart.min(every)) })
    }
}

/// The seed of one plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seed(pub u64);

/// How a plan is to be made.
#[derive(Clone, Copy, Default)]
pub struct Terms<'a> {
    /// The source of all randomness.
    pub seed: Seed,
    /// Units of work instead of the policy's own budget; to repeat a plan that a deadline cut.
    pub work: Option<u64>,
    /// Says when time is up. Asked now and then; a plan it cuts is recorded as cut.
    pub deadline: Option<&'a dyn Fn() -> bool>,
}

impl Terms<'_> {
    /// With this seed and nothing else.
    pub fn seeded(seed: u64) -> Self {
        Self { seed: Seed(seed), ..Self::default() }
    }

    /// Whether time is up.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|passed| passed())
    }
}

impl std::fmt::Debug for Terms<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { seed, work, deadline } = self;
        f.debug_struct("Terms")
            .field("seed", seed)
            .field("work", work)
            .field("deadline", &deadline.is_some())
            .finish()
    }
}

/// Any policy, whatever it knows: it is handed everything and sees its part.
pub trait AnyPolicy: Send + Sync {
    /// Its name and where it comes from.
    fn about(&self) -> About;
    /// When it wants to be asked.
    fn cadence(&self) -> Cadence;
    /// The plan.
    fn plan(&self, snapshot: &Snapshot<Known>, terms: &Terms<'_>) -> Plan;
}

impl<P: Policy + Send + Sync> AnyPolicy for P {
    fn about(&self) -> About {
        Policy::about(self)
    }

    fn cadence(&self) -> Cadence {
        Policy::cadence(self)
    }

    fn plan(&self, snapshot: &Snapshot<Known>, terms: &Terms<'_>) -> Plan {
        self.plan_with_all(snapshot, terms)
    }
}
