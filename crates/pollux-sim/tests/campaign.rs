//! Campaigns give the same whatever the threads, and say which run failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_policy::{AnyPolicy, Fifo, Pollux};
use pollux_sim::campaign::{
    Campaign, CampaignError, Cell, Contender, Source, World, jobs_csv, results_json, timeline_csv,
};
use pollux_sim::profile::{Profile, builtin};
use pollux_sim::simulation::Options;
use pollux_sim::workload::{Submission, Workload};
use pollux_sim::{ClusterShape, Run};

fn contender(label: &str, policy: impl AnyPolicy + 'static) -> Contender {
    Contender { label: label.to_owned(), policy: Box::new(policy) }
}

fn world(cluster: &str) -> World {
    let profiles: BTreeMap<String, Arc<Profile>> =
        builtin().into_iter().map(|profile| (profile.name().to_owned(), profile)).collect();
    World::Profiles { profiles, options: Options { cluster: cluster.parse().unwrap(), ..Options::default() } }
}

/// Small jobs that ask for so many GPUs each.
fn jobs(name: &str, gpus: &[u32]) -> Source {
    let job = |(index, &gpus)| Submission {
        name: format!("{name}-{index}"),
        at_secs: 60 * index as u64,
        application: "ncf".to_owned(),
        gpus,
        batch: 32_768,
        work: None,
        group: None,
    };
    Source::Fixed(Workload { name: name.to_owned(), jobs: gpus.iter().enumerate().map(job).collect() })
}

fn campaign(contenders: Vec<Contender>, sources: &[Source]) -> Result<Campaign, CampaignError> {
    Campaign::new(contenders, sources, &[1, 2], world("2x4:t4"))
}

/// Everything that is kept of all runs, times left out.
fn kept(campaign: &Campaign, n_threads: usize) -> (String, Vec<String>) {
    let mut told = Vec::new();
    let keep = |cell: &Cell<'_>, run: &Run| {
        format!("{} {} {}\n{}{}", cell.policy, cell.workload, cell.seed, jobs_csv(run), timeline_csv(run))
    };
    let results = campaign.execute(n_threads, |n_done| told.push(n_done), keep).unwrap();
    assert_eq!(told, (1..=campaign.n_runs()).collect::<Vec<_>>());
    let (mut records, texts): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    for record in &mut records {
        record.wall_secs = 0.0;
    }
    (results_json(&ClusterShape::default(), None, &records), texts)
}

#[test]
fn threads_change_nothing() {
    let contenders = vec![contender("p", Pollux::default()), contender("f", Fifo)];
    let sources =
        [jobs("one", &[1]), Source::Generated("generate:jobs=4,hours=1,mix=ncf:1".parse().unwrap())];
    let campaign = campaign(contenders, &sources).unwrap();
    let alone = kept(&campaign, 1);
    assert_eq!(alone.1.len(), 8);
    let first_lines: Vec<&str> = alone.1.iter().filter_map(|text| text.lines().next()).collect();
    assert_eq!(first_lines[..3], ["p one 1", "p one 2", "p generate:jobs=4,hours=1,mix=ncf:1 1"]);
    assert_eq!(kept(&campaign, 3), alone);
    assert_eq!(kept(&campaign, 99), alone);
}

#[test]
fn seeds_change_generated_jobs_alone() {
    let sources =
        [jobs("one", &[1]), Source::Generated("generate:jobs=4,hours=1,mix=ncf:1".parse().unwrap())];
    let campaign = campaign(vec![contender("f", Fifo)], &sources).unwrap();
    let jobs: Vec<&Workload> = campaign.cells().map(|cell| cell.jobs).collect();
    assert_eq!(jobs[0], jobs[1]);
    assert_ne!(jobs[2], jobs[3]);
}

#[test]
fn the_first_run_that_fails_is_named() {
    let contenders = vec![contender("p", Pollux::default()), contender("f", Fifo)];
    let Source::Fixed(mut odd) = jobs("odd", &[1, 1]) else { unreachable!() };
    odd.jobs[1].application = "gpt".to_owned();
    let campaign = campaign(contenders, &[jobs("small", &[1]), Source::Fixed(odd)]).unwrap();
    for n_threads in [1, 2, 8] {
        let error = campaign.execute(n_threads, |_| (), |_, _| ()).unwrap_err().to_string();
        assert!(error.starts_with("policy `p`, workload `odd`, seed 1: odd-1: "), "{error}");
    }
}

#[test] // Pollux does not heed requests; whoever does could never serve this one.
fn nobody_asks_for_more_than_there_is() {
    let huge = [jobs("huge", &[8, 9])];
    assert!(campaign(vec![contender("p", Pollux::default())], &huge).is_ok());
    let error = campaign(vec![contender("f", Fifo)], &huge).err().unwrap().to_string();
    assert_eq!(error, "workload `huge`: job `huge-1` asks for 9 GPUs, but 2x4:t4 has 8");
}

#[test]
fn runs_that_could_not_be_told_apart_are_refused() {
    let twice = campaign(vec![contender("f", Fifo), contender("f", Fifo)], &[jobs("one", &[1])]);
    let error = twice.err().unwrap().to_string();
    assert_eq!(error, "policy `f` stands twice; its runs could not be told apart");
    let twice = campaign(vec![contender("f", Fifo)], &[jobs("one", &[1]), jobs("one", &[1])]);
    let error = twice.err().unwrap().to_string();
    assert_eq!(error, "workload `one` stands twice; its runs could not be told apart");
}

#[test]
fn a_recipe_that_makes_no_workload_is_named() {
    let recipe = Source::Generated("generate:mix=gpt:1".parse().unwrap());
    let error = campaign(vec![contender("f", Fifo)], &[recipe]).err().unwrap().to_string();
    assert!(
        error.starts_with("workload `generate:mix=gpt:1`: no application named `gpt` among bert,"),
        "{error}"
    );
}
