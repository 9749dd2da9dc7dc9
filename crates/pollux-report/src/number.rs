//! Numbers as a reader wants them: `0.2`, `1.5k`, `3M`, `2e18`.

/// Suffixes of the powers of a thousand.
const SUFFIXES: [&str; 5] = ["", "k", "M", "G", "T"];

/// A multiple of `10^exponent`, with all the digits it needs and no more.
pub(crate) fn on_grid(value: f64, exponent: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs();
    let sign = if value < 0.0 { "−" } else { "" };
    if !(1e-4..1e15).contains(&magnitude) {
        return format!("{sign}{}", scientific(magnitude, exponent));
    }
    let thousands =
        SUFFIXES.len() - 1 - (1..SUFFIXES.len()).rev().take_while(|n| magnitude < thousand_to(*n)).count();
    let suffix = SUFFIXES[thousands];
    let shift = i32::try_from(3 * thousands).unwrap_or(0);
    let decimals = usize::try_from(shift - exponent).unwrap_or(0);
    format!("{sign}{}{suffix}", trimmed(magnitude / thousand_to(thousands), decimals))
}

/// A value in four significant digits.
pub(crate) fn rounded(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    // Formatting rounds first, so that 999.96 becomes 1000 and then `1k`.
    let scientific = format!("{value:.3e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    on_grid(scientific.parse().unwrap_or(value), exponent - 3)
}

/// A value in three significant digits, zeros at its end kept; `–` if it is no number.
pub(crate) fn brief(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let scientific = format!("{value:.2e}");
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<i32>().ok());
    match exponent {
        _ if value == 0.0 => "0".to_owned(),
        Some(exponent @ -4..=4) => format!("{value:.0$}", usize::try_from(2 - exponent).unwrap_or(0)),
        _ => rounded(value),
    }
}

/// `2^power`: written out while that is readable.
pub(crate) fn power_of_two(power: i32) -> String {
    if (-4..20).contains(&power) { f64::from(power).exp2().to_string() } else { format!("2^{power}") }
}

fn thousand_to(power: usize) -> f64 {
    [1.0, 1e3, 1e6, 1e9, 1e12][power]
}

fn scientific(magnitude: f64, exponent: i32) -> String {
    let own = format!("{magnitude:e}").split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    let decimals = usize::try_from(own - exponent).unwrap_or(0).min(12);
    let text = format!("{magnitude:.decimals$e}");
    match text.split_once('e') {
        Some((mantissa, power)) => format!("{}e{power}", without_trailing_zeros(mantissa)),
        None => text,
    }
}

fn trimmed(value: f64, decimals: usize) -> String {
    without_trailing_zeros(&format!("{value:.*}", decimals.min(12))).to_owned()
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_three_digits() {
        let values = [0.0, 1.1, 19.96, 123.4, 12_345.0, 2_000_000.0, 0.0123, f64::NAN];
        assert_eq!(values.map(brief), ["0", "1.10", "20.0", "123", "12345", "2M", "0.0123", "–"]);
    }

    #[test]
    fn thousands_have_a_suffix() {
        assert_eq!(on_grid(999.0, 0), "999");
        assert_eq!(on_grid(1_000.0, 2), "1k");
        assert_eq!(on_grid(1_500.0, 2), "1.5k");
        assert_eq!(on_grid(-2e6, 6), "−2M");
        assert_eq!(on_grid(1_005.0, 0), "1.005k");
        assert_eq!(on_grid(3e12, 12), "3T");
    }

    #[test]
    fn neighbours_on_a_fine_grid_stay_apart() {
        assert_eq!(on_grid(1.000_002, -6), "1.000002");
        assert_eq!(on_grid(1_000_002.0, 0), "1.000002M");
        assert_eq!(on_grid(0.3, -1), "0.3");
    }

    #[test]
    fn very_large_and_very_small_numbers_use_powers_of_ten() {
        assert_eq!(on_grid(2e18, 18), "2e18");
        assert_eq!(on_grid(1.5e-7, -8), "1.5e-7");
    }

    #[test]
    fn a_value_off_any_grid_is_rounded() {
        assert_eq!(rounded(0.123_456), "0.1235");
        assert_eq!(rounded(999.96), "1k");
        assert_eq!(rounded(64.0), "64");
        assert_eq!(rounded(1_234_567.0), "1.235M");
        assert_eq!(rounded(0.0), "0");
    }

    #[test]
    fn powers_of_two_stay_exact() {
        assert_eq!(power_of_two(12), "4096");
        assert_eq!(power_of_two(-2), "0.25");
        assert_eq!(power_of_two(20), "2^20");
        assert_eq!(power_of_two(-8), "2^-8");
    }
}
