//! What became of many searches, by policy and way to search.

use serde::Serialize;

use super::study::SweepRecord;
use super::{Search, Sweep};
use crate::cluster::ClusterShape;
use crate::metrics::Spread;

/// The version of the JSON.
pub const SWEEP_VERSION: u64 = 1;

/// The figures of a search; as `Figures<Spread>`, those of several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures<T = f64> {
    /// The best accuracy that was found.
    pub best: T,
    /// The mean of the best five.
    pub top5: T,
    /// Mean seconds from a trial's submission to its end, be it done or given up.
    pub trial_secs: T,
    /// Seconds until the last trial ended.
    pub makespan_secs: T,
    /// GPU-hours held by all trials.
    pub gpu_hours: T,
    /// Trials that were given up.
    pub given_up: T,
    /// Restarts over trials; first starts do not count.
    pub restarts_per_trial: T,
}

impl<T: Copy> Figures<T> {
    /// The figures by the names they have in files, in the order they stand there.
    pub fn named(&self) -> [(&'static str, T); 7] {
        [
            ("best_accuracy", self.best),
            ("top5_accuracy", self.top5),
            ("avg_trial_s", self.trial_secs),
            ("makespan_s", self.makespan_secs),
            ("gpu_hours", self.gpu_hours),
            ("given_up", self.given_up),
            ("restarts_per_trial", self.restarts_per_trial),
        ]
    }
}

/// What became of all searches under one policy in one way.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy's label.
    pub policy: String,
    /// The way to search.
    pub search: Search,
    /// How many searches there were.
    pub n_runs: usize,
    /// Means over seeds, and how far they lie apart.
    pub figures: Figures<Spread>,
}

/// Sums searches up by policy and way, in the order in which they first appear.
pub fn rows(records: &[SweepRecord]) -> Vec<Row> {
    let of = |(policy, search): (&str, Search)| {
        let same = records.iter().filter(|record| record.policy == policy && record.search == search);
        let all: Vec<&Figures> = same.map(|record| &record.figures).collect();
        let of = |value: fn(&Figures) -> f64| Spread::of(all.iter().map(|figures| value(figures)));
        let figures = Figures {
            best: of(|figures| figures.best),
            top5: of(|figures| figures.top5),
            trial_secs: of(|figures| figures.trial_secs),
            makespan_secs: of(|figures| figures.makespan_secs),
            gpu_hours: of(|figures| figures.gpu_hours),
            given_up: of(|figures| figures.given_up),
            restarts_per_trial: of(|figures| figures.restarts_per_trial),
        };
        Row { policy: policy.to_owned(), search, n_runs: all.len(), figures }
    };
    cells(records).into_iter().map(of).collect()
}

/// A policy against another, search by search: what differs over seeds, each compared with itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The policy's label.
    pub policy: String,
    /// Whom it is compared with.
    pub baseline: String,
    /// The way to search.
    pub search: Search,
    /// Makespan over the baseline's, less 1: below 0 is shorter.
    pub makespan: Spread,
    /// The same of the mean time of a trial.
    pub trial: Spread,
    /// The mean accuracy of the best five, less the baseline's.
    pub top5: Spread,
}

/// Every policy against the one that came last, in each way to search.
pub fn pairs(records: &[SweepRecord]) -> Vec<Pair> {
    let Some(baseline) = records.last().map(|record| record.policy.as_str()) else { return Vec::new() };
    let others = cells(records).into_iter().filter(|(policy, _)| *policy != baseline);
    let of = |(policy, search): (&str, Search)| {
        let same = |name: &str| {
            let same = records.iter().filter(move |record| record.policy == name && record.search == search);
            same.map(|record| (record.seed, record.figures)).collect::<Vec<_>>()
        };
        let theirs = same(baseline);
        let with_theirs = |(seed, ours): (u64, Figures)| {
            theirs.iter().find(|(other, _)| *other == seed).map(|(_, theirs)| (ours, *theirs))
        };
        let both: Vec<(Figures, Figures)> = same(policy).into_iter().filter_map(with_theirs).collect();
        let of = |value: fn(&Figures, &Figures) -> f64| Spread::of(both.iter().map(|(a, b)| value(a, b)));
        Pair {
            policy: policy.to_owned(),
            baseline: baseline.to_owned(),
            search,
            makespan: of(|ours, theirs| ours.makespan_secs / theirs.makespan_secs - 1.0),
            trial: of(|ours, theirs| ours.trial_secs / theirs.trial_secs - 1.0),
            top5: of(|ours, theirs| ours.top5 - theirs.top5),
        }
    };
    others.map(of).collect()
}

/// Policies and ways to search, each pair once.
fn cells(records: &[SweepRecord]) -> Vec<(&str, Search)> {
    let mut cells: Vec<(&str, Search)> = Vec::new();
    for record in records {
        let cell = (record.policy.as_str(), record.search);
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    cells
}

/// All of it as JSON, with a newline at its end. `batch` is what trials asked for.
pub fn sweep_json(cluster: &ClusterShape, sweep: &Sweep, batch: u64, records: &[SweepRecord]) -> String {
    let run = |record: &SweepRecord| {
        let mut run = serde_json::Map::new();
        run.insert("policy".into(), record.policy.as_str().into());
        run.insert("search".into(), record.search.to_string().into());
        run.insert("seed".into(), record.seed.into());
        run.extend(record.figures.named().map(|(name, value)| (name.to_owned(), value.into())));
        run
    };
    let summary = |row: &Row| {
        let mut summary = serde_json::Map::new();
        summary.insert("policy".into(), row.policy.as_str().into());
        summary.insert("search".into(), row.search.to_string().into());
        summary.insert("runs".into(), row.n_runs.into());
        summary.extend(row.figures.named().map(|(name, value)| (name.to_owned(), spread(value))));
        summary
    };
    let pair = |pair: &Pair| {
        serde_json::json!({
            "policy": pair.policy,
            "baseline": pair.baseline,
            "search": pair.search.to_string(),
            "makespan_change": spread(pair.makespan),
            "avg_trial_change": spread(pair.trial),
            "top5_difference": spread(pair.top5),
        })
    };
    let file = File {
        version: SWEEP_VERSION,
        cluster: cluster.to_string(),
        application: &sweep.application,
        trials: sweep.n_trials,
        at_once: sweep.at_once,
        gpus: sweep.gpus,
        batch,
        median: sweep.median,
        runs: records.iter().map(run).collect(),
        summary: rows(records).iter().map(summary).collect(),
        pairs: pairs(records).iter().map(pair).collect(),
    };
    // Nothing in it is what JSON cannot hold.
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

#[derive(Serialize)]
struct File<'a> {
    version: u64,
    cluster: String,
    application: &'a str,
    trials: usize,
    at_once: usize,
    gpus: u32,
    batch: u64,
    median: bool,
    runs: Vec<serde_json::Map<String, serde_json::Value>>,
    summary: Vec<serde_json::Map<String, serde_json::Value>>,
    pairs: Vec<serde_json::Value>,
}

fn spread(Spread { mean, sd, min, max }: Spread) -> serde_json::Value {
    serde_json::json!({ "mean": mean, "sd": sd, "min": min, "max": max })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(policy: &str, seed: u64, makespan_secs: f64) -> SweepRecord {
        let figures = Figures { makespan_secs, trial_secs: 10.0, top5: 0.5, ..Figures::default() };
        SweepRecord { policy: policy.to_owned(), search: Search::Tpe, seed, figures }
    }

    #[test] // 8 against 10 and 18 against 20: a fifth less and a tenth less.
    fn each_seed_is_compared_with_itself() {
        let records = [record("a", 1, 8.0), record("a", 2, 18.0), record("b", 1, 10.0), record("b", 2, 20.0)];
        let rows = rows(&records);
        assert_eq!(rows.iter().map(|row| row.n_runs).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(rows[0].figures.makespan_secs, Spread::of([8.0, 18.0]));
        let pairs = pairs(&records);
        assert_eq!((pairs.len(), pairs[0].policy.as_str(), pairs[0].baseline.as_str()), (1, "a", "b"));
        assert!((pairs[0].makespan.mean + 0.15).abs() < 1e-12, "{pairs:?}");
        assert_eq!((pairs[0].trial.mean, pairs[0].top5.mean), (0.0, 0.0));
        assert!(super::pairs(&[]).is_empty());
    }

    #[test]
    fn the_json_has_runs_summary_and_pairs() {
        let records = [record("a", 1, 8.0), record("b", 1, 10.0)];
        let text = sweep_json(&ClusterShape::default(), &Sweep::default(), 512, &records);
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&json["version"], &json["batch"], &json["trials"]),
            (&1.into(), &512.into(), &100.into())
        );
        assert_eq!((&json["runs"][0]["makespan_s"], &json["runs"][1]["seed"]), (&8.0.into(), &1.into()));
        assert_eq!(json["summary"][1]["makespan_s"]["mean"], 10.0);
        assert_eq!((&json["pairs"][0]["policy"], &json["pairs"][0]["search"]), (&"a".into(), &"tpe".into()));
    }
}
