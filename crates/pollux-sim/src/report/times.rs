//! Completion times and fairness as distributions.

use pollux_report::{Axis, Figure, Panel, Series, Style};

use super::HOUR;
use super::digest::{Digest, policies};

/// Points of a line; more could not be seen.
const MOST_POINTS: usize = 400;

/// The part of the values that are at most so large, as steps: from nothing at the least to all at the greatest.
///
/// Of very many values some are left out, evenly, never the least or the greatest.
///
/// ```
/// use pollux_sim::report::distribution;
///
/// assert_eq!(distribution(&[4.0, 2.0]), [(2.0, 0.0), (2.0, 0.5), (4.0, 1.0)]);
/// assert_eq!(distribution(&[]), []);
/// ```
pub fn distribution(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let mut points: Vec<(f64, f64)> = sorted.first().map(|least| (*least, 0.0)).into_iter().collect();
    let step = n.div_ceil(MOST_POINTS).max(1);
    for (index, value) in sorted.into_iter().enumerate() {
        if index % step == 0 || index + 1 == n {
            points.push((value, (index + 1) as f64 / n as f64));
        }
    }
    points
}

/// Completion times of all jobs of all runs, a line for each policy.
pub fn jct_figure(digests: &[Digest]) -> Figure {
    let x = Axis::log10("time from submission to completion (h)");
    let panel = Panel::new("", x, Axis::linear("part of the jobs").between(0.0, 1.0));
    let panel = lines(panel, digests, |digest| digest.jct_secs.iter().map(|secs| secs / HOUR).collect());
    Figure::new("How soon jobs were done").with_panel(panel)
}

/// Finish-time fairness of all jobs of all runs, a line for each policy.
pub fn fairness_figure(digests: &[Digest]) -> Figure {
    let x = Axis::log2("completion time over that alone on a fair share (rho)");
    let panel = Panel::new("", x, Axis::linear("part of the jobs").between(0.0, 1.0));
    let panel = lines(panel, digests, |digest| digest.rhos.clone());
    let fair = Series::new("as fast as alone", [(1.0, 0.0), (1.0, 1.0)]).reference();
    Figure::new("How fairly jobs were served").with_panel(panel.with_series(fair))
}

fn lines(panel: Panel, digests: &[Digest], values: impl Fn(&Digest) -> Vec<f64>) -> Panel {
    policies(digests).into_iter().fold(panel, |panel, policy| {
        let own = digests.iter().filter(|digest| digest.policy == policy);
        let all: Vec<f64> = own.flat_map(&values).collect();
        panel.with_series(Series::new(policy, distribution(&all)).with_style(Style::Step))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_thinned_but_for_its_ends() {
        let values: Vec<f64> = (1..=10_000).map(f64::from).collect();
        let points = distribution(&values);
        assert!(points.len() <= MOST_POINTS + 2, "{}", points.len());
        assert_eq!((points[0], points[points.len() - 1]), ((1.0, 0.0), (10_000.0, 1.0)));
        assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
    }
}
