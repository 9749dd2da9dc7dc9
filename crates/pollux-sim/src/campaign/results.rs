//! What became of all runs, by run and by policy.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::cluster::ClusterShape;
use crate::metrics::{Metrics, Spread};

/// The version of the JSON.
pub const VERSION: u64 = 1;

/// What became of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The policy's label.
    pub policy: String,
    /// The workload's label.
    pub workload: String,
    /// The seed.
    pub seed: u64,
    /// Jobs of the workload.
    pub n_jobs: usize,
    /// Its figures.
    pub metrics: Metrics,
    /// Seconds it took to simulate: the only thing that differs when it is made again.
    pub wall_secs: f64,
}

/// What became of all runs of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The policy's label.
    pub policy: String,
    /// How many runs there were.
    pub n_runs: usize,
    /// The mean over workloads of each figure, and how far that lies apart over seeds.
    pub metrics: Metrics<Spread>,
    /// The same of the seconds a run took to simulate.
    pub wall_secs: Spread,
}

/// Sums runs up by policy, in the order in which policies first appear.
pub fn summarise(records: &[Record]) -> Vec<Summary> {
    let mut policies: Vec<&str> = Vec::new();
    for record in records {
        if !policies.contains(&record.policy.as_str()) {
            policies.push(&record.policy);
        }
    }
    policies.into_iter().map(|policy| summary(policy, records)).collect()
}

fn summary(policy: &str, records: &[Record]) -> Summary {
    let runs: Vec<&Record> = records.iter().filter(|record| record.policy == policy).collect();
    let mut seeds: Vec<u64> = runs.iter().map(|record| record.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let of_seed = |seed: &u64| runs.iter().filter(|record| record.seed == *seed).collect::<Vec<_>>();
    let by_seed: Vec<Vec<&&Record>> = seeds.iter().map(of_seed).collect();
    let mean = |runs: &Vec<&&Record>| {
        Metrics::mean(&runs.iter().map(|record| record.metrics).collect::<Vec<Metrics>>())
    };
    let wall = |runs: &Vec<&&Record>| Spread::of(runs.iter().map(|record| record.wall_secs)).mean;
    Summary {
        policy: policy.to_owned(),
        n_runs: runs.len(),
        metrics: Metrics::spread(&by_seed.iter().map(mean).collect::<Vec<Metrics>>()),
        wall_secs: Spread::of(by_seed.iter().map(wall)),
    }
}

/// All of it as JSON, with a newline at its end. `compat` names the compatibility mode, if there was one.
pub fn results_json(cluster: &ClusterShape, compat: Option<&str>, records: &[Record]) -> String {
    let summary = summarise(records);
    let file = File {
        version: VERSION,
        cluster: cluster.to_string(),
        compat,
        runs: records.iter().map(RunLine).collect(),
        summary: summary.iter().map(SummaryLine).collect(),
    };
    // Nothing in it is what JSON cannot hold.
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

#[derive(Serialize)]
struct File<'a> {
    version: u64,
    cluster: String,
    compat: Option<&'a str>,
    runs: Vec<RunLine<'a>>,
    summary: Vec<SummaryLine<'a>>,
}

struct RunLine<'a>(&'a Record);

/// Figures that are whole numbers in a single run.
const COUNTS: [&str; 3] = ["restarts", "rounds", "failures"];

/// Whether a figure is that of rented nodes, and none are.
fn is_left_out(name: &str, is_none: bool) -> bool {
    is_none && ["cost", "node_hours"].contains(&name)
}

impl Serialize for RunLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Record { policy, workload, seed, n_jobs, metrics, wall_secs } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("policy", policy)?;
        map.serialize_entry("workload", workload)?;
        map.serialize_entry("seed", seed)?;
        map.serialize_entry("jobs", n_jobs)?;
        for (name, value) in metrics.named() {
            if is_left_out(name, value.is_none()) {
                continue;
            }
            if COUNTS.contains(&name) {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
                map.serialize_entry(name, &value.map(|value| value as u64))?;
            } else {
                map.serialize_entry(name, &value)?;
            }
        }
        map.serialize_entry("wall_s", wall_secs)?;
        map.end()
    }
}

struct SummaryLine<'a>(&'a Summary);

impl Serialize for SummaryLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Summary { policy, n_runs, metrics, wall_secs } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("policy", policy)?;
        map.serialize_entry("runs", n_runs)?;
        for (name, spread) in metrics.named() {
            if is_left_out(name, spread.is_none()) {
                continue;
            }
            map.serialize_entry(name, &spread.map(SpreadFields::from))?;
        }
        map.serialize_entry("wall_s", &SpreadFields::from(*wall_secs))?;
        map.end()
    }
}

#[derive(Serialize)]
struct SpreadFields {
    mean: f64,
    sd: f64,
    min: f64,
    max: f64,
}

impl From<Spread> for SpreadFields {
    fn from(Spread { mean, sd, min, max }: Spread) -> Self {
        Self { mean, sd, min, max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Log, RoundStats, Run};

    fn record(policy: &str, workload: &str, seed: u64, avg_jct_secs: f64) -> Record {
        let run = Run { jobs: vec![], gpus: 4, rounds: RoundStats::default(), log: Log::default() };
        let metrics = Metrics { avg_jct_secs, ..Metrics::of(&run) };
        let (policy, workload) = (policy.to_owned(), workload.to_owned());
        Record { policy, workload, seed, n_jobs: 2, metrics, wall_secs: 0.5 }
    }

    #[test] // Seed 1: 10 and 30, 20 on average; seed 2: 14 and 34, 24. The mean is 22, and both are 2 away from it.
    fn the_spread_is_over_seeds_of_the_mean_over_workloads() {
        let records = [
            record("b", "u", 1, 10.0),
            record("b", "u", 2, 14.0),
            record("b", "v", 1, 30.0),
            record("b", "v", 2, 34.0),
            record("a", "u", 1, 5.0),
        ];
        let summary = summarise(&records);
        let found: Vec<_> = summary.iter().map(|summary| (summary.policy.as_str(), summary.n_runs)).collect();
        assert_eq!(found, [("b", 4), ("a", 1)]);
        assert_eq!(summary[0].metrics.avg_jct_secs, Spread::of([20.0, 24.0]));
        assert_eq!(summary[1].metrics.avg_jct_secs, Spread { mean: 5.0, sd: 0.0, min: 5.0, max: 5.0 });
        assert_eq!(summary[0].wall_secs, Spread { mean: 0.5, sd: 0.0, min: 0.5, max: 0.5 });
    }

    #[test]
    fn the_json_has_runs_and_summary() {
        let text = results_json(&ClusterShape::default(), Some("osdi21"), &[record("a", "u", 1, 5.0)]);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&json["version"], &json["cluster"], &json["compat"]),
            (&1.into(), &"16x4:t4".into(), &"osdi21".into())
        );
        let run = &json["runs"][0];
        assert_eq!((&run["policy"], &run["seed"], &run["avg_jct_s"]), (&"a".into(), &1.into(), &5.0.into()));
        assert_eq!((&run["restarts"], &run["mean_gap"]), (&0.into(), &serde_json::Value::Null));
        assert_eq!(json["summary"][0]["avg_jct_s"]["mean"], 5.0);
        let keys = [
            "policy",
            "workload",
            "seed",
            "p50_jct_s",
            "p99_jct_s",
            "makespan_s",
            "gpu_seconds",
            "worst_rho",
        ];
        for key in keys.into_iter().chain(["unfair_share", "wall_s"]) {
            assert!(!run[key].is_null(), "{key}");
        }
    }
}
