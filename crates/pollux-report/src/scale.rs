//! From values to places along an axis.

use std::f64::consts::LOG10_2;

use crate::axis::{Axis, Range, Scale};
use crate::ticks::NiceStep;

/// Larger magnitudes are drawn as this one, so that no sum or quotient below overflows.
const LARGEST: f64 = 1e290;
/// Smaller magnitudes are drawn as zero, or as this on a logarithmic axis.
const SMALLEST: f64 = 1e-290;
/// A margin around the data reaches no further than this.
const FURTHEST_TICK: f64 = 1e300;
/// Places are cut off this many axis lengths away: far enough to keep every visible slope.
const FARTHEST: f64 = 1e6;

/// How far an automatic range reaches beyond the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Margin<'a> {
    /// Barely, so that marks do not touch the frame.
    Snug,
    /// To the next tick, of which there are about so many.
    Ticks(usize),
    /// By half the least distance between two of these values: room for a bar on either side.
    Bars(&'a [f64]),
}

/// The range of an axis on its scale. Both ends are finite and apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mapping {
    scale: Scale,
    /// Ends in transformed units: logarithms on a logarithmic scale.
    low: f64,
    high: f64,
}

impl Mapping {
    /// The range that `axis` asks for, given the values to show on it.
    pub(crate) fn fit(axis: &Axis, values: &[f64], margin: Margin<'_>) -> Self {
        let place = |value: f64| tame(axis.scale, value).and_then(|value| transform(axis.scale, value));
        let mut places: Vec<f64> = values.iter().filter_map(|value| place(*value)).collect();
        if let Range::Fixed { from, to } = axis.range
            && let (Some(from), Some(to)) = (place(from), place(to))
        {
            let (low, high) = apart(axis.scale, from.min(to), from.max(to));
            return Self { scale: axis.scale, low, high };
        }
        let with_zero = axis.range == Range::FromZero && axis.scale == Scale::Linear;
        if with_zero {
            places.push(0.0);
        }
        places.sort_by(f64::total_cmp);
        let (first, last) = match (places.first(), places.last()) {
            (Some(first), Some(last)) => (*first, *last),
            _ => (0.0, 1.0),
        };
        let (mut low, mut high) = apart(axis.scale, first, last);
        let is_linear = axis.scale == Scale::Linear;
        match margin {
            Margin::Bars(positions) => {
                let mut bars: Vec<f64> = positions.iter().filter_map(|value| place(*value)).collect();
                bars.sort_by(f64::total_cmp);
                let half = least_gap(&bars).unwrap_or(high - low) / 2.0;
                low -= half;
                high += half;
            }
            Margin::Ticks(n_ticks) if is_linear => {
                let step = NiceStep::covering(high - low, n_ticks, false);
                low = step.at_or_below(low);
                high = step.at_or_above(high);
            }
            Margin::Ticks(_) => {
                low = enclosing_ticks(axis.scale, low).0;
                high = enclosing_ticks(axis.scale, high).1;
            }
            Margin::Snug => {
                let pad = (high - low) * if is_linear { 0.02 } else { 0.03 };
                low -= pad;
                high += pad;
            }
        }
        // Asked to start at zero, an axis does so exactly if the data allows.
        if with_zero && first >= 0.0 && !matches!(margin, Margin::Bars(_)) {
            low = 0.0;
        }
        if let Some(most) = transform(axis.scale, FURTHEST_TICK) {
            low = low.max(-most);
            high = high.min(most);
        }
        Self { scale: axis.scale, low, high }
    }

    /// Where a tame value lies: 0 at the low end, 1 at the high end, beyond them if out of range.
    pub(crate) fn fraction(&self, value: f64) -> Option<f64> {
        let place = transform(self.scale, value)?;
        Some(((place - self.low) / (self.high - self.low)).clamp(-FARTHEST, FARTHEST))
    }

    /// Whether `value` is within the range, give or take rounding.
    pub(crate) fn shows(&self, value: f64) -> bool {
        self.fraction(value).is_some_and(within)
    }

    pub(crate) fn scale(&self) -> Scale {
        self.scale
    }

    /// The ends in transformed units.
    pub(crate) fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The ends as values.
    pub(crate) fn values(&self) -> (f64, f64) {
        let back = |place: f64| match self.scale {
            Scale::Linear => place,
            Scale::Log2 => place.exp2(),
            Scale::Log10 => 10f64.powf(place),
        };
        (back(self.low), back(self.high))
    }
}

/// Whether a fraction lies on the axis, give or take rounding.
pub(crate) fn within(fraction: f64) -> bool {
    (-1e-9..=1.0 + 1e-9).contains(&fraction)
}

/// The value as it is drawn on `scale`: within the magnitudes that arithmetic can bear, or nothing if it has
/// no place there at all.
pub(crate) fn tame(scale: Scale, value: f64) -> Option<f64> {
    let is_linear = scale == Scale::Linear;
    if !value.is_finite() || (!is_linear && value <= 0.0) {
        return None;
    }
    let value = value.clamp(-LARGEST, LARGEST);
    Some(if value.abs() >= SMALLEST {
        value
    } else if is_linear {
        0.0
    } else {
        SMALLEST
    })
}

/// A tame value as a distance on the scale.
fn transform(scale: Scale, value: f64) -> Option<f64> {
    match scale {
        Scale::Linear => Some(value),
        Scale::Log2 => (value > 0.0).then(|| value.log2()),
        Scale::Log10 => (value > 0.0).then(|| value.log10()),
    }
}

/// The same ends, moved apart if they are too close to tell ticks between them from each other.
fn apart(scale: Scale, low: f64, high: f64) -> (f64, f64) {
    let magnitude = low.abs().max(high.abs());
    let is_linear = scale == Scale::Linear;
    // A logarithm of 1e-9 is a ratio of about 1 + 1e-9, however close to zero both ends are.
    let least = 1e-9 * if is_linear { magnitude } else { magnitude.max(1.0) };
    if high - low > least {
        return (low, high);
    }
    let by = if is_linear && magnitude > 0.0 { magnitude / 2.0 } else { 1.0 };
    (low - by, high + by)
}

/// The nearest places at or below and at or above where a logarithmic axis may have a tick: powers of two,
/// or 1, 2 and 5 times those of ten.
fn enclosing_ticks(scale: Scale, place: f64) -> (f64, f64) {
    let steps: &[f64] = if scale == Scale::Log10 { &[0.0, LOG10_2, 1.0 - LOG10_2, 1.0] } else { &[0.0, 1.0] };
    let power = place.floor();
    let rest = place - power;
    let below = steps.iter().rev().find(|step| **step <= rest + 1e-9);
    let above = steps.iter().find(|step| **step >= rest - 1e-9);
    (power + below.unwrap_or(&0.0), power + above.unwrap_or(&1.0))
}

/// The least distance between two different values of a sorted list.
fn least_gap(sorted: &[f64]) -> Option<f64> {
    sorted.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_range(axis: &Axis, values: &[f64], margin: Margin<'_>, expected: (f64, f64)) {
        let (low, high) = Mapping::fit(axis, values, margin).values();
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1.0);
        assert!(close(low, expected.0) && close(high, expected.1), "{low}..{high} is not {expected:?}");
    }

    const TICKS: Margin<'_> = Margin::Ticks(5);

    #[test]
    fn a_range_reaches_to_the_next_tick() {
        check_range(&Axis::linear(""), &[3.0, 97.0], TICKS, (0.0, 100.0));
        check_range(&Axis::linear(""), &[103.0, 197.0], TICKS, (100.0, 200.0));
    }

    #[test]
    fn a_logarithmic_range_reaches_to_the_next_power() {
        check_range(&Axis::log2(""), &[130.0, 2_048.0], TICKS, (128.0, 2_048.0));
        check_range(&Axis::log10(""), &[0.03, 600.0], TICKS, (0.02, 1_000.0));
    }

    #[test]
    fn zero_is_taken_in_when_asked_for() {
        check_range(&Axis::linear("").starting_at_zero(), &[103.0, 190.0], TICKS, (0.0, 200.0));
        check_range(&Axis::linear("").starting_at_zero(), &[50.0, 100.0], Margin::Snug, (0.0, 102.0));
        check_range(&Axis::linear("").starting_at_zero(), &[-4.0, -2.0], TICKS, (-4.0, 0.0));
    }

    #[test]
    fn bars_have_room_at_both_ends() {
        check_range(&Axis::linear(""), &[1.0, 2.0, 4.0], Margin::Bars(&[1.0, 2.0, 4.0]), (0.5, 4.5));
        check_range(&Axis::log10(""), &[1e-290, 1e290], Margin::Bars(&[1e-290, 1e290]), (1e-300, 1e300));
    }

    #[test]
    fn fixed_bounds_come_in_either_order() {
        check_range(&Axis::linear("").between(1.0, 0.0), &[7.0], TICKS, (0.0, 1.0));
        check_range(&Axis::log10("").between(1.0, 100.0), &[7.0], TICKS, (1.0, 100.0));
    }

    #[test]
    fn bounds_without_a_place_on_the_scale_are_passed_over() {
        check_range(&Axis::linear("").between(f64::NAN, 1.0), &[0.0, 10.0], TICKS, (0.0, 10.0));
        let fallback = Mapping::fit(&Axis::log2("").between(0.0, 8.0), &[1.0, 8.0], TICKS);
        assert_eq!(fallback, Mapping::fit(&Axis::log2(""), &[1.0, 8.0], TICKS));
    }

    #[test]
    fn a_single_value_gets_room_on_both_sides() {
        let mapping = Mapping::fit(&Axis::linear(""), &[64.0], Margin::Snug);
        assert_eq!(mapping.fraction(64.0), Some(0.5));
        let mapping = Mapping::fit(&Axis::log2(""), &[64.0], Margin::Snug);
        assert_eq!(mapping.fraction(64.0), Some(0.5));
    }

    #[test]
    fn zero_has_no_place_on_a_logarithmic_axis() {
        let mapping = Mapping::fit(&Axis::log10(""), &[0.0, -1.0, 1.0, 10.0], Margin::Snug);
        assert_eq!(mapping.fraction(0.0), None);
        assert!(mapping.shows(1.0) && mapping.shows(10.0) && !mapping.shows(100.0));
    }
}
