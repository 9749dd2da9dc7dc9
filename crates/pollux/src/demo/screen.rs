//! What is shown while jobs train: a table drawn in place on a terminal, a line for each change elsewhere.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::time::Duration;

use pollux_api::rest::{JobShown, JobState};

use super::course::Change;
use super::tell;
use crate::text::table;

/// Most columns of a timeline.
const WIDTH: usize = 60;
/// Between two drawings.
const DRAW_EVERY: Duration = Duration::from_secs(1);

pub(super) struct Screen {
    is_terminal: bool,
    /// Lines of the latest drawing.
    n_lines: usize,
    next: Duration,
    gpus: u32,
    timeline: Timeline,
}

/// GPUs held in each second, by job.
#[derive(Default)]
pub(super) struct Timeline {
    rows: Vec<(String, Vec<char>)>,
    n_secs: usize,
}

impl Screen {
    pub(super) fn new(title: &str, gpus: u32) -> Self {
        tell(&format!("\n== {title} ==\n"));
        let is_terminal = std::io::stdout().is_terminal();
        Self { is_terminal, n_lines: 0, next: Duration::ZERO, gpus, timeline: Timeline::default() }
    }

    /// Shows how jobs are doing, and what has changed.
    pub(super) fn show(&mut self, now: Duration, jobs: &[JobShown], changes: &[Change]) {
        self.timeline.note(now, jobs);
        if !self.is_terminal {
            tell(&changes.iter().map(line).collect::<String>());
        } else if now >= self.next {
            self.next = now + DRAW_EVERY;
            self.draw(now, jobs);
        }
    }

    fn draw(&mut self, now: Duration, jobs: &[JobShown]) {
        let held: u32 = jobs.iter().map(|job| job.gpus).sum();
        let mut text = format!("{:.0} s, {held} of {} emulated GPUs held\n", now.as_secs_f64(), self.gpus);
        let rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
        text.push_str(&table(&["JOB", "STATE", "GPUS", "BATCH", "LR", "PROGRESS"], &rows));
        text.push_str(&self.timeline.text());
        let back = if self.n_lines > 0 { format!("\x1b[{}A\x1b[J", self.n_lines) } else { String::new() };
        self.n_lines = text.lines().count();
        tell(&(back + &text));
    }

    /// Leaves the last picture, or draws the only one of a log.
    pub(super) fn end(&mut self) {
        let back = if self.n_lines > 0 { format!("\x1b[{}A\x1b[J", self.n_lines) } else { String::new() };
        tell(&(back + &self.timeline.text()));
    }
}

fn row(job: &JobShown) -> Vec<String> {
    let dash = || "-".to_owned();
    let progress = match job.progress_ratio {
        _ if job.state == JobState::Finished => "100 %".to_owned(),
        Some(ratio) => format!("{:.0} %", 100.0 * ratio.clamp(0.0, 1.0)),
        None => dash(),
    };
    vec![
        job.name.clone(),
        job.state.word().to_owned(),
        if job.gpus > 0 { format!("{} {}", job.gpus, "#".repeat(job.gpus as usize)) } else { dash() },
        job.batch.map_or_else(dash, |batch| batch.to_string()),
        job.lr_factor.map_or_else(dash, |factor| format!("x{factor:.2}")),
        progress,
    ]
}

/// `12.3 s  vision      2 -> 4 GPUs  batch 64         LR x1.00  gets 4 GPUs on node-0, ..`.
fn line(change: &Change) -> String {
    let Change { at, job, from, to, batch_before, batch, lr_factor, why, .. } = change;
    let noun = if *to == 1 { "GPU" } else { "GPUs" };
    let gpus = if from == to { format!("{to} {noun}") } else { format!("{from} -> {to} {noun}") };
    let batch = match (batch_before, batch) {
        (Some(before), Some(batch)) if before != batch => format!("batch {before} -> {batch}"),
        (_, Some(batch)) => format!("batch {batch}"),
        (_, None) => String::new(),
    };
    let lr = lr_factor.map_or_else(String::new, |factor| format!("LR x{factor:.2}"));
    let line = format!("{:>6.1} s  {job:<12} {gpus:<12} {batch:<18} {lr:<9} {why}", at.as_secs_f64());
    line.trim_end().to_owned() + "\n"
}

impl Timeline {
    /// One character for each second of each job: GPUs held, `.` for waiting, `-` on the way from one start to the next.
    fn note(&mut self, now: Duration, jobs: &[JobShown]) {
        while self.rows.len() < jobs.len() {
            self.rows.push((jobs[self.rows.len()].name.clone(), vec![' '; self.n_secs]));
        }
        while self.n_secs as f64 <= now.as_secs_f64() {
            self.n_secs += 1;
            for (job, (_, marks)) in jobs.iter().zip(&mut self.rows) {
                marks.push(match job.state {
                    JobState::Running => char::from_digit(job.gpus, 36).unwrap_or('+'),
                    JobState::Pending if job.restarts == 0 && job.started.is_none() => '.',
                    JobState::Pending | JobState::Starting | JobState::Stopping => '-',
                    _ => ' ',
                });
            }
        }
    }

    fn text(&self) -> String {
        let each = self.n_secs.div_ceil(WIDTH).max(1);
        let mut text = format!("GPUs held, a column for {each} s (. waits, - restarts)\n");
        let width = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, marks) in &self.rows {
            let marks: String = marks.iter().step_by(each).collect();
            let _ = writeln!(text, "{}", format!("{name:<width$}  {marks}").trim_end());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // 150 s in columns of 3 s.
    fn long_timelines_are_thinned() {
        let marks = "..".repeat(25) + &"4".repeat(100);
        let timeline = Timeline { rows: vec![("a".to_owned(), marks.chars().collect())], n_secs: 150 };
        let expected = format!("a  {}{}", ".".repeat(17), "4".repeat(33));
        assert_eq!(timeline.text().lines().nth(1), Some(expected.as_str()));
    }

    #[test]
    fn a_change_is_a_line() {
        let change = Change {
            at: Duration::from_millis(12_340),
            job: "vision".to_owned(),
            from: 2,
            to: 4,
            batch_before: Some(32),
            batch: Some(64),
            lr_factor: Some(1.5),
            why: "gets 4 GPUs".to_owned(),
            explained: None,
        };
        assert_eq!(
            line(&change),
            "  12.3 s  vision       2 -> 4 GPUs  batch 32 -> 64     LR x1.50  gets 4 GPUs\n"
        );
    }
}
