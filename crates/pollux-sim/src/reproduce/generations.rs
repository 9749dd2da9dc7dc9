//! Newer GPUs: what is left of the advantage, and why.

use std::fmt::Write as _;

use super::clusters::{contender, shape};
use super::findings::{Findings, Grid};
use super::lab::{Lab, LabError};
use super::policies::percent;
use crate::campaign::{Contender, World};
use crate::cluster::ClusterShape;
use crate::hardware::{HardwareRow, compare_hardware, relative_load};
use crate::simulation::Options;
use crate::workload::{Recipe, Workload};

const CLUSTERS: [&str; 3] = ["16x4:t4", "16x4:v100", "16x4:a100"];
const POLICIES: [&str; 3] = ["pollux", "tiresias", "optimus"];
/// No profile of NCF is of use on V100.
const MIX: &str = "imagenet:0.02+yolov3:0.06+deepspeech2:0.1+bert:0.1+cifar10:0.72";
/// Seeds that are used, of those there are.
const N_SEEDS: usize = 3;
/// Jobs are as many as the paper's at most so many times over, or runs take too long.
const MOST_LOAD: f64 = 12.0;

/// How all policies fare on one cluster.
struct Fared {
    /// Times the number of the paper's jobs.
    load: f64,
    /// See [`relative_load`]; a mean over seeds.
    relative: f64,
    /// By policy, ours first.
    rows: Vec<HardwareRow>,
}

pub(super) fn hardware(lab: &Lab) -> Result<Findings, LabError> {
    let clusters = CLUSTERS.into_iter().map(shape).collect::<Result<Vec<_>, _>>()?;
    let contenders = POLICIES.into_iter().map(contender).collect::<Result<Vec<_>, _>>()?;
    let known = &clusters[0];
    let same = clusters.iter().map(|cluster| fare(lab, &contenders, cluster, &draw(lab, known, 1.0)?, 1.0));
    let same = same.collect::<Result<Vec<_>, _>>()?;
    let busy = clusters.iter().skip(1).map(|cluster| {
        let load = load_for(lab, cluster, known, same[0].relative)?;
        fare(lab, &contenders, cluster, &draw(lab, known, load)?, load)
    });
    let busy = busy.collect::<Result<Vec<_>, LabError>>()?;

    let mut findings = Findings::default();
    findings.text(
        "The question the paper's critics ask: is the advantage one of slow GPUs? First the very same jobs on 64 T4, V100 \
         and A100, with the GPUs and batches that suited their users on T4. Faster GPUs have less to do then, so the second \
         table has as many more jobs as bring each to the load of the T4. Load is relative to what the cluster can do: the \
         hours that all jobs need one GPU at a time, over the hours of all GPUs while jobs arrive.",
    );
    findings.grid(grid("The same jobs on three generations of GPUs", same.iter()));
    findings.grid(grid("As many jobs as keep the load the same", same.iter().take(1).chain(&busy)));
    findings.text("Why the advantage is what it is, by the figures of these runs:");
    for fared in same.iter().chain(&busy) {
        findings.text(why(fared));
    }
    findings.text(verdict(&same, &busy));
    findings.note(
        "A difference of a tenth between ratios is within what three seeds can tell. Step times on V100 and \
         A100 are computed from published parameters; docs/reference/application-profile.md says how well they fit.",
    );
    Ok(findings)
}

/// Jobs by seed, whose users ask for what suits them on this cluster.
fn draw(lab: &Lab, known: &ClusterShape, load: f64) -> Result<Vec<(u64, Workload)>, LabError> {
    let recipe: Recipe = format!("generate:load={load},mix={MIX}").parse()?;
    let options = Options { cluster: known.clone(), ..Options::default() };
    let world = World::Profiles { profiles: lab.profiles().clone(), options };
    let seeds = lab.seeds().iter().take(N_SEEDS);
    let drawn = seeds.map(|&seed| Ok((seed, world.generate(&recipe, seed)?)));
    let drawn: Result<_, crate::workload::GenerateError> = drawn.collect();
    drawn.map_err(|error| LabError::Data(error.to_string()))
}

/// The mean of [`relative_load`] while jobs arrive.
fn relative(lab: &Lab, cluster: &ClusterShape, workloads: &[(u64, Workload)]) -> Result<f64, LabError> {
    let secs = 3_600.0 * Recipe::default().hours;
    let each = workloads.iter().map(|(_, jobs)| relative_load(jobs, lab.profiles(), cluster, secs));
    let sum: Option<f64> = each.sum();
    let sum = sum.ok_or_else(|| LabError::Data(format!("no profile of some job on {cluster}")))?;
    Ok(sum / workloads.len().max(1) as f64)
}

/// How many times the paper's jobs give a cluster this relative load, to two digits after the point.
///
/// More load adds jobs and removes none, so it is found by halving. Rare large jobs make it come in steps.
fn load_for(lab: &Lab, cluster: &ClusterShape, known: &ClusterShape, wanted: f64) -> Result<f64, LabError> {
    let round = |load: f64| (100.0 * load).round() / 100.0;
    let (mut low, mut high) = (0.01, MOST_LOAD);
    while high - low > 0.015 {
        let middle = round(f64::midpoint(low, high));
        if relative(lab, cluster, &draw(lab, known, middle)?)? < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(round(high))
}

/// All policies on a cluster.
fn fare(
    lab: &Lab,
    contenders: &[Contender],
    cluster: &ClusterShape,
    workloads: &[(u64, Workload)],
    load: f64,
) -> Result<Fared, LabError> {
    let relative = relative(lab, cluster, workloads)?;
    let clusters = std::slice::from_ref(cluster);
    let rows = compare_hardware(contenders, clusters, workloads, lab.profiles(), &Options::default());
    let rows = rows.map_err(|error| LabError::Data(error.to_string()))?;
    Ok(Fared { load, relative, rows })
}

fn grid<'a>(caption: &str, all: impl Iterator<Item = &'a Fared>) -> Grid {
    let columns = [
        "cluster",
        "jobs",
        "load",
        "policy",
        "average JCT (h)",
        "over pollux",
        "waiting (h)",
        "GPUs a job",
        "batch",
        "efficiency",
        "held",
    ];
    let mut grid = Grid::new(caption, columns);
    for Fared { load, relative, rows } in all {
        for row in rows {
            grid.push([
                row.cluster.clone(),
                format!("{load} x"),
                percent(*relative),
                format!("`{}`", row.policy),
                format!("{:.2}", row.avg_jct_secs / 3_600.0),
                format!("{:.2}", row.against_first),
                format!("{:.2}", row.waiting_secs / 3_600.0),
                format!("{:.1}", row.gpus_per_job),
                format!("{:.1} x", row.batch_growth),
                format!("{:.2}", row.efficiency),
                percent(row.utilisation),
            ]);
        }
    }
    grid
}

/// Where the difference to each rival comes from: waiting, or training with fewer GPUs or at a worse batch.
fn why(fared: &Fared) -> String {
    let Some((ours, rivals)) = fared.rows.split_first() else { return String::new() };
    let mut text = format!(
        "{}, {} x the jobs, load {}: under `{}` a job holds {:.1} GPUs, with {:.1} times the initial batch, at an \
         efficiency of {:.2}.",
        ours.cluster,
        fared.load,
        percent(fared.relative),
        ours.policy,
        ours.gpus_per_job,
        ours.batch_growth,
        ours.efficiency
    );
    for row in rivals {
        let longer = row.avg_jct_secs - ours.avg_jct_secs;
        let _ = write!(
            text,
            " `{}` takes {:.2} times as long: {} ({:.1} GPUs, {:.1} times the batch, efficiency {:.2}).",
            row.policy,
            row.against_first,
            parts(longer, row.waiting_secs - ours.waiting_secs),
            row.gpus_per_job,
            row.batch_growth,
            row.efficiency
        );
    }
    text
}

/// How much of a longer time is waiting, and how much is training.
fn parts(longer: f64, waiting: f64) -> String {
    let training = longer - waiting;
    if longer <= 0.0 {
        return "no longer".to_owned();
    }
    match (waiting > 0.0, training > 0.0) {
        (true, true) => format!(
            "{} of the difference is waiting, {} slower training",
            percent(waiting / longer),
            percent(training / longer)
        ),
        (true, false) => "all of it waiting, training itself is no slower".to_owned(),
        _ => "all of it slower training, with less waiting".to_owned(),
    }
}

/// Whether the advantage goes with the GPUs or with the load.
fn verdict(same: &[Fared], busy: &[Fared]) -> String {
    let (Some(slow), Some(fast), Some(loaded)) = (same.first(), same.last(), busy.last()) else {
        return String::new();
    };
    let mut text = String::new();
    for (index, policy) in POLICIES.iter().enumerate().skip(1) {
        let of = |fared: &Fared| fared.rows.get(index).map_or(1.0, |row| row.against_first);
        let [first, newest, again] = [of(slow), of(fast), of(loaded)];
        let back = (again - newest) / (first - newest);
        let because = if (first - newest).abs() < 0.1 {
            "it hardly depends on the GPUs"
        } else if back >= 0.5 {
            "most of the change was the load, not the GPUs"
        } else if back > 0.0 {
            "the load is a part of it, and the faster GPUs the rest"
        } else {
            "the load does not explain it: faster GPUs do"
        };
        let _ = write!(
            text,
            "Against `{policy}` the advantage is {first:.2} on the oldest GPUs and {newest:.2} on the newest with the same \
             jobs (load {} and {}), and {again:.2} there with the load as before: {because}. ",
            percent(slow.relative),
            percent(fast.relative)
        );
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // Of four hours more, three are spent waiting.
    fn a_difference_is_told_by_its_parts() {
        assert_eq!(parts(4.0, 3.0), "75 % of the difference is waiting, 25 % slower training");
        assert_eq!(parts(4.0, 5.0), "all of it waiting, training itself is no slower");
        assert_eq!(parts(4.0, -1.0), "all of it slower training, with less waiting");
        assert_eq!(parts(-1.0, 2.0), "no longer");
    }
}
