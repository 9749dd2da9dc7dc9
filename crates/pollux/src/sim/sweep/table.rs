//! What searches found, as tables for people.

use std::fmt::Write as _;

use pollux_sim::Spread;
use pollux_sim::sweep::{Pair, Row, Study, SweepRecord, pairs, rows};

use crate::sim::seeds::Seeds;
use crate::sim::table::{figure, fixed, percent};
use crate::text::{Align, Table, count};

/// A row for each policy and way to search, each policy against the last one, and a line on what was simulated.
pub(super) fn render(records: &[SweepRecord], study: &Study, batch: u64, seeds: Seeds) -> String {
    let several = study.seeds.len() > 1;
    let mut text = found(&rows(records), several);
    let pairs = pairs(records);
    if !pairs.is_empty() {
        text += "\n";
        text += &against(&pairs, several);
    }
    let (sweep, options) = (&study.sweep, &study.options);
    let trials = count(sweep.n_trials, "trial");
    let _ = writeln!(
        text,
        "\n{trials} of {}, {} at a time, on {} ({}), {seeds}. Each asks for {} and a batch of {batch},\n\
         which policies that adapt do not heed.",
        sweep.application,
        sweep.at_once,
        options.cluster,
        count(options.cluster.gpus() as usize, "GPU"),
        count(sweep.gpus as usize, "GPU"),
    );
    if several {
        text += "± is the standard deviation over seeds.\n";
    }
    text
}

fn found(rows: &[Row], several: bool) -> String {
    let mut table = Table::new([
        ("POLICY", Align::Left),
        ("SEARCH", Align::Left),
        ("BEST (%)", Align::Right),
        ("TOP 5 (%)", Align::Right),
        ("TRIAL (min)", Align::Right),
        ("MAKESPAN (h)", Align::Right),
        ("GPU-HOURS", Align::Right),
        ("GIVEN UP", Align::Right),
        ("RESTARTS/TRIAL", Align::Right),
    ]);
    for Row { policy, search, figures, .. } in rows {
        table.push([
            policy.clone(),
            search.to_string(),
            percent(figures.best, several),
            percent(figures.top5, several),
            figure(figures.trial_secs, 1.0 / 60.0, several),
            figure(figures.makespan_secs, 1.0 / 3_600.0, several),
            figure(figures.gpu_hours, 1.0, several),
            fixed(figures.given_up, 1, several),
            fixed(figures.restarts_per_trial, 2, several),
        ]);
    }
    table.render()
}

/// Differences of one policy to another, each seed compared with itself.
fn against(pairs: &[Pair], several: bool) -> String {
    let mut table = Table::new([
        ("AGAINST", Align::Left),
        ("SEARCH", Align::Left),
        ("TOP 5 (points)", Align::Right),
        ("TRIAL (%)", Align::Right),
        ("MAKESPAN (%)", Align::Right),
        ("WORST (%)", Align::Right),
    ]);
    for Pair { policy, baseline, search, makespan, trial, top5 } in pairs {
        let points = Spread { mean: 100.0 * top5.mean, sd: 100.0 * top5.sd, ..*top5 };
        table.push([
            format!("{policy} / {baseline}"),
            search.to_string(),
            fixed(points, 2, several),
            percent(*trial, several),
            percent(*makespan, several),
            format!("{:.1}", 100.0 * makespan.max),
        ]);
    }
    table.render()
}
