//! Times, sizes and ranges as people write them.

use std::time::Duration;

const DAY: u64 = 86_400;

/// Units of time, largest first, in seconds.
const TIMES: [(char, u64); 4] = [('d', DAY), ('h', 3_600), ('m', 60), ('s', 1)];

/// The longest time of any key.
pub(super) const YEAR: Duration = Duration::from_secs(365 * DAY);

/// Units of size, largest first, in bytes.
const SIZES: [(&str, u64); 10] = [
    ("Pi", 1 << 50),
    ("Ti", 1 << 40),
    ("Gi", 1 << 30),
    ("Mi", 1 << 20),
    ("Ki", 1 << 10),
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("K", 1_000),
    ("", 1),
];

/// A time: `90s`, `5m`, `1h`, `2d`, or several units from large to small: `1h30m`.
pub(super) fn time(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut secs = 0_u64;
    for (unit, length) in TIMES {
        let digits = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let number = &rest[..rest.len() - digits.len()];
        if let Some(behind) = digits.strip_prefix(unit) {
            secs = secs.checked_add(whole(number)?.checked_mul(length)?)?;
            rest = behind;
        }
    }
    (rest.is_empty() && !text.is_empty()).then_some(Duration::from_secs(secs))
}

/// The shortest way to write a time; what is below a second is left out.
pub(super) fn write_time(time: Duration) -> String {
    let secs = time.as_secs();
    let fits = |(_, length): &(char, u64)| secs > 0 && secs.is_multiple_of(*length);
    let (unit, length) = TIMES.into_iter().find(fits).unwrap_or(('s', 1));
    format!("{}{unit}", secs / length)
}

/// A size in bytes: `64Gi`, `512Mi`, `64G`, or bytes alone. A `B` may follow.
pub(super) fn size(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let number = &text[..text.len() - unit.len()];
    let unit = unit.strip_suffix('B').unwrap_or(unit);
    let (_, bytes) = SIZES.into_iter().find(|(name, _)| *name == unit)?;
    whole(number)?.checked_mul(bytes)
}

/// The shortest way to write a size in binary units.
pub(super) fn write_size(bytes: u64) -> String {
    let fits = |(name, length): &(&str, u64)| {
        (name.ends_with('i') || name.is_empty()) && bytes > 0 && bytes.is_multiple_of(*length)
    };
    let (unit, length) = SIZES.into_iter().find(fits).unwrap_or(("", 1));
    format!("{}{unit}", bytes / length)
}

/// `1..16` is from 1 to 16, `2..` from 2 on, `4` exactly 4.
pub(super) fn range(text: &str) -> Option<(u32, Option<u32>)> {
    let number = |text: &str| whole(text.trim()).and_then(|number| u32::try_from(number).ok());
    match text.split_once("..") {
        None => number(text).map(|exactly| (exactly, Some(exactly))),
        Some((least, "")) => Some((number(least)?, None)),
        Some((least, most)) => Some((number(least)?, Some(number(most)?))),
    }
}

/// Digits and nothing else, not even a sign.
fn whole(digits: &str) -> Option<u64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_time(text: &str, secs: Option<u64>) {
        assert_eq!(time(text), secs.map(Duration::from_secs), "{text}");
    }

    #[test]
    fn times_have_units() {
        for (text, secs) in
            [("90s", 90), ("5m", 300), ("1h", 3_600), ("2d", 172_800), ("1h30m", 5_400), ("0s", 0)]
        {
            check_time(text, Some(secs));
        }
        for text in [
            "",
            "5",
            "m",
            "5 m",
            "-5m",
            "5M",
            "1.5h",
            "30m1h",
            "5m5m",
            "+5s",
            "99999999999999999999s",
            "9e9s",
        ] {
            check_time(text, None);
        }
        check_time("18446744073709551615d", None);
    }

    fn check_size(text: &str, bytes: Option<u64>) {
        assert_eq!(size(text), bytes, "{text}");
    }

    #[test]
    fn sizes_have_units() {
        check_size("64Gi", Some(64 << 30));
        check_size("64GiB", Some(64 << 30));
        check_size("2K", Some(2_000));
        check_size("7", Some(7));
        for text in ["", "Gi", "64gi", "64 Gi", "1.5Gi", "99999999Pi", "64Gib", "B"] {
            check_size(text, None);
        }
    }

    #[test]
    fn ranges_may_be_open() {
        assert_eq!(range("1..16"), Some((1, Some(16))));
        assert_eq!(range("2.."), Some((2, None)));
        assert_eq!(range("4"), Some((4, Some(4))));
        for text in ["", "..", "..4", "1...4", "1-4", "a..b", "1..4294967296"] {
            assert_eq!(range(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_short_and_reads_the_same() {
        for (secs, text) in
            [(0, "0s"), (90, "90s"), (300, "5m"), (7_200, "2h"), (172_800, "2d"), (86_401, "86401s")]
        {
            assert_eq!(write_time(Duration::from_secs(secs)), text);
            check_time(text, Some(secs));
        }
        for (bytes, text) in
            [(0, "0"), (64 << 30, "64Gi"), (1_000, "1000"), (3 << 10, "3Ki"), (1 << 50, "1Pi")]
        {
            assert_eq!(write_size(bytes), text);
            check_size(text, Some(bytes));
        }
    }
}
