//! The life of one job: its GPUs, its batch, its efficiency, and why.

use pollux_api::{Names, explain};
use pollux_model::JobId;
use pollux_policy::JobPlan;
use pollux_report::{Align, Axis, Figure, Panel, Series, Style, Table, Text};

use super::digest::{Digest, detailed};
use super::{HOUR, hours, index};
use crate::log::{Event, What};
use crate::outcome::Run;

/// Reasons that are listed; of more the first so many.
const MOST_REASONS: usize = 40;

/// The job that took longest in the first policy's run in detail: the one with most to tell.
pub fn longest_job(digests: &[Digest]) -> Option<JobId> {
    let (_, run) = *detailed(digests).first()?;
    let jcts = run.jobs.iter().zip(0..).filter_map(|(job, index)| Some((job.jct_secs()?, index)));
    let longest = jcts.fold(None, |best: Option<(f64, u64)>, next| match best {
        Some(best) if best.0 >= next.0 => Some(best),
        _ => Some(next),
    });
    longest.map(|(_, index)| JobId(index))
}

/// What a job holds and does at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Moment {
    hours: f64,
    gpus: f64,
    /// Samples of a step; not a number while it does not train.
    batch: f64,
    efficiency: f64,
}

/// From its submission on.
fn moments(job: JobId, run: &Run) -> Vec<Moment> {
    let submitted = run.jobs.get(index(job)).map_or(0.0, |outcome| hours(outcome.submitted));
    let mut now = Moment { hours: 0.0, gpus: 0.0, batch: f64::NAN, efficiency: f64::NAN };
    // The artifact's world tells a batch when it changes, not after every restart.
    let mut last_batch = (f64::NAN, f64::NAN);
    let mut moments = Vec::new();
    for Event { at, what, .. } in run.log.events.iter().filter(|event| event.job == job) {
        now.hours = hours(*at) - submitted;
        if let What::Started { allocation, .. } = what {
            (now.gpus, now.batch, now.efficiency) = (allocation.gpus(), f64::NAN, f64::NAN);
        } else if matches!(what, What::Training) {
            (now.batch, now.efficiency) = last_batch;
        } else if let What::Batch { global, efficiency } = what {
            last_batch = (*global as f64, *efficiency);
            (now.batch, now.efficiency) = last_batch;
        } else if matches!(what, What::Stopped | What::Failed | What::Finished) {
            (now.gpus, now.batch, now.efficiency) = (0.0, f64::NAN, f64::NAN);
        }
        moments.push(now);
    }
    moments
}

/// Points of a line that holds each value until the next moment, with gaps where there is none.
fn points(moments: &[Moment], value: fn(&Moment) -> f64) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for (index, moment) in moments.iter().enumerate() {
        let value_now = value(moment);
        let before = index.checked_sub(1).map(|index| value(&moments[index]));
        // What stays as it is needs no point of its own, but for the last.
        let same = before.is_some_and(|before| before.to_bits() == value_now.to_bits());
        if same && index + 1 < moments.len() {
            continue;
        }
        if let Some(before) = before.filter(|before| before.is_finite() && value_now.is_nan()) {
            points.push((moment.hours, before));
        }
        points.push((moment.hours, value_now));
    }
    points
}

/// GPUs, batch and efficiency of a job since its submission, a line for each policy; none if no run was kept whole.
pub fn job_figure(job: JobId, digests: &[Digest]) -> Option<Figure> {
    let runs = detailed(digests);
    let name = &runs.first()?.1.jobs.get(index(job))?.name;
    let lives: Vec<(&str, Vec<Moment>)> =
        runs.iter().map(|(digest, run)| (digest.policy.as_str(), moments(job, run))).collect();
    let panel = |title: &str, y: Axis, value: fn(&Moment) -> f64| {
        let x = Axis::linear("time since submission (h)").starting_at_zero();
        lives.iter().fold(Panel::new(title, x, y), |panel, (policy, moments)| {
            panel.with_series(Series::new(*policy, points(moments, value)).with_style(Style::Step))
        })
    };
    let gpus = panel("GPUs", Axis::linear("GPUs held").starting_at_zero(), |moment| moment.gpus);
    let batch = panel("Batch", Axis::log2("samples of a step"), |moment| moment.batch);
    let efficiency =
        panel("Statistical efficiency", Axis::linear("progress per sample").between(0.0, 1.0), |moment| {
            moment.efficiency
        });
    let figure = Figure::new(format!("The life of {name}"));
    Some(figure.with_panel(gpus).with_panel(batch).with_panel(efficiency))
}

/// When a job got which GPUs in a run, and why, and how many such times are left out.
pub(super) fn reasons(job: JobId, run: &Run) -> Option<(Table, usize)> {
    let outcome = run.jobs.get(index(job))?;
    let names = Names { jobs: [(job, outcome.name.clone())].into(), ..Names::default() };
    let mut table = Table::new("Why it got what it got", ["after (h)", "GPUs", "nodes", "why"])
        .align(0, Align::Right)
        .align(3, Align::Left);
    let mut n_left_out = 0;
    for Event { at, what, .. } in run.log.events.iter().filter(|event| event.job == job) {
        let What::Started { allocation, why: Some(why) } = what else { continue };
        if table.n_rows() == MOST_REASONS {
            n_left_out += 1;
            continue;
        }
        let (decision, reason) = (why.decision, why.reason.clone());
        let plan = JobPlan { job, decision, allocation: why.allocation.clone(), reason };
        let after = (*at - outcome.submitted).as_secs_f64() / HOUR;
        let plain = |text: String| Text::default().plain(text);
        table = table.row([
            plain(format!("{after:.3}")),
            plain(allocation.gpus().to_string()),
            plain(allocation.iter().count().to_string()),
            plain(explain::sentence(&plan, &names)),
        ]);
    }
    (table.n_rows() > 0).then_some((table, n_left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_its_value_does() {
        let moment = |hours, batch| Moment { hours, gpus: 1.0, batch, efficiency: 1.0 };
        let moments = [moment(0.0, f64::NAN), moment(1.0, 8.0), moment(2.0, f64::NAN), moment(3.0, 4.0)];
        let found = points(&moments, |moment| moment.batch);
        let shown: Vec<(f64, f64)> = found.iter().copied().filter(|point| point.1.is_finite()).collect();
        assert_eq!(shown, [(1.0, 8.0), (2.0, 8.0), (3.0, 4.0)]);
        assert!(found[3].1.is_nan(), "{found:?}");
    }
}
