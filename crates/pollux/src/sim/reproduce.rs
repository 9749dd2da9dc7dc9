//! `pollux sim reproduce`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use pollux_sim::profile::builtin;
use pollux_sim::reproduce::{
    Artifact, Claim, EXPERIMENTS, Experiment, Findings, Grid, Lab, findings_json, page,
};

use super::args::ReproduceArgs;
use super::failure::SimFailure;
use super::inputs;
use crate::cli::PlainOutput;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::text::{count, duration};

pub(crate) fn run(args: &ReproduceArgs) -> Result<Output, Failure> {
    if args.list {
        return Ok(Output { data: list(), ..Output::default() });
    }
    let chosen = chosen(&args.experiments)?;
    let artifact = args.artifact.as_deref().map(|folder| artifact(folder, args)).transpose()?;
    let lab = Lab::new(builtin(), args.seeds.numbers(), inputs::threads(args.threads), artifact);
    let began = Instant::now();
    let mut findings: Vec<(&Experiment, Findings)> = Vec::new();
    for (index, experiment) in (1..).zip(&chosen) {
        output::say(&format!("{index} of {}: {}\n", chosen.len(), experiment.title));
        findings.push((experiment, experiment.conduct(&lab).map_err(SimFailure::from)?));
    }
    let mut notes = Vec::new();
    if let Some(folder) = &args.out {
        let page = page(&lab, &findings);
        let mut files: BTreeMap<PathBuf, String> =
            page.files().map(|(path, text)| (path.into(), text)).collect();
        files.insert("report.html".into(), page.to_html());
        files.insert("findings.json".into(), findings_json(&findings));
        output::write_folder(folder, &files)?;
        notes.push(format!("the report is {}", folder.join("report.html").display()));
    }
    notes.push(format!("made {} in {}", count(chosen.len(), "experiment"), duration(began.elapsed())));
    let data = match args.output {
        PlainOutput::Text => text(&findings),
        PlainOutput::Json => findings_json(&findings),
    };
    Ok(Output { data, notes, file: None })
}

/// The experiments that are named, each once; all for `all` or nothing.
fn chosen(names: &[String]) -> Result<Vec<&'static Experiment>, SimFailure> {
    if names.is_empty() || names.iter().any(|name| name == "all") {
        return Ok(EXPERIMENTS.iter().collect());
    }
    let mut chosen: Vec<&'static Experiment> = Vec::new();
    for name in names {
        let unknown = || SimFailure::NoSuchExperiment { name: name.clone() };
        let experiment = Experiment::find(name).ok_or_else(unknown)?;
        if !chosen.iter().any(|other| other.name == experiment.name) {
            chosen.push(experiment);
        }
    }
    Ok(chosen)
}

fn artifact(folder: &Path, args: &ReproduceArgs) -> Result<Artifact, SimFailure> {
    inputs::exists(folder)?;
    let applications = inputs::applications(Some(folder.join("traces")), args.table.clone())?;
    Ok(Artifact { applications, folder: folder.to_owned() })
}

fn list() -> String {
    let width = EXPERIMENTS.iter().map(|experiment| experiment.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Experiment { name, title, after, .. } in EXPERIMENTS {
        let _ = writeln!(text, "{name:<width$}  {title} ({after})");
    }
    text
}

fn text(findings: &[(&Experiment, Findings)]) -> String {
    let mut text = String::new();
    for (experiment, findings) in findings {
        let _ = writeln!(text, "{}\n{}\n", experiment.title, "=".repeat(experiment.title.chars().count()));
        for grid in findings.grids() {
            let _ = writeln!(text, "{}\n{}", grid.caption, rows(grid));
        }
    }
    let claims: Vec<&Claim> = findings.iter().flat_map(|(_, findings)| &findings.claims).collect();
    if claims.is_empty() {
        return text;
    }
    let _ = writeln!(text, "Published comparisons\n=====================\n");
    for claim in &claims {
        let mark = if claim.holds { "holds" } else { "DIFFERS" };
        let _ = writeln!(text, "{mark:<8}{}: {} (published: {})", claim.what, claim.ours, claim.published);
        if let Some(why) = &claim.why {
            let _ = writeln!(text, "        {why}");
        }
    }
    let n_hold = claims.iter().filter(|claim| claim.holds).count();
    let _ = writeln!(text, "\n{n_hold} of {} hold in direction and rough size.", claims.len());
    text
}

/// Columns as wide as they need; the first one keeps to the left.
fn rows(grid: &Grid) -> String {
    let plain = |cell: &String| cell.replace('`', "");
    let rows: Vec<Vec<String>> =
        std::iter::once(&grid.columns).chain(&grid.rows).map(|row| row.iter().map(plain).collect()).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..grid.columns.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    text
}
