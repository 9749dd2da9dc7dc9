//! Our policies in the artifact's world, beside what its authors published.
//!
//! `cargo xtask bench published [--quick | --full]`
//!
//! Five of the published workloads, seeds 1 to 5. The authors' genetic algorithm, which takes the longest by far, has
//! one seed unless `--full` is asked for. `--quick` is one seed of all, and of the genetic algorithm one workload.
//! Needs the authors' data and the table of `cargo xtask osdi21-table`; says so loudly where one is absent.
#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![allow(clippy::print_stderr, reason = "what was not compared is said")]

#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../../pollux-model/benches/measure/mod.rs"]
#[allow(dead_code, reason = "runs on several threads are not timed one by one")]
mod measure;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::exit;
use std::time::Instant;

use common::Reference;
use measure::{is_quick, verdict};
use pollux_api::parse_policy;
use pollux_sim::Spread;
use pollux_sim::campaign::{Campaign, Contender, Record, Source, World, summarise};
use pollux_sim::osdi21::{Limits, Options};
use pollux_sim::workload::{Checks, read_workload};

/// Those of the published workloads that the comparison is about.
const WORKLOADS: [u32; 5] = [1, 2, 3, 4, 6];

/// What the project promises of an average completion time, against the published one.
#[derive(Clone, Copy)]
enum Promise {
    /// The same to the second decimal.
    Equal,
    /// Within so many percent.
    Within(f64),
    /// At least so many percent below.
    Below(f64),
}

/// One line of the comparison.
struct Entry {
    policy: &'static str,
    /// Whether jobs build on what earlier ones learned, which the artifact does not know.
    history: bool,
    /// Whether a run takes a quarter of a minute rather than a part of a second.
    is_slow: bool,
    /// The published policy beside it.
    beside: &'static str,
    promise: Promise,
}

const fn entry(policy: &'static str, beside: &'static str, promise: Promise) -> Entry {
    Entry { policy, history: false, is_slow: false, beside, promise }
}

const ENTRIES: [Entry; 9] = [
    entry("tiresias", "tiresias", Promise::Equal),
    entry("optimus", "optimus", Promise::Equal),
    Entry { is_slow: true, ..entry("pollux-ga-osdi21", "pollux", Promise::Within(3.0)) },
    entry("pollux:osdi21", "pollux", Promise::Within(3.0)),
    entry("pollux:paper", "pollux", Promise::Within(3.0)),
    entry("pollux:tuned", "pollux", Promise::Below(2.5)),
    Entry { history: true, ..entry("pollux:tuned", "pollux", Promise::Below(2.5)) },
    entry("pollux-size-aware", "pollux", Promise::Below(14.0)),
    Entry { history: true, ..entry("pollux-size-aware", "pollux", Promise::Below(16.0)) },
];

/// What the authors published at a load of 1, in seconds by policy and workload.
struct Published {
    avg_jct: Figures,
    p99_jct: Figures,
    makespan: Figures,
}

type Figures = BTreeMap<(String, String), f64>;

impl Entry {
    fn label(&self) -> String {
        format!("{}{}", self.policy, if self.history { " --history" } else { "" })
    }
}

impl Promise {
    fn is_kept(self, ours: f64, published: f64) -> bool {
        let percent = percent_above(ours, published);
        match self {
            Self::Equal => (ours - published).abs() < 0.005,
            Self::Within(most) => percent.abs() <= most,
            Self::Below(least) => percent <= -least,
        }
    }

    fn text(self) -> String {
        match self {
            Self::Equal => "equal".to_owned(),
            Self::Within(most) => format!("within {most} %"),
            Self::Below(least) => format!("{least} % below"),
        }
    }
}

fn main() {
    let began = Instant::now();
    let Some(reference) = common::reference() else {
        eprintln!("NOT COMPARED WITH WHAT WAS PUBLISHED: what is absent is said above");
        return;
    };
    let published = Published::read(&reference.data.join("reference"));
    let is_full = std::env::args().any(|argument| argument == "--full");
    let n_threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let seeds: &[u64] = if is_quick() { &[1] } else { &[1, 2, 3, 4, 5] };
    let slow_seeds = if is_full { seeds } else { &seeds[..1] };
    let slow_workloads = if is_quick() { &WORKLOADS[..1] } else { &WORKLOADS[..] };
    let mut records = Vec::new();
    for (is_slow, history) in [(true, false), (false, false), (false, true)] {
        let chosen: Vec<&Entry> =
            ENTRIES.iter().filter(|entry| (entry.is_slow, entry.history) == (is_slow, history)).collect();
        let (workloads, seeds) = if is_slow { (slow_workloads, slow_seeds) } else { (&WORKLOADS[..], seeds) };
        let campaign = campaign(&reference, &chosen, history, workloads, seeds);
        let results = or_exit(campaign.execute(n_threads, |_| (), |_, _| ()));
        records.extend(results.into_iter().map(|(record, ())| record));
    }
    let kept = print_policies(&records, &published);
    print_workloads(&records, &published);
    println!("All promises: {}", verdict(kept));
    println!("{} runs on {n_threads} threads in {:.0} s", records.len(), began.elapsed().as_secs_f64());
}

/// Runs of these entries, all with history or all without.
fn campaign(
    reference: &Reference,
    entries: &[&Entry],
    history: bool,
    workloads: &[u32],
    seeds: &[u64],
) -> Campaign {
    let contender = |entry: &&Entry| Contender {
        label: entry.label(),
        policy: parse_policy(entry.policy).expect("an entry names a policy"),
    };
    let source = |number: &u32| {
        let file = reference.data.join(format!("pollux-osdi21/workloads/{}.csv", workload_name(*number)));
        Source::Fixed(or_exit(read_workload(&file, Checks::known(&Limits::known()))))
    };
    let sources: Vec<Source> = workloads.iter().map(source).collect();
    let options = Options { history, ..Options::default() };
    let world = World::Osdi21 { applications: reference.by_name(), options };
    or_exit(Campaign::new(entries.iter().map(contender).collect(), &sources, seeds, world))
}

/// Policies beside what was published; whether all promises are kept.
fn print_policies(records: &[Record], published: &Published) -> bool {
    println!(
        "Policies in the artifact's world on 16x4:t4, workloads {WORKLOADS:?}: means over workloads, in seconds;"
    );
    println!("of several seeds the mean, and for completion times the standard deviation.");
    println!(
        "{:<27}{:>5}{:>17}{:>11}{:>9}  {:<12}{:<12}{:>8}{:>10}{:>16}{:>8}{:>8}",
        "policy",
        "seeds",
        "average JCT",
        "published",
        "differ",
        "promise",
        "",
        "p99 JCT",
        "makespan",
        "worst rho (max)",
        "unfair",
        "s a run"
    );
    let summaries = summarise(records);
    let mut all_kept = true;
    for entry in &ENTRIES {
        let label = entry.label();
        let Some(summary) = summaries.iter().find(|summary| summary.policy == label) else { continue };
        let runs: Vec<&Record> = records.iter().filter(|record| record.policy == label).collect();
        let workloads: BTreeSet<&str> = runs.iter().map(|record| record.workload.as_str()).collect();
        let seeds: BTreeSet<u64> = runs.iter().map(|record| record.seed).collect();
        let metrics = &summary.metrics;
        let jct = metrics.avg_jct_secs;
        let theirs = mean(&published.avg_jct, entry.beside, &workloads);
        // The promises are about the mean over all five.
        let is_judged = workloads.len() == WORKLOADS.len();
        let is_kept = entry.promise.is_kept(jct.mean, theirs);
        all_kept &= is_kept || !is_judged;
        let verdict = if is_judged { verdict(is_kept) } else { "not judged" };
        let sd = if seeds.len() > 1 { format!(" ± {:.2}", jct.sd) } else { String::new() };
        let worst_rho = runs.iter().map(|record| record.metrics.worst_rho).fold(0.0, f64::max);
        println!(
            "{label:<27}{:>5}{:>17}{theirs:>11.2}{:>+8.2} %  {:<12}{verdict:<12}{:>8.0}{:>10.0}{:>16}{:>6.1} %{:>8.2}",
            seeds.len(),
            format!("{:.2}{sd:<8}", jct.mean),
            percent_above(jct.mean, theirs),
            entry.promise.text(),
            metrics.p99_jct_secs.mean,
            metrics.makespan_secs.mean,
            format!("{:.2} ({worst_rho:.2})", metrics.worst_rho.mean),
            100.0 * metrics.unfair_share.mean,
            summary.wall_secs.mean,
        );
        if !is_judged {
            println!("  (on {} alone, and so is what was published)", Vec::from_iter(workloads).join(", "));
        }
    }
    let names: Vec<String> = WORKLOADS.map(workload_name).to_vec();
    let all: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    for policy in ["tiresias", "optimus", "pollux"] {
        println!(
            "{:<32}{:>17}{:>54.0}{:>10.0}",
            format!("published: {policy}"),
            format!("{:.2}{:8}", mean(&published.avg_jct, policy, &all), ""),
            mean(&published.p99_jct, policy, &all),
            mean(&published.makespan, policy, &all),
        );
    }
    all_kept
}

/// Average completion times workload by workload, ours as means over seeds.
fn print_workloads(records: &[Record], published: &Published) {
    println!("Average completion times by workload, in seconds: what was published, and ours.");
    for beside in ["tiresias", "optimus", "pollux"] {
        let entries: Vec<&Entry> = ENTRIES.iter().filter(|entry| entry.beside == beside).collect();
        print!("{:<12}{:>19}", "workload", format!("published {beside}"));
        for entry in &entries {
            print!("  {}", entry.label());
        }
        println!();
        for name in WORKLOADS.map(workload_name) {
            let theirs = published.avg_jct[&(beside.to_owned(), name.clone())];
            print!("{name:<12}{theirs:>19.2}");
            for entry in &entries {
                let label = entry.label();
                let runs = records.iter().filter(|record| record.policy == label && record.workload == name);
                let jcts: Vec<f64> = runs.map(|record| record.metrics.avg_jct_secs).collect();
                let text =
                    if jcts.is_empty() { "-".to_owned() } else { format!("{:.2}", Spread::of(jcts).mean) };
                print!("  {text:>width$}", width = label.len());
            }
            println!();
        }
    }
}

impl Published {
    /// Averages stand in one file; what else can be told of the same runs in another.
    fn read(folder: &Path) -> Self {
        let (averages, tails) = (folder.join("published.csv"), folder.join("published-tails.csv"));
        Self {
            avg_jct: or_exit(figures(&averages, "avg_jct_s")),
            p99_jct: or_exit(figures(&tails, "p99_jct_s")),
            makespan: or_exit(figures(&tails, "makespan_s")),
        }
    }
}

/// A column of a file of published figures.
fn figures(file: &Path, column: &str) -> Result<Figures, csv::Error> {
    let mut reader = csv::Reader::from_path(file)?;
    let mut figures = Figures::new();
    for row in reader.deserialize() {
        let row: BTreeMap<String, String> = row?;
        if row["experiment"] == "jobload" && row["setting"] == "1.0" {
            let figure = row[column].parse().expect("published figures are numbers");
            figures.insert((row["policy"].clone(), row["workload"].clone()), figure);
        }
    }
    Ok(figures)
}

fn mean(figures: &Figures, policy: &str, workloads: &BTreeSet<&str>) -> f64 {
    let of = |workload: &&str| figures[&(policy.to_owned(), (*workload).to_owned())];
    Spread::of(workloads.iter().map(of)).mean
}

fn workload_name(number: u32) -> String {
    format!("workload-{number}")
}

fn percent_above(ours: f64, theirs: f64) -> f64 {
    100.0 * (ours / theirs - 1.0)
}

/// A benchmark that cannot read its input ends with a sentence.
fn or_exit<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        exit(1)
    })
}
