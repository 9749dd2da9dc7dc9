//! All that a scheduler remembers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use pollux_core::{
    Alone, Curves, CycleId, Ended, Explanation, Fleet, Generation, JobRecord, JobSpec, Leaving, NodeRecord,
    NodeSpec, Outcome, PastRecord, Phase, Pool, PoolId, RestartClock, Rounds, SizeId, State, Stock, Teacher,
    Way,
};
use pollux_model::fit::PastFit;
use pollux_model::{
    AgentReport, Allocation, GoodputModel, GpuType, JobId, NodeId, NoiseScale, PerfParams, Timestamp,
};
use pollux_policy::{Carried, Certificate, Decision, Group, GroupId, NodeState, Reason, SnapshotError};
use serde::{Deserialize, Serialize};

use super::stored::{Stored, stored_enum, stored_struct};
use crate::wire::{Float, Form, Limits, Params, Problem, Read, names, undetermined, within};

stored_struct! {
    State => StateForm {
        now: Timestamp,
        jobs: BTreeMap<JobId, JobRecord>,
        ended: Ended,
        unsettled: BTreeSet<JobId>,
        nodes: BTreeMap<NodeId, NodeRecord>,
        groups: Vec<Group>,
        histories: BTreeMap<Arc<str>, PastRecord>,
        speeds: BTreeMap<Teacher, BTreeMap<GpuType, Alone>>,
        rounds: Rounds,
        fleet: Fleet,
    }
    JobRecord => JobRecordForm {
        spec: JobSpec,
        submitted: Timestamp,
        phase: Phase,
        generation: Generation,
        held: Allocation,
        held_since: Timestamp,
        wanted: Allocation,
        attained: f64,
        clock: RestartClock,
        resizes: Vec<Timestamp>,
        suspended: bool,
        cancelled: bool,
        failures: u32,
        not_before: Timestamp,
        report: Option<AgentReport>,
        curves: Curves,
        progress_at_failure: f64,
        has_trained: bool,
        lost_in: Generation,
        explanation: Option<Explanation>,
    }
    RestartClock => RestartClockForm {
        stop_asked: Option<Timestamp>,
        stopping: Duration,
        started: Option<Timestamp>,
        measured: Option<Duration>,
    }
    Explanation => ExplanationForm {
        cycle: CycleId, at: Timestamp, decision: Decision, allocation: Allocation, reason: Reason,
    }
    Curves => CurvesForm { models: BTreeMap<GpuType, GoodputModel>, sizes: (u32, u32) }
    Ended => EndedForm { latest: VecDeque<JobId>, forgotten: BTreeMap<u64, u64> }
    NodeRecord => NodeRecordForm {
        spec: NodeSpec,
        state: NodeState,
        others: u32,
        of_pool: Option<(PoolId, Timestamp)>,
        leaving: Option<Leaving>,
    }
    PastRecord => PastRecordForm {
        fits: BTreeMap<GpuType, BTreeMap<JobId, PastFit>>,
        early_noise: Option<NoiseScale>,
        most_gpus: u32,
        curves: Curves,
    }
    Alone => AloneForm { params: PerfParams, n_undetermined: usize, goodput: f64 }
    Rounds => RoundsForm {
        latest: CycleId,
        awaited: Option<(CycleId, Timestamp)>,
        began: Option<Timestamp>,
        is_stale: bool,
        is_urgent: bool,
        wake_at: Option<Timestamp>,
        carried: Carried,
        certificate: Option<Certificate>,
        fault: Option<SnapshotError>,
    }
    Fleet => FleetForm {
        stocks: BTreeMap<PoolId, Stock>,
        wrong: Option<(Way, Timestamp)>,
        latest: SizeId,
        awaited: Option<SizeId>,
        asked_at: Option<Timestamp>,
        is_fruitless: bool,
    }
    Stock => StockForm {
        pool: Pool, target: u32, pending: Vec<(Timestamp, u32)>, failures: u32, not_before: Timestamp,
    }
}

stored_enum! {
    Phase => PhaseForm { Waiting, Starting, Running, Stopping, Ended { outcome = 0: Outcome } }
    Outcome => OutcomeForm { Finished, Failed, Cancelled }
    Leaving => LeavingForm { Spare, Released, Reclaimed { deadline = 0: Timestamp } }
    Way => WayForm { TooSmall, TooLarge }
    SnapshotError => FaultForm {
        DuplicateNode { node = 0: NodeId },
        TooManyGpus { node = node: NodeId, gpus = gpus: u32, most = most: u32 },
        DuplicateJob { job = 0: JobId },
        DuplicateGroup { group = 0: GroupId },
        UnknownNode { job = job: JobId, node = node: NodeId },
        UnknownGroup { group = 0: GroupId },
        CyclicGroups { group = 0: GroupId },
        Overfull { node = node: NodeId, gpus = gpus: u32, held = held: u64, others = others: u32 },
        MixedTypes { job = 0: JobId },
        PartOfGpu { job = 0: JobId },
        NotPositive { job = job: JobId, what = what: &'static str },
        MinAboveMax { job = job: JobId, min = min: u32, max = max: u32 },
        BadSpeed { gpu_type = 0: GpuType },
        RestartingNowhere { job = 0: JobId },
    }
}

/// Step times, with the form of compute beside them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParamsForm {
    form: Form,
    params: Params,
}

impl Stored for PerfParams {
    type Form = ParamsForm;

    fn write(&self) -> ParamsForm {
        ParamsForm { form: Form::of(&self.grad), params: self.into() }
    }

    fn read(form: ParamsForm) -> Read<Self> {
        within("params", form.params.check_known())?;
        within("params", form.params.read(&form.form))
    }
}

impl Stored for NoiseScale {
    type Form = Float;

    fn write(&self) -> Float {
        Float(self.samples())
    }

    fn read(Float(samples): Float) -> Read<Self> {
        Ok(Self::from_samples(samples).ok_or(Problem::Negative(samples))?)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelForm {
    times: ParamsForm,
    noise: Float,
    limits: Limits,
}

impl Stored for GoodputModel {
    type Form = ModelForm;

    fn write(&self) -> ModelForm {
        ModelForm { times: self.params().write(), noise: self.noise().write(), limits: self.limits().into() }
    }

    fn read(form: ModelForm) -> Read<Self> {
        let times = within("times", PerfParams::read(form.times))?;
        let noise = within("noise", NoiseScale::read(form.noise))?;
        let limits = within("limits", form.limits.read())?;
        within("times", Self::new(times, noise, limits).map_err(Problem::Params))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PastFitForm {
    times: ParamsForm,
    undetermined: Vec<String>,
}

impl Stored for PastFit {
    type Form = PastFitForm;

    fn write(&self) -> PastFitForm {
        let Self { params, undetermined } = self;
        PastFitForm { times: params.write(), undetermined: names(undetermined) }
    }

    fn read(form: PastFitForm) -> Read<Self> {
        Ok(Self {
            params: within("times", PerfParams::read(form.times))?,
            undetermined: within("undetermined", undetermined(form.undetermined))?,
        })
    }
}

/// What a snapshot may say is not positive. Anything else reads as the last.
const NUMBERS: [&str; 5] =
    ["its weight", "its fewest GPUs", "the GPU-seconds it has held", "the GPUs it asks for", "a number"];

impl Stored for &'static str {
    type Form = String;

    fn write(&self) -> String {
        (*self).to_owned()
    }

    fn read(form: String) -> Read<Self> {
        let known = NUMBERS.into_iter().find(|known| *known == form);
        Ok(known.unwrap_or(NUMBERS[NUMBERS.len() - 1]))
    }
}
