//! Workloads that grow while they run, and searches made of them.

mod common;

use std::collections::BTreeMap;

use common::{profiles, quick_policies, submission};
use pollux_model::Timestamp;
use pollux_policy::{AnyPolicy, Fifo, Pollux, Tiresias};
use pollux_sim::Run;
use pollux_sim::campaign::{Contender, jobs_csv, timeline_csv};
use pollux_sim::simulation::{Guide, Milestone, Options, Order, simulate, simulate_guided};
use pollux_sim::sweep::{Found, Search, Study, Sweep, search_on};
use pollux_sim::workload::Workload;

/// Does what it was told to do at milestones, once each, and remembers what it saw.
#[derive(Default)]
struct Script {
    orders: BTreeMap<(usize, usize), Vec<Order>>,
    seen: Vec<(Timestamp, usize, Milestone)>,
}

impl Guide for Script {
    fn passed(&mut self, now: Timestamp, index: usize, milestone: Milestone) -> Vec<Order> {
        self.seen.push((now, index, milestone));
        let epochs = match milestone {
            Milestone::Epochs(epochs) => epochs,
            Milestone::Done => 10,
        };
        self.orders.remove(&(index, epochs)).unwrap_or_default()
    }
}

/// So many jobs of `ncf`, which has 10 epochs, that ask for 2 GPUs each; the first two fill the cluster.
fn crowd(n_jobs: usize) -> Workload {
    let jobs = (0..n_jobs).map(|index| submission(index, 0, "ncf", 2)).collect();
    Workload { name: "crowd".to_owned(), jobs }
}

fn options() -> Options {
    Options { cluster: "1x4:t4".parse().unwrap(), ..Options::default() }
}

fn guided(n_jobs: usize, policy: &dyn AnyPolicy, script: &mut Script) -> Run {
    let run = simulate_guided(&crowd(n_jobs), &profiles(), policy, &options(), script);
    run.unwrap_or_else(|error| panic!("{}: {error}", policy.about().name))
}

fn text(run: &Run) -> String {
    timeline_csv(run) + &jobs_csv(run)
}

#[test]
fn who_orders_nothing_changes_nothing() {
    for policy in quick_policies() {
        let mut script = Script::default();
        let plain = simulate(&crowd(4), &profiles(), policy.as_ref(), &options()).unwrap();
        let run = guided(4, policy.as_ref(), &mut script);
        assert_eq!(text(&run), text(&plain), "{}", policy.about().name);
        // Nine epochs and the end of each of four jobs, in the order of time.
        assert_eq!(script.seen.len(), 40);
        assert!(script.seen.is_sorted_by_key(|(now, ..)| *now));
        let done = script.seen.iter().filter(|(.., milestone)| *milestone == Milestone::Done);
        assert_eq!(done.count(), 4);
    }
}

#[test] // The first is given up after 3 epochs: the third, which waited for GPUs, starts at that moment.
fn what_is_given_up_frees_its_gpus_at_once() {
    let mut script = Script { orders: [((0, 3), vec![Order::GiveUp(0)])].into(), ..Script::default() };
    let run = guided(3, &Fifo, &mut script);
    let given_up =
        script.seen.iter().find(|(_, index, milestone)| (*index, *milestone) == (0, Milestone::Epochs(3)));
    let at = given_up.unwrap().0.as_secs_f64();
    assert_eq!(run.jobs[0].completed, None);
    assert!(run.jobs[1..].iter().all(|job| job.completed.is_some()));
    let timeline = timeline_csv(&run);
    assert!(timeline.contains(&format!("\n{at},ncf-0,stopped,,,,\n{at},ncf-2,started,2,")), "{timeline}");
    assert!(!script.seen.iter().any(|(now, index, _)| *index == 0 && now.as_secs_f64() > at));
    assert!((run.jobs[0].gpu_secs - 2.0 * at).abs() < 1e-6, "{} GPU-seconds", run.jobs[0].gpu_secs);
}

#[test] // One that runs, one that waits, one that is yet to come, one that has ended, and one that never was.
fn anybody_can_be_given_up() {
    for policy in quick_policies() {
        let new = submission(4, 0, "ncf", 2);
        let first = vec![Order::Submit(new.clone()), Order::GiveUp(4), Order::GiveUp(1), Order::GiveUp(3)];
        let last = vec![Order::GiveUp(0), Order::GiveUp(1), Order::GiveUp(77)];
        let orders = [((0, 1), first), ((0, 10), last)].into();
        let run = guided(4, policy.as_ref(), &mut Script { orders, ..Script::default() });
        let done: Vec<bool> = run.jobs.iter().map(|job| job.completed.is_some()).collect();
        assert_eq!(done, [true, false, true, false, false], "{}", policy.about().name);
    }
}

#[test] // Of another application too, which an oracle must foresee.
fn new_jobs_come_when_they_are_ordered() {
    for policy in quick_policies() {
        let new = submission(1, 0, "cifar10", 1);
        let orders = [((0, 10), vec![Order::Submit(new.clone())])].into();
        let run = guided(1, policy.as_ref(), &mut Script { orders, ..Script::default() });
        let [first, second] = &run.jobs[..] else { panic!("two jobs") };
        let until = first.completed.unwrap().as_secs_f64();
        assert_eq!((second.name.as_str(), second.submitted.as_secs_f64()), (new.name.as_str(), until.ceil()));
        assert!(second.completed > first.completed && second.rho.is_some(), "{}", policy.about().name);
    }
}

fn search(search: Search, sweep: &Sweep, policy: &dyn AnyPolicy, seed: u64) -> Found {
    let options = Options { cluster: "2x4:t4".parse().unwrap(), seed, history: true, ..Options::default() };
    search_on(sweep, search, &profiles(), policy, &options).unwrap()
}

fn small() -> Sweep {
    Sweep { n_trials: 30, at_once: 4, application: "ncf".to_owned(), gpus: 2, ..Sweep::default() }
}

#[test]
fn one_seed_gives_one_search() {
    for way in Search::ALL {
        let first = search(way, &small(), &Pollux::default(), 3);
        assert_eq!(search(way, &small(), &Pollux::default(), 3), first, "{way}");
        assert_ne!(search(way, &small(), &Pollux::default(), 4), first, "{way}");
    }
}

#[test] // Each trial is one job; no more than four of them are there at a time.
fn trials_come_a_few_at_a_time() {
    for policy in [&Pollux::default() as &dyn AnyPolicy, &Fifo, &Tiresias::default()] {
        let found = search(Search::Tpe, &small(), policy, 1);
        assert_eq!(found.trials.len(), 30);
        for trial in &found.trials {
            let there = found
                .trials
                .iter()
                .filter(|other| other.submitted <= trial.submitted && other.ended.unwrap() > trial.submitted);
            assert!(there.count() <= 4);
            assert_eq!((trial.accuracies.len(), trial.given_up), (10, false));
        }
    }
}

#[test]
fn giving_up_saves_time() {
    let figures = |way, sweep: &Sweep| search(way, sweep, &Fifo, 1).figures();
    let plain = figures(Search::Random, &small());
    let halving = figures(Search::Halving, &small());
    let median = figures(Search::Random, &Sweep { median: true, ..small() });
    for figures in [halving, median] {
        assert!((5.0..30.0).contains(&figures.given_up), "{figures:?}");
        assert!(figures.makespan_secs < 0.9 * plain.makespan_secs, "{figures:?} against {plain:?}");
        assert!(figures.best > plain.best - 0.005, "{figures:?} against {plain:?}");
    }
}

#[test]
fn threads_change_nothing() {
    let contender = |policy: Box<dyn AnyPolicy>| Contender { label: policy.about().name.to_owned(), policy };
    let pollux = Pollux::default();
    let study = Study {
        contenders: vec![contender(Box::new(pollux)), contender(Box::new(Fifo))],
        searches: vec![Search::Tpe, Search::Halving],
        seeds: vec![1, 2],
        sweep: Sweep { n_trials: 8, ..small() },
        profiles: profiles(),
        options: Options { cluster: "2x4:t4".parse().unwrap(), noise: 0.1, ..Options::default() },
    };
    let alone = study.execute(1, |_| ()).unwrap();
    assert_eq!(alone.len(), 8);
    let mut told = Vec::new();
    assert_eq!(study.execute(3, |n_done| told.push(n_done)).unwrap(), alone);
    assert_eq!(told, (1..=8).collect::<Vec<_>>());
}

#[test]
fn the_first_search_that_fails_is_named() {
    let study = Study {
        contenders: vec![Contender { label: "f".to_owned(), policy: Box::new(Fifo) }],
        searches: vec![Search::Random],
        seeds: vec![7, 8],
        sweep: Sweep { gpus: 64, ..small() },
        profiles: profiles(),
        options: options(),
    };
    for n_threads in [1, 2] {
        let error = study.execute(n_threads, |_| ()).unwrap_err().to_string();
        assert_eq!(error, "policy `f`, search `random`, seed 7: `ncf` cannot train on 64 GPUs of 1x4:t4");
    }
}
