//! The report: findings in the order of the paper's evaluation.

use pollux_report::Page;
use serde_json::json;

use super::findings::{Claim, with_claims};
use super::{Experiment, Findings, Grid, Lab};

/// The report on these experiments.
pub fn page(lab: &Lab, findings: &[(&Experiment, Findings)]) -> Page {
    let all: Vec<&Claim> = findings.iter().flat_map(|(_, findings)| &findings.claims).collect();
    let n_hold = all.iter().filter(|claim| claim.holds).count();
    let mut page = Page::new("Pollux, evaluated again")
        .subtitle("The evaluation of the OSDI'21 paper in simulation, ours beside the published values.");
    // Some experiments answer questions of our own, to which nothing was published.
    if !all.is_empty() {
        page = page.section("Summary").text(format!(
            "{n_hold} of {} published comparisons hold here in direction and rough size.",
            all.len()
        ));
        page = with_claims(page, all.iter().copied());
    }
    let page = page.section("How it was made").list(method(lab));
    findings.iter().fold(page, |page, (experiment, findings)| {
        findings.onto(page.section(experiment.title).text(format!("After {}.", experiment.after)))
    })
}

/// The findings as JSON, with a newline at its end.
pub fn findings_json(findings: &[(&Experiment, Findings)]) -> String {
    let claim = |claim: &Claim| {
        json!({
            "comparison": claim.what, "published": claim.published, "here": claim.ours, "holds": claim.holds,
            "why_not": claim.why,
        })
    };
    let grid = |grid: &Grid| json!({"caption": grid.caption, "columns": grid.columns, "rows": grid.rows});
    let experiments = findings.iter().map(|(experiment, findings)| {
        json!({
            "name": experiment.name, "title": experiment.title, "after": experiment.after,
            "tables": findings.grids().map(grid).collect::<Vec<_>>(),
            "comparisons": findings.claims.iter().map(claim).collect::<Vec<_>>(),
        })
    });
    let file = json!({"version": 1, "experiments": experiments.collect::<Vec<_>>()});
    // Nothing in it is what JSON cannot hold.
    serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
}

fn method(lab: &Lab) -> Vec<String> {
    let seeds = lab.seeds();
    let ends = (seeds.first().copied().unwrap_or(0), seeds.last().copied().unwrap_or(0));
    let mut method = vec![
        "Scheduler, policies and agents are those of a live cluster. Training is simulated: step times and gradient noise \
         are those that the paper's authors measured (`pollux sim profile` made our profiles from their traces), a \
         restart takes 30 s, and there is no network or file system."
            .to_owned(),
        format!(
            "Workloads are generated after the paper's recipe: 160 jobs in 8 hours on 16 nodes of 4 T4 GPUs. Seeds {} to \
             {}, other jobs for each; experiments with many settings use the first five. ± is one standard deviation \
             over seeds, unless a 95 % interval is spoken of.",
            ends.0, ends.1
        ),
        "`pollux:paper` has the paper's settings, `pollux` is what the product does by default. Baselines: Tiresias with \
         the paper's two queues, Optimus with an oracle of the work left."
            .to_owned(),
        "What differs from the paper: its testbed was real, and ran one workload; ours are many. Our agents are careful \
         (they change batches slowly, and trust the noise scale only after a while), which costs some of the advantage \
         over rivals that know everything at once. Allocations are within a certified bound of the best instead of \
         those of a genetic algorithm."
            .to_owned(),
    ];
    method.push(match lab.artifact() {
        Some(_) => "The authors' workloads and traces were given: some sections repeat the experiment in their \
                    simulator's world and compare averages one by one."
            .to_owned(),
        None => "With the authors' workloads and traces (`--artifact DIR`) some sections repeat the experiment in their \
                 simulator's world."
            .to_owned(),
    });
    method
}
