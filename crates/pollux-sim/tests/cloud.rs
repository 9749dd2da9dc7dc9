//! Rented clusters: sizes that follow the jobs, reclaims, and costs.

mod common;

use std::path::Path;
use std::time::Duration;

use common::{profiles, submission};
use pollux_policy::Pollux;
use pollux_sim::autoscale::{Autoscaled, Comparison, RivalBatch, autoscale_imagenet};
use pollux_sim::cloud::{Cloud, Reclaims, parse_cloud};
use pollux_sim::simulation::{Options, simulate};
use pollux_sim::workload::Workload;
use pollux_sim::{Metrics, Run};

/// Up to 16 nodes of 4 T4 at 4 an hour, there after two minutes.
fn cloud(scaler: &str) -> Cloud {
    let text = format!(
        r#"{{"version": 1, "scaler": {scaler}, "pools": [{{"name": "t4", "gpu_type": "t4", "gpus": 4,
        "nodes": {{"min": 0, "max": 16}}, "price_per_hour": 4, "ready_s": 120, "min_hold_s": 60}}]}}"#
    );
    parse_cloud(Path::new("test.json"), &text).unwrap()
}

fn run(cloud: &Cloud, applications: &[&str], seed: u64) -> Run {
    let jobs = applications.iter().enumerate();
    let jobs = jobs.map(|(index, name)| submission(index, 600 * index as u64, name, 1)).collect();
    let workload = Workload { name: "few".into(), jobs };
    let options = Options { cluster: cloud.shape(), cloud: Some(cloud.clone()), seed, ..Options::default() };
    simulate(&workload, &profiles(), &Pollux::default(), &options).unwrap()
}

const GOODPUT: &str = r#"{"rule": "goodput", "patience_s": 300}"#;

#[test]
fn a_cluster_grows_from_nothing_and_shrinks_again() {
    let run = run(&cloud(GOODPUT), &["cifar10", "cifar10", "deepspeech2", "bert"], 1);
    let totals: Vec<u32> = run.log.bill.totals().into_iter().map(|(_, nodes)| nodes).collect();
    let most = totals.iter().copied().max().unwrap();
    assert!(most > 1 && totals.last().unwrap() < &most, "{totals:?}");
    let metrics = Metrics::of(&run);
    let (cost, hours) = (metrics.cost.unwrap(), metrics.node_hours.unwrap());
    assert!((cost - 4.0 * hours).abs() < 1e-9 && hours > 0.0);
    assert!(metrics.utilisation > 0.0 && metrics.utilisation <= 1.0, "{metrics:?}");
    // Nobody holds more than is paid for.
    assert!(metrics.gpu_secs <= 4.0 * 3_600.0 * hours);
}

#[test]
fn without_a_scaler_the_fewest_nodes_stay() {
    let mut cloud = cloud("null");
    cloud.pools[0].pool.least = 2;
    let run = run(&cloud, &["cifar10"], 1);
    assert_eq!(run.log.bill.totals().into_iter().map(|(_, nodes)| nodes).collect::<Vec<_>>(), [2]);
}

#[test]
fn nodes_are_taken_back_and_no_work_is_lost() {
    let mut cloud = cloud(GOODPUT);
    cloud.pools[0].reclaims = Some(Reclaims { per_hour: 1.0, warning: Duration::from_mins(2) });
    cloud.pools[0].pool.spot = true;
    // Every run is held to its work by the simulator's own laws.
    let once = run(&cloud, &["cifar10", "deepspeech2", "bert"], 3);
    assert!(once.log.bill.pools[0].reclaimed > 0);
    assert!(once.jobs.iter().all(|job| job.completed.is_some()));
    let again = run(&cloud, &["cifar10", "deepspeech2", "bert"], 3);
    assert_eq!(once.log.bill, again.log.bill);
    assert_ne!(once.log.bill, run(&cloud, &["cifar10", "deepspeech2", "bert"], 4).log.bill);
}

#[test] // Twice as slow a network, and a job on several nodes takes longer.
fn the_network_counts() {
    let mut slow = cloud("null");
    slow.pools[0].pool.least = 4;
    slow.pools[0].start = 4;
    let fast = run(&slow, &["deepspeech2"], 1).jobs[0].jct_secs().unwrap();
    slow.network = 0.5;
    assert!(run(&slow, &["deepspeech2"], 1).jobs[0].jct_secs().unwrap() > fast);
}

/// The comparison on the cluster above, which begins with one node.
fn imagenet(rival: RivalBatch) -> Comparison {
    let mut cloud = cloud(GOODPUT);
    (cloud.pools[0].pool.least, cloud.pools[0].start) = (1, 1);
    autoscale_imagenet(&cloud, rival, &profiles(), &Pollux::default(), 1).unwrap()
}

/// Seconds until the cluster is as large as it may be.
fn full_after(of: &Autoscaled) -> f64 {
    of.series.iter().find(|moment| moment.nodes == 16).unwrap().secs
}

#[test] // Measured on 2026-11-15: 18 % cheaper and 23 % slower. The paper has 25 % and 6 %: docs/concepts/evaluation.md.
fn goodput_buys_imagenet_cheaper_but_later_than_throughput() {
    let both = imagenet(RivalBatch::Throughput);
    assert!((0.15..0.22).contains(&both.saved()), "{}", both.saved());
    assert!((0.18..0.28).contains(&both.slower()), "{}", both.slower());
    assert!(full_after(&both.throughput) < 2.0 * 3_600.0 && full_after(&both.goodput) > 3.0 * 3_600.0);
    let last = both.goodput.series.last().unwrap();
    assert_eq!((last.secs, last.gpus), (both.goodput.jct_secs, 0.0));
    // A rival whose agent knows better batches is faster.
    let knowing = imagenet(RivalBatch::Goodput);
    assert!(knowing.throughput.jct_secs < both.throughput.jct_secs);
    assert_eq!(knowing.goodput, both.goodput);
}
