//! `pollux sim whatif`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::ValueEnum as _;
use pollux_sim::campaign::{Contender, Source, World};
use pollux_sim::whatif::{Answer, Ratio, Variant, ask, groups, page};
use pollux_sim::workload::Recipe;

use super::args::{RunArgs, WhatifArgs};
use super::failure::SimFailure;
use super::{args, inputs, run};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::text::{Align, Table, count, significant};

/// What can be changed, and an example of each.
const KEYS: [(&str, &str); 11] = [
    ("policy", "tiresias"),
    ("workload", "jobs.csv"),
    ("load", "2"),
    ("cluster", "20x4:t4"),
    ("scaler", "none"),
    ("round", "120"),
    ("restart", "60"),
    ("interference", "0.25"),
    ("history", "yes"),
    ("faults", "mtbf=200h,repair=2h"),
    ("weight", "bert:3"),
];

pub(crate) fn run(args: &WhatifArgs) -> Result<Output, Failure> {
    let base = &args.run;
    if base.policy.len() != 1 || base.workload.len() != 1 || base.compat.is_some() || base.show.is_some() {
        let why = "give one policy and one workload, and no `--compat` or `--show`";
        return Err(SimFailure::Senseless { flags: "`pollux sim whatif`", why }.into());
    }
    let mut variants = vec![variant("base", base, &BTreeMap::new())?];
    for change in &args.change {
        let (changed, weights) = changed(base, change)?;
        variants.push(variant(change, &changed, &weights)?);
    }
    let seeds = base.seeds.numbers();
    let answers = ask(&variants, &seeds, inputs::threads(base.threads), |_| {}).map_err(SimFailure::from)?;
    if let Some(folder) = &base.out {
        let page = page(&answers, &setting(args, &variants[0].world));
        let mut files: BTreeMap<PathBuf, String> =
            page.files().map(|(path, text)| (path.into(), text)).collect();
        files.insert("report.html".into(), page.to_html());
        output::write_folder(folder, &files)?;
    }
    let notes =
        vec![format!("simulated {} of {}", count(variants.len(), "variant"), count(seeds.len(), "seed"))];
    Ok(Output { data: text(&answers), notes, file: None })
}

fn variant(name: &str, args: &RunArgs, weights: &BTreeMap<String, f64>) -> Result<Variant, Failure> {
    inputs::check(args)?;
    let mut world = inputs::world(args)?;
    world.keep(pollux_sim::Kept::NOTHING);
    let contenders: Vec<Contender> =
        args.policy.iter().map(|text| run::contender(text)).collect::<Result<_, _>>()?;
    let source = inputs::sources(&args.workload, &world, &contenders)?;
    let several = || SimFailure::Senseless { flags: "`--workload`", why: "one file or recipe, no folder" };
    let [source] = <[_; 1]>::try_from(source).map_err(|_| several())?;
    weigh(&mut world, &source, weights)?;
    Ok(Variant { name: name.to_owned(), policy: args.policy[0].clone(), source, world })
}

/// Sets weights by the names of groups, or of applications where no group is called so.
fn weigh(world: &mut World, source: &Source, weights: &BTreeMap<String, f64>) -> Result<(), SimFailure> {
    let groups = groups(source);
    let applications: BTreeSet<String> =
        world.known().into_iter().map(|known| known.name.to_owned()).collect();
    let World::Profiles { options, .. } = world else { return Ok(()) };
    for (name, weight) in weights {
        if groups.contains(name.as_str()) {
            options.group_weights.insert(name.clone(), *weight);
        } else if applications.contains(name) {
            options.weights.insert(name.clone(), *weight);
        } else {
            return Err(SimFailure::NobodyToWeigh {
                name: name.clone(),
                groups: groups.into_iter().map(str::to_owned).collect(),
                applications: applications.into_iter().collect(),
            });
        }
    }
    Ok(())
}

/// The arguments after a change, and weights by name.
fn changed(base: &RunArgs, change: &str) -> Result<(RunArgs, BTreeMap<String, f64>), SimFailure> {
    let mut args = base.clone();
    let mut weights = BTreeMap::new();
    for part in change.split(';').map(str::trim) {
        let wrong = || SimFailure::NoSuchChange { change: part.to_owned() };
        let (key, value) = part.split_once('=').ok_or_else(wrong)?;
        set(&mut args, &mut weights, key, value).ok_or_else(wrong)?;
    }
    Ok((args, weights))
}

fn set(args: &mut RunArgs, weights: &mut BTreeMap<String, f64>, key: &str, value: &str) -> Option<()> {
    match key {
        "policy" => args.policy = vec![value.to_owned()],
        "workload" => args.workload = vec![value.to_owned()],
        "load" => {
            let recipe: Recipe = args.workload.first()?.parse().ok()?;
            let load = value.parse().ok().filter(|load: &f64| *load > 0.0 && load.is_finite())?;
            args.workload = vec![Recipe { load, ..recipe }.to_string()];
        }
        "cluster" => args.cluster = value.parse().ok()?,
        "scaler" => args.scaler = Some(super::cluster::ScalerArg::from_str(value, false).ok()?),
        "round" => args.round = Some(args::round(value).ok()?),
        "restart" => args.restart = Some(value.parse().ok()?),
        "interference" => args.interference = args::interference(value).ok()?,
        "history" => args.history = ["yes", "no"].contains(&value).then_some(value == "yes")?,
        "faults" => args.faults = Some(value.parse().ok()?),
        "weight" => {
            let (name, weight) = value.rsplit_once(':')?;
            let weight = weight.parse().ok().filter(|weight: &f64| *weight > 0.0 && weight.is_finite())?;
            weights.insert(name.to_owned(), weight);
        }
        _ => return None,
    }
    Some(())
}

/// What to write, for those who wrote something else.
pub(super) fn hint() -> String {
    let keys: Vec<String> = KEYS.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("write KEY=VALUE, several after `;`, as in {}", keys.join(", "))
}

fn setting(args: &WhatifArgs, world: &World) -> Vec<(String, String)> {
    let RunArgs { policy, workload, seeds, .. } = &args.run;
    let (cluster, gpus) = (world.cluster(), world.cluster().gpus());
    let base = format!(
        "policy `{}`, workload `{}`, cluster `{cluster}` ({gpus} GPUs), {seeds}",
        policy.join(","),
        workload.join(",")
    );
    let mut setting = vec![("base".to_owned(), base)];
    setting.extend(
        (1..).zip(&args.change).map(|(number, change)| (format!("change {number}"), format!("`{change}`"))),
    );
    setting
}

fn text(answers: &[Answer]) -> String {
    let Some(base) = answers.first() else { return String::new() };
    let mut table = Table::new([
        ("VARIANT", Align::Left),
        ("AVG JCT (h)", Align::Right),
        ("CHANGE", Align::Right),
        ("P99 (h)", Align::Right),
        ("CHANGE", Align::Right),
        ("MAKESPAN (h)", Align::Right),
        ("CHANGE", Align::Right),
        ("HELD (%)", Align::Right),
        ("UNFAIR (%)", Align::Right),
    ]);
    for (index, answer) in answers.iter().enumerate() {
        let hours = |figure: fn(&pollux_sim::Metrics) -> f64| {
            let change = if index == 0 { String::new() } else { said(answer.against(base, figure)) };
            (significant(answer.spread(figure).mean / 3_600.0, 3), change)
        };
        let (average, tail, end) =
            (hours(|run| run.avg_jct_secs), hours(|run| run.p99_jct_secs), hours(|run| run.makespan_secs));
        let percent =
            |figure: fn(&pollux_sim::Metrics) -> f64| format!("{:.1}", 100.0 * answer.spread(figure).mean);
        let (held, unfair) = (percent(|run| run.utilisation), percent(|run| run.unfair_share));
        table.push([answer.name.clone(), average.0, average.1, tail.0, tail.1, end.0, end.1, held, unfair]);
    }
    let mut text = table.render();
    for answer in &answers[1..] {
        let mut table = Table::new([
            (if base.by_group { "GROUP" } else { "APPLICATION" }, Align::Left),
            ("JOBS", Align::Right),
            ("BEFORE (h)", Align::Right),
            ("AFTER (h)", Align::Right),
            ("SOONER (%)", Align::Right),
            ("LATER (%)", Align::Right),
        ]);
        for shift in answer.shifts(base) {
            let [before, after] = shift.jct_secs.map(|secs| significant(secs / 3_600.0, 3));
            let part = |at: usize| {
                shift.sooner_later.map_or("-".to_owned(), |parts| format!("{:.0}", 100.0 * parts[at]))
            };
            let name = shift.of.clone().unwrap_or_else(|| "all".to_owned());
            table.push([name, shift.n_jobs.to_string(), before, after, part(0), part(1)]);
        }
        let _ = write!(text, "\nFor whom: {}\n{}", answer.name, table.render());
        for moved in answer.losers(base, 3).iter().filter(|_| answer.has_the_jobs_of(base)) {
            let [before, after] = moved.jct_secs.map(|secs| significant(secs / 3_600.0, 3));
            let _ =
                writeln!(text, "{} of seed {} loses most: {before} h, then {after} h", moved.job, moved.seed);
        }
    }
    text
}

/// `+12 % ±3`, or `+12 %` of a single seed.
fn said(ratio: Ratio) -> String {
    // Adding nothing makes a plus of the sign that a negative zero has.
    let change = (1_000.0 * (ratio.mean - 1.0)).round() / 10.0 + 0.0;
    if ratio.half_width.is_finite() {
        format!("{change:+.1} % ±{:.1}", 100.0 * ratio.half_width)
    } else {
        format!("{change:+.1} %")
    }
}
