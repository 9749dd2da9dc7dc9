//! What is told at the end: completion times side by side, one decision explained, how well steps were paced.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pollux_api::rest::JobShown;

use super::course::{Change, Course};
use super::jobs;
use crate::live::LiveFailure;
use crate::sim::journal::{OVERHEAD_SECS, compare};
use crate::text::table;

/// A step that took this much longer than its profile says was held up by the machine.
const LATE: f64 = 1.1;

/// The end of the demo.
pub(super) fn end(pollux: &Course, fifo: &Course) -> String {
    let mut text = String::from("\n== Side by side ==\n");
    text.push_str(&compared(pollux, fifo));
    if let Some(explained) = explained(pollux) {
        let _ = write!(text, "\n{explained}");
    }
    let curves = pollux.curves.iter().chain(&fifo.curves);
    let _ = write!(text, "\n{}", Pacing::of(curves).text());
    text
}

/// What the simulator says to the same job files, without knowing how they fared.
pub(super) fn simulated(journal: &Path) -> Result<String, LiveFailure> {
    let compared = compare(journal, None, jobs::REPORT_EVERY_SECS, OVERHEAD_SECS)?;
    let (live, simulated) = (compared.live_mean_s, compared.simulated_mean_s);
    Ok(format!(
        "Simulated from the same job files, {}: {simulated:.1} s mean completion time ({live:.1} s live, {}).\n",
        compared.policy,
        change(simulated, live)
    ))
}

fn compared(pollux: &Course, fifo: &Course) -> String {
    let mut rows = Vec::new();
    let (mut sum_pollux, mut sum_fifo) = (0.0, 0.0);
    for (ours, theirs) in pollux.jobs.iter().zip(&fifo.jobs) {
        let (ours_secs, theirs_secs) = (took(ours), took(theirs));
        (sum_pollux, sum_fifo) = (sum_pollux + ours_secs, sum_fifo + theirs_secs);
        rows.push(vec![
            ours.name.clone(),
            theirs.attempts.first().map_or(0, |attempt| attempt.nodes.values().sum::<u32>()).to_string(),
            format!("{:.1}", waited(theirs)),
            format!("{theirs_secs:.1}"),
            sizes(ours),
            format!("{ours_secs:.1}"),
            change(ours_secs, theirs_secs),
        ]);
    }
    let n = pollux.jobs.len().max(1) as f64;
    let (ours, theirs) = (sum_pollux / n, sum_fifo / n);
    let dash = || "-".to_owned();
    rows.push(vec![
        "mean".to_owned(),
        dash(),
        dash(),
        format!("{theirs:.1}"),
        dash(),
        format!("{ours:.1}"),
        change(ours, theirs),
    ]);
    let header =
        ["JOB", "ASKS FOR", "FIFO: WAITS (S)", "TAKES (S)", "POLLUX: GPUS", "TAKES (S)", "DIFFERENCE"];
    let mut text = table(&header, &rows);
    let _ = writeln!(
        text,
        "mean completion time: {theirs:.1} s under FIFO, {ours:.1} s under Pollux, {}",
        change(ours, theirs)
    );
    text
}

fn change(ours: f64, theirs: f64) -> String {
    if theirs > 0.0 { format!("{:+.0} %", 100.0 * (ours / theirs - 1.0)) } else { "-".to_owned() }
}

/// Seconds from its submission to its end.
fn took(job: &JobShown) -> f64 {
    job.ended.as_deref().map_or(0.0, |ended| between(&job.submitted, ended))
}

/// Seconds from its submission to its first start.
fn waited(job: &JobShown) -> f64 {
    job.started.as_deref().map_or(0.0, |started| between(&job.submitted, started))
}

fn between(from: &str, until: &str) -> f64 {
    let moment = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let micros =
        moment(from).zip(moment(until)).map(|(from, until)| until.as_microsecond() - from.as_microsecond());
    micros.unwrap_or(0) as f64 / 1e6
}

/// The GPUs of all its starts, one after the other.
fn sizes(job: &JobShown) -> String {
    let sizes = job.attempts.iter().map(|attempt| attempt.nodes.values().sum::<u32>().to_string());
    sizes.collect::<Vec<_>>().join("-")
}

/// Why a job shrank, or grew if none did.
fn explained(course: &Course) -> Option<String> {
    let resized = || {
        course.changes.iter().filter(|change| change.from > 0 && change.to > 0 && change.explained.is_some())
    };
    let shrunk =
        resized().filter(|change| change.to < change.from).max_by_key(|change| change.from - change.to);
    let Change { at, job, from, to, explained, .. } =
        shrunk.or_else(|| resized().max_by_key(|change| change.to.saturating_sub(change.from)))?;
    let told = explained.as_ref()?;
    let (verb, noun) = (if to < from { "shrink" } else { "grow" }, if *to == 1 { "GPU" } else { "GPUs" });
    let round = told.round.map_or_else(String::new, |round| format!(" (round {round})"));
    let at = at.as_secs_f64();
    Some(format!(
        "Why did {job} {verb} from {from} to {to} {noun} at {at:.1} s? `pollux explain job {job}` said then{round}:\n  {}\n",
        told.text.join(" ")
    ))
}

/// How steps kept to their profiles.
#[derive(Debug, Default, PartialEq)]
struct Pacing {
    steps: u64,
    late: u64,
    secs: f64,
    paced_secs: f64,
}

impl Pacing {
    fn of<'a>(files: impl Iterator<Item = &'a PathBuf>) -> Self {
        let mut pacing = Self::default();
        for file in files {
            // A file that is not there has no steps to tell of.
            pacing.add(&std::fs::read_to_string(file).unwrap_or_default());
        }
        pacing
    }

    /// The last two columns of a curve: seconds measured, and seconds as the profile says.
    fn add(&mut self, curve: &str) {
        for line in curve.lines().skip(1) {
            let mut last = line.rsplit(',');
            let mut number = || last.next().and_then(|text| text.parse::<f64>().ok());
            let (Some(paced), Some(secs)) = (number(), number()) else { continue };
            self.steps += 1;
            self.late += u64::from(secs > LATE * paced);
            (self.secs, self.paced_secs) = (self.secs + secs, self.paced_secs + paced);
        }
    }

    fn text(&self) -> String {
        if self.steps == 0 || self.paced_secs <= 0.0 {
            return "No step was paced.\n".to_owned();
        }
        let late = 100.0 * self.late as f64 / self.steps as f64;
        let mean = 100.0 * (self.secs / self.paced_secs - 1.0);
        let doubt = if mean > 5.0 { "; this machine was too busy for these figures" } else { "" };
        format!(
            "Pacing: of {} steps {late:.1} % took over a tenth longer than their profile says, all together {mean:.1} % longer{doubt}.\n",
            self.steps
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // Four steps of 0.1 s, one of which took 0.14 s.
    fn late_steps_are_counted() {
        let mut pacing = Pacing::default();
        pacing.add("step,secs,paced_secs\n1,0.1,0.1\n2,0.1,0.1\n3,0.14,0.1\n4,0.1,0.1\n");
        assert_eq!((pacing.steps, pacing.late), (4, 1));
        assert!(pacing.text().starts_with(
            "Pacing: of 4 steps 25.0 % took over a tenth longer than their profile says, all together 10.0 % longer; this"
        ));
    }

    #[test]
    fn differences_are_signed() {
        assert_eq!(change(30.0, 40.0), "-25 %");
        assert_eq!(change(44.0, 40.0), "+10 %");
    }
}
