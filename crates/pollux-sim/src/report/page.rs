//! The sections of a page, in their order.

use pollux_model::JobId;
use pollux_report::{Page, Table, Text};

use super::digest::{Digest, detailed, policies};
use super::held::gantt;
use super::one_job::{job_figure, longest_job, reasons};
use super::tables::{costs_table, faults_table, name, significant, summary_figure, times_table, uses_table};
use super::times::{fairness_figure, jct_figure};
use super::usage::{Usage, usage_figure};
use super::{HOUR, index};
use crate::campaign::{Record, Summary, summarise};
use crate::cluster::ClusterShape;
use crate::outcome::Run;

/// What a page says of its runs beside their results.
#[derive(Clone, Debug)]
pub struct About {
    /// One line on what was simulated.
    pub summary: String,
    /// The command that gives the same results again.
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// The nodes.
    pub cluster: ClusterShape,
    /// Names and values of what was chosen: workloads, seeds, costs of a restart.
    pub settings: Vec<(String, String)>,
    /// What else a reader should know of this world.
    pub remarks: Vec<String>,
    /// Whether anything goes wrong in this world.
    pub has_faults: bool,
    /// The job whose life is told; the longest if none.
    pub shown: Option<JobId>,
}

/// The page of a campaign. `digests` are of the same runs as `records`, in the same order.
pub fn page(about: &About, records: &[Record], digests: &[Digest]) -> Page {
    let summaries = summarise(records);
    let names = policies(digests);
    let title = match names.as_slice() {
        [] => "A simulated cluster".to_owned(),
        [one] => format!("A simulated cluster under {one}"),
        several => format!("A simulated cluster under {} policies", several.len()),
    };
    let page = Page::new(title).subtitle(name(&about.summary));
    let is_rented = records.iter().any(|record| record.metrics.cost.is_some());
    let page = what_was_run(page, about, &names, is_rented);
    let page = summary(page, about, records, &summaries, digests);
    let page = use_of_gpus(page, about, digests);
    let page = one_job(page, about, digests);
    let page = fairness(page, digests);
    let page = what_is_simulated(page, about);
    page.footer(format!(
        "Made by pollux {}. The same command gives the same page, byte for byte.",
        about.version
    ))
}

fn what_was_run(page: Page, about: &About, names: &[&str], is_rented: bool) -> Page {
    let plain = |text: &str| Text::default().plain(text);
    let up_to = if is_rented { "rented, up to " } else { "" };
    let mut facts = vec![
        ("Policies".to_owned(), plain(&names.join(", "))),
        ("Cluster".to_owned(), plain(&format!("{up_to}{} ({} GPUs)", about.cluster, about.cluster.gpus()))),
    ];
    facts.extend(about.settings.iter().map(|(name, value)| (name.clone(), plain(value))));
    facts.push(("Version".to_owned(), plain(&format!("pollux {}", about.version))));
    page.section("What was run").code(&about.command).facts(facts)
}

fn summary(page: Page, about: &About, records: &[Record], summaries: &[Summary], digests: &[Digest]) -> Page {
    let is_rented = summaries.iter().any(|summary| summary.metrics.cost.is_some());
    let first_seed = records.first().map(|record| record.seed);
    let several = records.iter().any(|record| Some(record.seed) != first_seed);
    let whiskers =
        if several { " Whiskers reach one standard deviation over seeds to either side." } else { "" };
    let mut page =
        page.section("Results").table(times_table(summaries, several)).table(uses_table(summaries, several));
    if about.has_faults {
        page = page.table(faults_table(summaries, several));
    }
    if is_rented {
        page = page.table(costs_table(summaries, several));
    }
    page = page.text(format!(
            "JCT is a job's time from submission to completion, and rho that time over the time it would have taken alone \
             on its fair share of the cluster. A job is treated unfairly if its rho is above 1. A job keeps its GPUs for so \
             long between two reallocations; the time in which jobs are starting is lost. Held and useful are parts of \
             all GPUs {}; useful counts each GPU by its job's statistical efficiency.",
            if is_rented { "while they are rented" } else { "until the makespan, when the last job is done" }
        ));
    if about.has_faults {
        page = page.text(
            "A job fails when it loses a node or does not come up; what it did since its last checkpoint is done again.",
        );
    }
    if several {
        page = page.text("± is the standard deviation over seeds.");
    }
    let n_unfinished: usize = digests.iter().map(|digest| digest.n_unfinished).sum();
    if n_unfinished > 0 {
        page = page.note(format!("Jobs that were never done count in none of the times: {n_unfinished}."));
    }
    let bars =
        format!("The main figures of the tables above; shorter is better, but for the last.{whiskers}");
    page.figure("summary", summary_figure(summaries), bars).figure(
        "jct-cdf",
        jct_figure(digests),
        "For each time, the part of all jobs of all runs that were done within it. A line further to the left is better. \
         The time axis is logarithmic.",
    )
}

fn use_of_gpus(page: Page, about: &About, digests: &[Digest]) -> Page {
    let Some((figure, minutes)) = usage_figure(digests) else { return page };
    let runs = detailed(digests);
    let of = runs.first().map_or_else(String::new, |(digest, _)| of_run(digest));
    let mut page = page.section("The cluster over time").figure(
        "usage",
        figure,
        name(&format!(
            "Means over {minutes} minutes, {of}. What is held but not useful is lost to larger batches and to jobs that are \
             starting.{}",
            if runs.iter().any(|(_, run)| !run.log.bill.is_empty()) {
                " Percentages are of the most GPUs that may be rented."
            } else {
                ""
            }
        )),
    );
    let longest = runs.iter().map(|(_, run)| Usage::of(&run.log).end_secs() / HOUR).fold(0.0, f64::max);
    for (digest, run) in runs {
        let mut chart = gantt(&format!("Who held which GPUs under {}", digest.policy), run, &about.cluster);
        chart.until = Some(longest);
        let caption = format!(
            "A row for each node, its GPUs stacked; colours are applications, and a job's name stands in its largest \
             block where it fits.{} {}. Which GPU of a node a job held is not recorded: it is drawn on the first that was \
             free.",
            if run.log.bill.is_empty() {
                ""
            } else {
                " Nodes are numbered as they were rented; a row is light grey before and after, too."
            },
            capital(&of_run(digest))
        );
        page = page.figure(&format!("gantt-{}", digest.policy), chart, name(&caption));
    }
    page
}

/// `workload generate, seed 1`.
fn of_run(digest: &Digest) -> String {
    format!("workload {}, seed {}", digest.workload, digest.seed)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn one_job(page: Page, about: &About, digests: &[Digest]) -> Page {
    let runs = detailed(digests);
    let Some((digest, run)) = runs.first().copied() else { return page };
    let Some(job) = about.shown.or_else(|| longest_job(digests)) else { return page };
    let Some(figure) = job_figure(job, digests) else { return page };
    let Some(outcome) = run.jobs.get(index(job)) else { return page };
    let why_this = if about.shown.is_some() { "" } else { ", the job that took longest" };
    let mut page = page
        .section("One job")
        .text(name(&format!(
            "{} ({}){why_this}, {}: what it held, and how its batch and the worth of a sample followed.",
            outcome.name,
            outcome.application,
            of_run(digest)
        )))
        .table(fates(job, &runs))
        .figure(
            "job",
            figure,
            "From submission to completion. Gaps in batch and efficiency are times in which the job waited or was starting.",
        );
    if let Some((table, n_left_out)) = reasons(job, run) {
        page =
            page.text(name(&format!("Its allocations under {}, in the words of the policy:", digest.policy)));
        page = page.table(table);
        if n_left_out > 0 {
            page = page.text(format!("{n_left_out} later ones are left out; `timeline.csv` has them all."));
        }
    }
    page
}

/// How one job fared under each policy.
fn fates(job: JobId, runs: &[(&Digest, &Run)]) -> Table {
    let columns = ["policy", "done after (h)", "rho", "restarts", "GPU-hours"];
    runs.iter().fold(Table::new("How it fared", columns), |table, (digest, run)| {
        let Some(outcome) = run.jobs.get(index(job)) else { return table };
        let some = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), significant);
        let cells = [
            some(outcome.jct_secs().map(|secs| secs / HOUR)),
            some(outcome.rho),
            outcome.restarts.to_string(),
            significant(outcome.gpu_secs / HOUR),
        ];
        table.row(std::iter::once(name(&digest.policy)).chain(cells.into_iter().map(Text::from)))
    })
}

fn fairness(page: Page, digests: &[Digest]) -> Page {
    let columns = ["policy", "jobs", "worst rho", "unfair (%)", "above 2 (%)"];
    let mut table = Table::new("Finish-time fairness over all runs", columns);
    for policy in policies(digests) {
        let own = digests.iter().filter(|digest| digest.policy == policy);
        let rhos: Vec<f64> = own.flat_map(|digest| digest.rhos.iter().copied()).collect();
        let part = |above: f64| {
            let n_above = rhos.iter().filter(|rho| **rho > above).count();
            if rhos.is_empty() {
                "–".to_owned()
            } else {
                format!("{:.1}", 100.0 * n_above as f64 / rhos.len() as f64)
            }
        };
        let worst = significant(rhos.iter().copied().fold(0.0, f64::max));
        let cells = [rhos.len().to_string(), worst, part(1.0), part(2.0)];
        table = table.row(std::iter::once(name(policy)).chain(cells.into_iter().map(Text::from)));
    }
    page.section("Fairness")
        .text(
            "A job's fair share is the cluster divided by the mean number of jobs while it was there. Its rho is its \
             completion time over the time it would have taken alone on that share: below 1, sharing served it better.",
        )
        .table(table)
        .figure(
            "fairness-cdf",
            fairness_figure(digests),
            "For each rho, the part of all jobs of all runs that fared at least as well. What lies right of the dashed line \
             was treated unfairly. The worst values here are over all runs, those of the first table means over seeds.",
        )
}

fn what_is_simulated(page: Page, about: &About) -> Page {
    let known = [
        "Agents, policies and scheduler are those of a live cluster. Training is pretended: step times and gradient noise \
         are as measured for each application, and a restart is a duration.",
        "There is no network or file system, and no job fails unless the options above say so.",
        "Chance comes from the seeds alone. How long the simulation took is not part of this page.",
    ];
    let remarks = about.remarks.iter().map(|remark| name(remark));
    page.section("What is simulated").list(known.into_iter().map(Text::from).chain(remarks))
}
