//! Hyper-parameter search as a workload.

use super::clusters::contender;
use super::findings::{Claim, Findings, Grid};
use super::lab::{Lab, LabError};
use super::policies::{less, percent};
use super::published;
use crate::simulation::Options;
use crate::sweep::{Pair, Row, Search, Study, Sweep, SweepRecord, pairs, rows};

const POLICIES: [&str; 2] = ["pollux", "fifo"];

pub(super) fn search(lab: &Lab) -> Result<Findings, LabError> {
    let mut findings = Findings::default();
    findings.text(
        "100 trials of ResNet18 on CIFAR-10, 4 at a time on 4 nodes of 4 T4, searched by random draws, TPE and successive \
         halving. The baseline gives each trial 4 GPUs in the order they come (`fifo`). Pollux shares the cluster among \
         the trials at hand, which build on what earlier ones learned of step times. Accuracies follow a formula of the \
         hyper-parameters and of statistical progress, so both find the same by construction.",
    );
    let initial = lab.profiles().get("cifar10").map(|profile| profile.limits().initial().0);
    let mut changes = Vec::new();
    for (baseline, batch) in [("the initial batch", initial), ("the fastest fixed batch", None)] {
        let records = records(lab, batch)?;
        let caption = format!("Search; the baseline trains with {baseline}");
        let columns =
            ["search", "policy", "top 5 accuracy", "trial (min)", "makespan (h)", "GPU-hours", "given up"];
        let mut grid = Grid::new(&caption, columns);
        for Row { policy, search, figures, .. } in rows(&records) {
            grid.push([
                search.to_string(),
                format!("`{policy}`"),
                format!("{:.2}", figures.top5.mean),
                format!("{:.1} ± {:.1}", figures.trial_secs.mean / 60.0, figures.trial_secs.sd / 60.0),
                format!(
                    "{:.1} ± {:.1}",
                    figures.makespan_secs.mean / 3_600.0,
                    figures.makespan_secs.sd / 3_600.0
                ),
                format!("{:.0}", figures.gpu_hours.mean),
                format!("{:.0}", figures.given_up.mean),
            ]);
        }
        findings.grid(grid);
        let tpe = |pair: &&Pair| pair.search == Search::Tpe;
        changes.push(pairs(&records).iter().find(tpe).map_or(0.0, |pair| pair.makespan.mean));
    }
    let [(trial, end), (their_trial, their_end)] = published::SEARCH;
    findings.note(format!(
        "Published: {trial} against {their_trial} min a trial, makespan {end} against {their_end} h. Against the initial batch \
         Pollux's makespan with TPE is {}; against the best fixed batch that a sweep would find, {}: four trials of four GPUs \
         fill the cluster evenly, so only the batch is left to gain by.",
        less(1.0 + changes[0]),
        less(1.0 + changes[1]),
    ));
    findings.claim(
        Claim::new(
            "makespan of a search with TPE, Pollux against first come first served with the initial batch",
            &less(end / their_end),
            format!(
                "{} ({} against the fastest fixed batch)",
                less(1.0 + changes[0]),
                less(1.0 + changes[1])
            ),
            changes[0] <= -0.2,
        )
        .otherwise(&format!("{} of the makespan is all that the batch can gain here", percent(-changes[0]))),
    );
    Ok(findings)
}

fn records(lab: &Lab, batch: Option<u64>) -> Result<Vec<SweepRecord>, LabError> {
    let study = Study {
        contenders: POLICIES.into_iter().map(contender).collect::<Result<Vec<_>, _>>()?,
        searches: vec![Search::Random, Search::Tpe, Search::Halving],
        seeds: lab.seeds().iter().copied().take(3).collect(),
        sweep: Sweep { batch, ..Sweep::default() },
        profiles: lab.profiles().clone(),
        options: Options {
            cluster: "4x4:t4"
                .parse()
                .map_err(|error: crate::ShapeError| LabError::Data(error.to_string()))?,
            history: true,
            ..Options::default()
        },
    };
    study.execute(lab.threads(), |_| {}).map_err(|error| LabError::Data(error.to_string()))
}
