//! Interference in the artifact's world, where neighbours are allowed: under the authors' genetic algorithm, which the
//! published values are of, and under our solver with the same objective.

use super::findings::{Claim, Findings, Grid};
use super::lab::{Lab, LabError, Series};
use super::published;

/// The artifact's search and ours, with nobody kept apart.
const POLICIES: [&str; 2] = ["pollux-ga-osdi21:interference=allow", "pollux:osdi21+interference=allow"];

/// How far from a published average a reproduced one may be.
const NEAR: f64 = 0.05;

/// Adds the table and the published comparison; nothing where the artifact's data are not given.
pub(super) fn in_the_artifact(lab: &Lab, findings: &mut Findings) -> Result<(), LabError> {
    let columns = ["slow-down", "policy", "average (s)", "published (s)", "off by", "beside others"];
    let mut grid = Grid::new("Interference, in the artifact's world: workloads 1, 2 and 4", columns);
    let mut worst = [0.0_f64; POLICIES.len()];
    for (slowdown, _, averages) in published::ARTIFACT_INTERFERENCE {
        let theirs = averages.iter().sum::<f64>() / averages.len() as f64;
        for (policy, worst) in POLICIES.into_iter().zip(&mut worst) {
            let runs = lab.artifact_runs(policy, 1.0, |options| options.interference = slowdown)?;
            let Some(series) = runs else { return Ok(()) };
            let average = series.mean(|run| run.avg_jct_secs);
            let off = average / theirs - 1.0;
            *worst = worst.max(off.abs());
            grid.push([
                format!("{:.0} %", 100.0 * slowdown),
                format!("`{policy}`"),
                format!("{average:.0}"),
                format!("{theirs:.0}"),
                format!("{:+.1} %", 100.0 * off),
                format!("{:.0} %", 100.0 * beside_others(&series)),
            ]);
        }
    }
    findings.grid(grid);
    findings.text(
        "The published values are of the artifact's genetic algorithm without its rule that keeps distributed jobs apart. \
         Slow-downs change what jobs achieve, not what their agents measure, so neither search sees them, and to both a \
         distributed job is worth the same on any nodes. Ours packs such a job onto few nodes nevertheless, the genetic \
         algorithm leaves it where chance has put it: the last column is the part of the time of distributed jobs in which \
         another is on one of their nodes.",
    );
    findings.claim(
        Claim::new(
            "Interference: every average of the genetic algorithm in the artifact's world",
            "within 5 %",
            format!("worst {:.1} % off (our solver: {:.1} %)", 100.0 * worst[0], 100.0 * worst[1]),
            worst[0] <= NEAR,
        )
        .otherwise(
            "see the table; the search is random, and one run for each workload is all that was published",
        ),
    );
    Ok(())
}

fn beside_others(series: &Series) -> f64 {
    series.runs.iter().map(|run| run.beside_others).sum::<f64>() / series.runs.len().max(1) as f64
}
