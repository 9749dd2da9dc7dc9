//! The same jobs on one generation of GPUs after another.

mod common;

use common::{profiles, submission};
use pollux_policy::policies;
use pollux_sim::campaign::Contender;
use pollux_sim::simulation::Options;
use pollux_sim::workload::Workload;
use pollux_sim::{ClusterShape, HardwareRow, compare_hardware, relative_load};

fn contender(name: &str) -> Contender {
    let policy = policies().into_iter().find(|policy| policy.about().name == name).unwrap();
    Contender { label: name.to_owned(), policy }
}

fn rows() -> Vec<HardwareRow> {
    let jobs = (0..8).map(|index| submission(index, 600 * index as u64, "cifar10", 2)).collect();
    let workload = Workload { name: "eight".to_owned(), jobs };
    let clusters = ["4x4:t4", "4x4:a100"].map(|shape| shape.parse::<ClusterShape>().unwrap());
    let contenders = [contender("pollux"), contender("tiresias")];
    compare_hardware(&contenders, &clusters, &[(1, workload)], &profiles(), &Options::default()).unwrap()
}

#[test]
fn faster_gpus_finish_sooner_and_the_first_policy_is_the_measure() {
    let rows = rows();
    let labels: Vec<(&str, &str)> = rows.iter().map(|row| (&*row.cluster, &*row.policy)).collect();
    let [t4, a100] = ["4x4:t4", "4x4:a100"];
    assert_eq!(labels, [(t4, "pollux"), (t4, "tiresias"), (a100, "pollux"), (a100, "tiresias")]);
    assert!(rows[2].avg_jct_secs < rows[0].avg_jct_secs && rows[3].avg_jct_secs < rows[1].avg_jct_secs);
    assert_eq!((rows[0].against_first, rows[2].against_first), (1.0, 1.0));
    let ratio = rows[3].avg_jct_secs / rows[2].avg_jct_secs;
    assert!((rows[3].against_first / ratio - 1.0).abs() < 1e-12);
    // Tiresias gives what users ask for: two GPUs, twice the initial batch.
    assert_eq!((rows[1].gpus_per_job, rows[1].batch_growth), (2.0, 2.0));
    for row in &rows {
        assert!(row.batch_growth >= 1.0 && row.efficiency > 0.0 && row.efficiency <= 1.0, "{row:?}");
    }
}

#[test] // Twice the nodes have half to do, twice the jobs twice as much; faster GPUs less.
fn load_is_relative_to_what_a_cluster_can_do() {
    let load = |n_jobs: usize, cluster: &str| {
        let jobs = (0..n_jobs).map(|index| submission(index, 0, "cifar10", 2)).collect();
        let workload = Workload { name: "some".to_owned(), jobs };
        let cluster = cluster.parse::<ClusterShape>().unwrap();
        relative_load(&workload, &profiles(), &cluster, 3_600.0).unwrap()
    };
    let one = load(4, "4x4:t4");
    assert!(one > 0.0);
    assert!((load(4, "8x4:t4") / one - 0.5).abs() < 1e-12);
    assert!((load(8, "4x4:t4") / one - 2.0).abs() < 1e-12);
    assert!(load(4, "4x4:a100") < one);
}

#[test]
fn waiting_is_a_part_of_the_time() {
    for row in rows() {
        assert!(row.waiting_secs >= 0.0 && row.waiting_secs < row.avg_jct_secs, "{row:?}");
    }
}
