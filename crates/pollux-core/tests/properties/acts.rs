//! What may happen in a run, drawn at random.

use std::time::Duration;

use pollux_core::{Config, JobEdit, JobSpec, Scaler};
use pollux_model::GpuType;
use pollux_policy::{Cadence, GroupId, NodeState, Request, Seed};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Something that happens. Jobs and nodes are few, so that much of it makes sense and some does not.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Submit(u64, JobSpec),
    Edit(u64, JobEdit),
    Cancel(u64),
    Report(u64, f64),
    /// The world answers as it should: one of those that hold something says this.
    Answer(Index, Word),
    /// The oldest wish to stop is granted.
    Grant,
    /// The world says something of any start of any job.
    Babble(u64, u32, Word),
    Join(u32, bool, u32),
    State(u32, NodeState),
    Others(u32, u32),
    Lose(u32),
    Groups(u32),
    /// So many pools, of nodes of 4 T4.
    Pools(u32),
    PoolJoin(u32, u32),
    GrowFailed(u32, u32),
    /// A node will be gone in so many seconds.
    Reclaim(u32, u64),
    /// The question about sizes is answered as it should be.
    Size,
    /// It is answered by any sizes, if it was asked.
    AnySize(u32, u32),
    /// A first-come-first-served plan is made of the snapshot that is awaited.
    Plan,
    /// The plan that is awaited comes, and is made up.
    MadeUp(Vec<MadeUp>),
    /// A plan of any round.
    Stray(u64),
    /// Time passes, and those who wished to be woken are.
    Wait(u64),
    /// A tick out of turn, at a time that may lie in the past.
    Tick(i64),
}

/// An answer for any job: GPUs by node, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct MadeUp {
    pub(crate) job: u64,
    pub(crate) places: Vec<(u32, u32)>,
    pub(crate) is_part: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    Training,
    Stopped,
    Finished,
    Failed,
    GivenUp,
}

pub(crate) fn config() -> impl Strategy<Value = Config> {
    let patience = Duration::from_mins(2);
    let rules = [Scaler::GOODPUT, Scaler::THROUGHPUT].map(|scaler| Some(Scaler { patience, ..scaler }));
    let scaler = select(vec![None, rules[0], rules[1]]);
    let on_events = select(vec![None, Some(Duration::ZERO), Some(Duration::from_secs(10))]);
    (on_events, any::<bool>(), 0_u64..4, scaler).prop_map(|(on_events, history, seed, scaler)| Config {
        cadence: Cadence { every: Duration::from_mins(1), on_events },
        seed: Seed(seed),
        history,
        scaler,
        ..Config::default()
    })
}

/// Two nodes and up to two hundred acts.
pub(crate) fn acts() -> impl Strategy<Value = Vec<Act>> {
    vec(act(), 0..200).prop_map(|mut acts| {
        acts.splice(0..0, [Act::Join(0, false, 4), Act::Join(1, false, 4)]);
        acts
    })
}

fn act() -> impl Strategy<Value = Act> {
    let job = || 0_u64..8;
    let node = || 0_u32..5;
    let state = select(vec![NodeState::Ready, NodeState::Cordoned, NodeState::Draining]);
    let made_up = (job(), vec((node(), 0_u32..5), 0..3), prop::bool::weighted(0.05))
        .prop_map(|(job, places, is_part)| MadeUp { job, places, is_part });
    prop_oneof![
        6 => (job(), spec()).prop_map(|(job, spec)| Act::Submit(job, spec)),
        2 => (job(), edit()).prop_map(|(job, edit)| Act::Edit(job, edit)),
        1 => job().prop_map(Act::Cancel),
        6 => (job(), 0.0..100.0).prop_map(|(job, progress)| Act::Report(job, progress)),
        12 => (any::<Index>(), word()).prop_map(|(which, word)| Act::Answer(which, word)),
        4 => Just(Act::Grant),
        3 => (job(), 0_u32..4, word()).prop_map(|(job, generation, word)| Act::Babble(job, generation, word)),
        2 => (node(), any::<bool>(), prop_oneof![0_u32..9, Just(70_000)])
            .prop_map(|(node, other, gpus)| Act::Join(node, other, gpus)),
        2 => (node(), state).prop_map(|(node, state)| Act::State(node, state)),
        2 => (node(), 0_u32..6).prop_map(|(node, gpus)| Act::Others(node, gpus)),
        1 => node().prop_map(Act::Lose),
        1 => (0_u32..4).prop_map(Act::Groups),
        1 => (0_u32..3).prop_map(Act::Pools),
        3 => (node(), 0_u32..3).prop_map(|(node, pool)| Act::PoolJoin(node, pool)),
        1 => (0_u32..3, 0_u32..3).prop_map(|(pool, nodes)| Act::GrowFailed(pool, nodes)),
        1 => (node(), 0_u64..120).prop_map(|(node, secs)| Act::Reclaim(node, secs)),
        4 => Just(Act::Size),
        2 => (0_u32..5, 0_u32..5).prop_map(|(one, other)| Act::AnySize(one, other)),
        8 => Just(Act::Plan),
        6 => vec(made_up, 0..8).prop_map(Act::MadeUp),
        1 => (0_u64..6).prop_map(Act::Stray),
        10 => (0_u64..90).prop_map(Act::Wait),
        1 => (-200_i64..100).prop_map(Act::Tick),
    ]
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        8 => Just(Word::Training),
        3 => Just(Word::Stopped),
        1 => Just(Word::Finished),
        1 => Just(Word::Failed),
        1 => Just(Word::GivenUp),
    ]
}

fn spec() -> impl Strategy<Value = JobSpec> {
    let request = option::of((0_u32..5).prop_map(|gpus| Request { gpus }));
    let types = prop_oneof![3 => Just(None), 1 => Just(Some("t4")), 1 => Just(Some("a100"))];
    let group = prop_oneof![4 => Just(None), 1 => (0_u32..3).prop_map(|id| Some(GroupId(id)))];
    let limits = (0_u32..4, option::of(0_u32..5));
    let flags = (any::<bool>(), prop::bool::weighted(0.8), any::<bool>());
    let stays = (prop_oneof![2 => Just(0_u64), 1 => 0_u64..200], option::weighted(0.3, 0_u32..3));
    let rest = (flags, stays);
    (request, types, group, limits, rest).prop_map(|(request, types, group, limits, (flags, stays))| {
        JobSpec {
            application: flags.2.then(|| "bert".into()),
            group,
            min_gpus: limits.0.max(1) - u32::from(limits == (0, None)),
            max_gpus: limits.1,
            types: types.into_iter().map(GpuType::new).collect(),
            request,
            adapts: flags.0,
            preemptible: flags.1,
            min_runtime: Duration::from_secs(stays.0),
            max_resizes_per_hour: stays.1,
            ..JobSpec::default()
        }
    })
}

fn edit() -> impl Strategy<Value = JobEdit> {
    let most = option::of(option::of(0_u32..5));
    (option::of(0_u32..3), most, option::of(any::<bool>()), option::of(-1.0..3.0)).prop_map(
        |(min_gpus, max_gpus, suspended, weight)| JobEdit {
            weight,
            min_gpus,
            max_gpus,
            suspended,
            ..JobEdit::default()
        },
    )
}
