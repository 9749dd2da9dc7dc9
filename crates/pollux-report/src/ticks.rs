//! Where ticks go: steps of 1, 2 or 5, and powers of two or ten on logarithmic axes.

use crate::axis::Scale;
use crate::number;
use crate::scale::Mapping;

/// The ticks of one axis.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ticks {
    pub(crate) major: Vec<Tick>,
    /// Grid lines without a label, between the powers of ten.
    pub(crate) minor: Vec<f64>,
}

/// A place on an axis with its label.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// A distance between ticks that reads well: 1, 2 or 5 times a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NiceStep {
    mantissa: i32,
    exponent: i32,
}

impl NiceStep {
    /// The least step that covers `span` in at most `n_ticks` steps; `whole` forbids fractions where
    /// the span has whole numbers.
    pub(crate) fn covering(span: f64, n_ticks: usize, whole: bool) -> Self {
        let rough = span / n_ticks.max(1) as f64;
        let exponent = floor(rough.log10());
        let lead = rough / power_of_ten(exponent);
        let step = match [1, 2, 5].into_iter().find(|mantissa| f64::from(*mantissa) >= lead - 1e-9) {
            Some(mantissa) => Self { mantissa, exponent },
            None => Self { mantissa: 1, exponent: exponent + 1 },
        };
        if whole && span >= 1.0 && step.exponent < 0 { Self { mantissa: 1, exponent: 0 } } else { step }
    }

    pub(crate) fn at_or_below(self, value: f64) -> f64 {
        self.times((value / self.size() + 1e-9).floor())
    }

    pub(crate) fn at_or_above(self, value: f64) -> f64 {
        self.times((value / self.size() - 1e-9).ceil())
    }

    fn size(self) -> f64 {
        self.times(1.0)
    }

    /// Divides rather than multiplies by a negative power: three steps of 0.1 are then 0.3 to the last bit.
    fn times(self, count: f64) -> f64 {
        let count = count * f64::from(self.mantissa);
        if self.exponent < 0 {
            count / power_of_ten(-self.exponent)
        } else {
            count * power_of_ten(self.exponent)
        }
    }
}

impl Ticks {
    /// About `n_ticks` ticks for the range of `mapping`. `whole` says that fractions make no sense.
    pub(crate) fn choose(mapping: &Mapping, n_ticks: usize, whole: bool) -> Self {
        let n_ticks = n_ticks.max(2);
        let ticks = match mapping.scale() {
            Scale::Linear => return Self::linear(mapping, n_ticks, whole),
            Scale::Log2 => Self::powers_of_two(mapping, n_ticks),
            Scale::Log10 => Self::powers_of_ten(mapping, n_ticks),
        };
        // A logarithmic axis that spans less than a power or two reads best with plain numbers.
        let (low, high) = mapping.values();
        let is_short = ticks.major.len() < 3 && high / low <= 10.0;
        if is_short || ticks.major.len() < 2 { Self::linear(mapping, n_ticks, whole) } else { ticks }
    }

    /// A tick at each of `values`.
    pub(crate) fn at(values: &[f64]) -> Self {
        let major = values.iter().map(|&value| Tick { value, label: number::rounded(value) }).collect();
        Self { major, minor: Vec::new() }
    }

    fn linear(mapping: &Mapping, n_ticks: usize, whole: bool) -> Self {
        let (low, high) = mapping.values();
        let step = NiceStep::covering(high - low, n_ticks, whole);
        let first = (low / step.size() - 1e-9).ceil();
        let slack = 1e-9 * (high - low);
        let major = (0..=n_ticks + 1)
            .map(|index| step.times(first + index as f64))
            .filter(|value| (low - slack..=high + slack).contains(value))
            .map(|value| Tick { value, label: number::on_grid(value, step.exponent) })
            .collect();
        Self { major, minor: Vec::new() }
    }

    fn powers_of_two(mapping: &Mapping, n_ticks: usize) -> Self {
        let major = powers(mapping, stride(mapping, n_ticks))
            .map(|power| Tick { value: f64::from(power).exp2(), label: number::power_of_two(power) })
            .collect();
        Self { major, minor: Vec::new() }
    }

    fn powers_of_ten(mapping: &Mapping, n_ticks: usize) -> Self {
        let (low, high) = mapping.ends();
        let stride = stride(mapping, n_ticks);
        let has_room = 3.0 * (high - low) <= n_ticks as f64;
        let labelled: &[i32] = if has_room { &[1, 2, 5] } else { &[1] };
        let mut ticks = Self::default();
        for power in powers(mapping, stride) {
            let value = power_of_ten(power);
            ticks.major.push(Tick { value, label: number::on_grid(value, power) });
        }
        if stride > 1 || high - low > 5.0 {
            return ticks;
        }
        for power in floor(low)..=floor(high) {
            for digit in 2..10 {
                let value = f64::from(digit) * power_of_ten(power);
                if !mapping.shows(value) {
                    continue;
                }
                if labelled.contains(&digit) {
                    ticks.major.push(Tick { value, label: number::on_grid(value, power) });
                } else {
                    ticks.minor.push(value);
                }
            }
        }
        ticks.major.sort_by(|a, b| a.value.total_cmp(&b.value));
        ticks
    }
}

/// How many powers to step over so that about `n_ticks` remain.
fn stride(mapping: &Mapping, n_ticks: usize) -> i32 {
    let (low, high) = mapping.ends();
    let rough = ((high - low) / n_ticks as f64).ceil().max(1.0);
    // Every third power of ten is a thousand; beyond that round numbers read best.
    floor(if rough <= 3.0 { rough } else { NiceStep::covering(rough, 1, true).size() })
}

/// Exponents within the range, as multiples of `stride`.
fn powers(mapping: &Mapping, stride: i32) -> impl Iterator<Item = i32> {
    let (low, high) = mapping.ends();
    let first = floor((low / f64::from(stride) - 1e-9).ceil());
    let last = floor(high / f64::from(stride) + 1e-9);
    (first..=last).map(move |index| index * stride)
}

/// `10^exponent`, exact as far as a float can be.
fn power_of_ten(exponent: i32) -> f64 {
    if exponent < 0 { 1.0 / 10f64.powi(-exponent) } else { 10f64.powi(exponent) }
}

#[expect(clippy::cast_possible_truncation, reason = "logarithms of finite numbers, and `as` saturates")]
fn floor(value: f64) -> i32 {
    value.floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::scale::Margin;

    fn check(axis: &Axis, n_ticks: usize, expected: &[&str]) {
        let mapping = Mapping::fit(axis, &[], Margin::Snug);
        let ticks = Ticks::choose(&mapping, n_ticks, false);
        let labels: Vec<&str> = ticks.major.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, expected);
    }

    #[test]
    fn steps_are_one_two_or_five() {
        check(&Axis::linear("").between(0.0, 1.0), 5, &["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        check(&Axis::linear("").between(1.0, 64.0), 7, &["10", "20", "30", "40", "50", "60"]);
        check(&Axis::linear("").between(-5.0, 5.0), 4, &["−5", "0", "5"]);
        check(&Axis::linear("").between(0.0, 2_000.0), 4, &["0", "500", "1k", "1.5k", "2k"]);
        check(&Axis::linear("").between(0.0, 2e6), 2, &["0", "1M", "2M"]);
    }

    #[test]
    fn counts_have_no_fractions() {
        let mapping = Mapping::fit(&Axis::linear("").between(1.0, 3.0), &[], Margin::Snug);
        let ticks = Ticks::choose(&mapping, 8, true);
        assert_eq!(ticks.major.iter().map(|tick| tick.value).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn no_tick_is_out_of_range() {
        let mapping = Mapping::fit(&Axis::linear("").between(1e-16, 3e-16), &[], Margin::Snug);
        let ticks = Ticks::choose(&mapping, 3, true);
        let labels: Vec<&str> = ticks.major.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, ["1e-16", "2e-16", "3e-16"]);
    }

    #[test]
    fn powers_of_two_are_written_out() {
        check(&Axis::log2("").between(1.0, 64.0), 8, &["1", "2", "4", "8", "16", "32", "64"]);
        check(&Axis::log2("").between(0.5, 65_536.0), 4, &["1", "32", "1024", "32768"]);
        check(&Axis::log2("").between(100.0, 120.0), 4, &["100", "105", "110", "115", "120"]);
    }

    #[test]
    fn powers_of_ten_get_halves_where_there_is_room() {
        check(&Axis::log10("").between(1.0, 100.0), 6, &["1", "2", "5", "10", "20", "50", "100"]);
        check(
            &Axis::log10("").between(0.01, 1e5),
            8,
            &["0.01", "0.1", "1", "10", "100", "1k", "10k", "100k"],
        );
        check(&Axis::log10("").between(1.0, 1e9), 3, &["1", "1k", "1M", "1G"]);
    }

    #[test]
    fn extreme_ranges_have_ticks_too() {
        check(&Axis::linear("").between(0.0, 1e290), 2, &["0", "5e289", "1e290"]);
        check(&Axis::linear("").between(0.0, 1e-9), 2, &["0", "5e-10", "1e-9"]);
        check(&Axis::log10("").between(1e-290, 1e290), 3, &["1e-200", "1", "1e200"]);
    }
}
