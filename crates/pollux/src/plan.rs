//! `pollux plan`.

use std::fmt::Write as _;
use std::time::Instant;

use pollux_api::plan_file::{self, PlanFile};
use pollux_api::snapshot::NamedSnapshot;
use pollux_api::{Names, explain};
use pollux_model::Allocation;
use pollux_policy::{Certificate, Plan, Starved, Terms};

use crate::cli::{PlainOutput, PlanArgs};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::policy;
use crate::text::{self, Align, Table, duration, percent, significant};

/// Nodes of an allocation that the table shows; `-o json` has all of them.
const SHOWN_NODES: usize = 4;

pub(crate) fn run(args: &PlanArgs) -> Result<Output, Failure> {
    let (spec, policy) = policy::chosen(&args.policy, args.fairness)?;
    let (label, bytes) = output::read_or_stdin(&args.snapshot)?;
    let named = NamedSnapshot::read(&label, &bytes)?;
    let NamedSnapshot { snapshot, names } = &named;
    let mut notes = named.remarks();

    let started = Instant::now();
    let plan = policy.plan(snapshot, &Terms::seeded(args.seed));
    notes.push(format!("planned in {}", duration(started.elapsed())));

    let data = match args.output {
        PlainOutput::Text => to_text(&plan, names),
        PlainOutput::Json => {
            let (policy, seed, fairness) = (spec.to_string(), args.seed, args.fairness);
            PlanFile { plan: &plan, names, policy: &policy, seed, fairness }.to_json()
        }
    };
    Ok(Output { data, notes, file: None })
}

fn to_text(plan: &Plan, names: &Names) -> String {
    let mut text = allocations(plan, names);
    text += "\n";
    text += &quality(plan);
    if !plan.jobs.is_empty() {
        text += "\n";
    }
    for job in &plan.jobs {
        text += &explain::sentence(job, names);
        text += "\n";
    }
    text
}

fn allocations(plan: &Plan, names: &Names) -> String {
    let mut table = Table::new([
        ("JOB", Align::Left),
        ("GPUS", Align::Right),
        ("NODES", Align::Left),
        ("SPEEDUP", Align::Right),
        ("DECISION", Align::Left),
    ]);
    for job in &plan.jobs {
        let speedup = job.reason.speedup.map_or_else(|| "-".to_owned(), |speedup| format!("{speedup:.2}"));
        table.push([
            names.job(job.job).into_owned(),
            // The sum of nothing is minus zero.
            (job.allocation.gpus() + 0.0).to_string(),
            nodes(&job.allocation, names),
            speedup,
            plan_file::decision(job.decision).to_owned(),
        ]);
    }
    table.render()
}

/// `rack-0=4 rack-1=4`.
pub(crate) fn nodes(allocation: &Allocation, names: &Names) -> String {
    let n_nodes = allocation.iter().count();
    let shown = if n_nodes > SHOWN_NODES { SHOWN_NODES - 1 } else { n_nodes };
    let mut nodes: Vec<String> = allocation
        .iter()
        .take(shown)
        .map(|(node, share)| format!("{}={}", names.node(node), share.gpus()))
        .collect();
    if shown < n_nodes {
        nodes.push(format!("+{} nodes", n_nodes - shown));
    }
    if nodes.is_empty() { "-".to_owned() } else { nodes.join(" ") }
}

/// How good the plan is, and what it took.
fn quality(plan: &Plan) -> String {
    let mut text = String::new();
    let mut line = |name: &str, says: String| _ = writeln!(text, "{name:<9}{says}");
    if let Some(certificate) = &plan.certificate {
        let Certificate { value, bound, starved, starved_bound, n_running } = *certificate;
        let running = text::count(n_running as usize, "job");
        line("value", format!("{}, the mean speed-up of the {running} with GPUs", significant(value, 4)));
        match plan_file::gap(certificate) {
            Some(gap) => {
                line("bound", format!("{}, which no plan exceeds", significant(bound, 4)));
                line("gap", percent(gap));
            }
            None => line("bound", "none was found".to_owned()),
        }
        let best = if starved == starved_bound {
            "no plan has fewer".to_owned()
        } else {
            format!("at best {}", by_priority(starved_bound))
        };
        line("starved", format!("{}; {best}", by_priority(starved)));
    } else {
        line("value", "none: this policy proves none".to_owned());
    }
    let work = plan.work;
    let stopped = plan_file::stopped(work.stopped).replace('_', " ");
    line("work", format!("{} of {} units ({stopped})", work.units, work.budget));
    text
}

/// `3 jobs (1 high, 2 low)`.
fn by_priority(starved: Starved) -> String {
    let Starved { high, normal, low } = starved;
    let parts = [(high, "high"), (normal, "normal"), (low, "low")];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let total = text::count(starved.total() as usize, "job");
    if parts.is_empty() { total } else { format!("{total} ({parts})") }
}

#[cfg(test)]
mod tests {
    use pollux_model::{GpuType, JobId, NodeId};
    use pollux_policy::{Carried, Decision, JobPlan, Limit, Reason, Stopped, Work};

    use super::*;

    fn plan(certificate: Option<Certificate>) -> Plan {
        let work = Work { units: 120, budget: 2_000, stopped: Stopped::GoodEnough };
        let reason = Reason { speedup: Some(1.5), limit: Limit::Price, ..Reason::default() };
        let allocation = Allocation::whole((0..6).map(|node| (NodeId(node), 8)));
        let bert = JobPlan { job: JobId(0), decision: Decision::Place, allocation, reason };
        let none = (Decision::Wait, Allocation::none(), Reason::default());
        let other = JobPlan { job: JobId(1), decision: none.0, allocation: none.1, reason: none.2 };
        let carried = Carried { prices: [(GpuType::default(), 1.0)].into(), ..Carried::default() };
        Plan { jobs: vec![bert, other], certificate, work, carried }
    }

    #[test]
    fn a_plan_reads_from_the_allocations_to_the_reasons() {
        let starved = Starved { normal: 1, ..Starved::default() };
        let certificate =
            Certificate { value: 1.5, bound: 2.0, starved, starved_bound: Starved::default(), n_running: 1 };
        let expected = "\
JOB    GPUS  NODES                                    SPEEDUP  DECISION
job-0    48  node-0=8 node-1=8 node-2=8 +3 nodes     1.50  place
job-1     0  -                                              -  wait

value    1.500, the mean speed-up of the 1 job with GPUs
bound    2.000, which no plan exceeds
gap      25.0 %
starved  1 job (1 normal); at best 0 jobs
work     120 of 2000 units (good enough)

job-0 gets 48 GPUs on 6 nodes, at 1.50 times the speed of its fair share; others make more of any further GPUs.
job-1 waits.
";
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&to_text(&plan(Some(certificate)), &Names::default())), words(expected));
    }

    #[test]
    fn without_an_objective_there_is_no_value() {
        assert_eq!(
            quality(&plan(None)),
            "value    none: this policy proves none\nwork     120 of 2000 units (good enough)\n"
        );
        let unbounded = Certificate {
            value: 1.5,
            bound: f64::INFINITY,
            starved: Starved::default(),
            starved_bound: Starved::default(),
            n_running: 2,
        };
        let text = quality(&plan(Some(unbounded)));
        assert!(text.contains("bound    none was found\nstarved  0 jobs; no plan has fewer\n"), "{text}");
    }
}
