//! The page that `pollux sim run --out` leaves beside the results.

use std::path::Path;

use pollux_model::JobId;
use pollux_report::Page;
use pollux_sim::campaign::{Campaign, Cell, Record, World};
use pollux_sim::cloud::ScaleRule;
use pollux_sim::report::{self, About, Digest};
use pollux_sim::simulation;

use super::args::RunArgs;

/// Options that change no result, and whether a value follows each: where results go, and how many threads make them.
const OF_NO_ACCOUNT: [(&str, bool); 5] =
    [("--threads", true), ("--out", true), ("-o", true), ("--output", true), ("--show", true)];

/// Whether a run is the first of its policy, which the page shows in detail.
pub(super) fn in_detail(campaign: &Campaign, cell: &Cell<'_>) -> bool {
    let first = campaign.cells().next();
    first.is_some_and(|first| (first.workload, first.seed) == (cell.workload, cell.seed))
}

/// The page of a campaign.
pub(super) fn page(
    args: &RunArgs,
    campaign: &Campaign,
    (summary, traces): (String, &str),
    shown: Option<JobId>,
    records: &[Record],
    digests: &[Digest],
) -> Page {
    let about = About {
        summary,
        command: command(std::env::args()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cluster: campaign.world().cluster().clone(),
        settings: settings(args, campaign, traces),
        remarks: remarks(args),
        has_faults: campaign.world().faults().is_any(),
        shown,
    };
    report::page(&about, records, digests)
}

/// The command as it was given, without what changes no result.
fn command(args: impl Iterator<Item = String>) -> String {
    let mut words = vec!["pollux".to_owned()];
    let mut args = args.skip(1);
    while let Some(arg) = args.next() {
        let known = OF_NO_ACCOUNT.iter().find(|(name, _)| {
            let rest = arg.strip_prefix(name);
            // `-ojson` and `--out=DIR` have their value with them.
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('=') || !name.starts_with("--"))
        });
        match known {
            Some((name, true)) if arg == *name => drop(args.next()),
            Some(_) => {}
            None => words.push(quoted(&arg)),
        }
    }
    words.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=+,@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn settings(args: &RunArgs, campaign: &Campaign, traces: &str) -> Vec<(String, String)> {
    let mut workloads: Vec<&str> = Vec::new();
    for cell in campaign.cells() {
        if !workloads.contains(&cell.workload) {
            workloads.push(cell.workload);
        }
    }
    let mut settings = vec![
        ("Workloads", workloads.join(", ")),
        ("Seeds", args.seeds.to_string().trim_start_matches("seeds ").trim_start_matches("seed ").to_owned()),
        ("Jobs train by", traces.to_owned()),
    ];
    let round = args.round.map_or_else(|| "the policy's own".to_owned(), |secs| format!("{secs} s"));
    settings.push(("Rounds", round));
    if let World::Profiles { options, .. } = campaign.world() {
        let restart = options.restart.to_string();
        let is_number = restart.parse::<f64>().is_ok();
        settings.push((
            "A restart",
            if is_number { format!("{restart} s") } else { "by application".to_owned() },
        ));
        settings.push(("Noise", options.noise.to_string()));
    }
    if campaign.world().faults().is_any() {
        settings.push(("Faults", campaign.world().faults().to_string()));
    }
    if let World::Profiles { options: simulation::Options { cloud: Some(cloud), .. }, .. } = campaign.world()
    {
        let rule = match cloud.scaler.map(|scaler| scaler.rule) {
            None => "stay as they are".to_owned(),
            Some(rule) => format!("by {}", rule_name(rule)),
        };
        settings.push(("Numbers of nodes", rule));
    }
    settings.push(("Interference", args.interference.to_string()));
    settings.push(("History", if args.history { "used" } else { "not used" }.to_owned()));
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What the number of rented nodes follows, as its file names it.
fn rule_name(rule: ScaleRule) -> &'static str {
    match rule {
        ScaleRule::Goodput { .. } => "goodput",
        ScaleRule::Cost { .. } => "cost",
        ScaleRule::Throughput { .. } => "throughput",
    }
}

fn remarks(args: &RunArgs) -> Vec<String> {
    let compat = "The world is that of the authors' artifact (osdi21), in turns of a minute; efficiency over time is told to \
                  the minute.";
    let table = args.table.as_deref().map(|table: &Path| format!("The table is {}.", table.display()));
    args.compat.map(|_| compat.to_owned()).into_iter().chain(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_command(args: &str, expected: &str) {
        assert_eq!(command(args.split(' ').map(str::to_owned)), expected);
    }

    #[test]
    fn a_command_is_told_without_what_changes_nothing() {
        let kept = "pollux sim run --policy pollux:tuned,fifo --seeds 1..2 --noise=0.1";
        check_command(kept, kept);
        check_command(
            "/usr/bin/pollux sim run --out here --policy pollux:tuned,fifo --threads=3 --seeds 1..2 -o json --noise=0.1",
            kept,
        );
        check_command("pollux sim run -ojson --show a --output json", "pollux sim run");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
