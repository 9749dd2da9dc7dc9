//! Metrics as Prometheus reads them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use pollux_api::rest::{JobShown, JobState, NodeShown};

use super::App;
use super::access::Caller;
use super::error::ApiError;
use crate::service::{Counts, Detail, show};

/// Jobs that get series of their own, the latest ones that have not ended.
const MOST_JOBS: usize = 1_000;

/// Serves all metrics, as Prometheus reads them.
#[utoipa::path(get, path = "/metrics", tag = "cluster", responses((status = 200, body = String, content_type = "text/plain")))]
pub(super) async fn serve(State(app): State<App>, caller: Caller) -> Result<Response, ApiError> {
    caller.may_look()?;
    let (jobs, nodes, counts) = app
        .service
        .ask(|live| {
            let ids: Vec<_> = live.active().take(MOST_JOBS).collect();
            let jobs: Vec<JobShown> =
                ids.into_iter().filter_map(|id| show::job(live, id, Detail::Line)).collect();
            (jobs, show::nodes(live), live.counts())
        })
        .await?;
    let text = text(&jobs, &nodes, &counts);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// A metric of each job: its name, what it is, and how it is read off.
type Figure = (&'static str, &'static str, fn(&JobShown) -> Option<f64>);

/// One family of metrics after the other.
struct Writer(String);

impl Writer {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(key, value)| format!("{key}=\"{}\"", quoted(value))).collect();
        let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{braces} {value}");
    }
}

fn text(jobs: &[JobShown], nodes: &[NodeShown], counts: &Counts) -> String {
    let mut out = Writer(String::new());
    out.family("pollux_build_info", "gauge", "Version of the program.");
    out.sample("pollux_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    out.family("pollux_jobs", "gauge", "Jobs by queue and state.");
    let mut by_state: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for job in jobs {
        *by_state.entry((job.queue.as_deref().unwrap_or(""), job.state.word())).or_default() += 1;
    }
    for ((queue, state), count) in by_state {
        out.sample("pollux_jobs", &[("queue", queue), ("phase", state)], f64::from(count));
    }
    out.family("pollux_jobs_ended_total", "counter", "Jobs that ended, by outcome.");
    for (outcome, count) in &counts.ended {
        out.sample("pollux_jobs_ended_total", &[("outcome", outcome)], *count as f64);
    }
    out.family("pollux_node_gpus", "gauge", "GPUs by node and state.");
    for node in nodes {
        let idle = node.gpus.saturating_sub(node.held + node.unhealthy);
        for (state, gpus) in [("allocated", node.held), ("idle", idle), ("unhealthy", node.unhealthy)] {
            let labels = [("node", node.name.as_str()), ("gpu_type", &node.gpu_type), ("state", state)];
            out.sample("pollux_node_gpus", &labels, f64::from(gpus));
        }
    }
    out.family("pollux_rounds_total", "counter", "Plans that were made.");
    out.sample("pollux_rounds_total", &[], counts.rounds as f64);
    out.family("pollux_round_duration_seconds", "summary", "Time from asking for a plan to its answer.");
    out.sample("pollux_round_duration_seconds_sum", &[], counts.round_secs);
    out.sample("pollux_round_duration_seconds_count", &[], counts.rounds as f64);
    out.family("pollux_round_objective", "gauge", "Mean speed-up of the latest plan.");
    out.sample("pollux_round_objective", &[], counts.value.unwrap_or(f64::NAN));
    out.family("pollux_round_gap_ratio", "gauge", "How far the latest plan may be from the best.");
    out.sample("pollux_round_gap_ratio", &[], counts.gap.unwrap_or(f64::NAN));
    out.family("pollux_journal_rows_total", "counter", "Rows of the journal.");
    out.sample("pollux_journal_rows_total", &[], counts.rows as f64);
    let figures: [Figure; 11] = [
        ("pollux_job_gpus", "GPUs the job holds.", |job| Some(f64::from(job.gpus))),
        ("pollux_job_goodput_samples_per_second", "Useful samples per second.", |job| job.goodput),
        ("pollux_job_throughput_samples_per_second", "Samples per second.", |job| job.throughput),
        ("pollux_job_statistical_efficiency_ratio", "Progress per sample.", |job| job.efficiency),
        ("pollux_job_gradient_noise_scale", "Gradient noise scale in samples.", |job| job.noise_scale),
        ("pollux_job_batch_size", "Global batch size.", |job| job.batch.map(|batch| batch as f64)),
        ("pollux_job_accumulation_steps", "Accumulated passes.", |job| job.accumulation.map(f64::from)),
        ("pollux_job_lr_factor", "What the learning rate is multiplied by.", |job| job.lr_factor),
        ("pollux_job_progress_ratio", "Share of the declared work that is done.", |job| job.progress_ratio),
        ("pollux_job_restarts_total", "Restarts.", |job| Some(f64::from(job.restarts))),
        ("pollux_job_failures", "Failures without progress since.", |job| Some(f64::from(job.failures))),
    ];
    for (name, help, figure) in figures {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        out.family(name, kind, help);
        for job in jobs.iter().filter(|job| job.state != JobState::Paused || job.gpus > 0) {
            if let Some(value) = figure(job) {
                out.sample(name, &[("job", &job.name)], value);
            }
        }
    }
    out.0
}
