//! Dates of traces, as seconds since 1970, without time zones.

/// Seconds at the beginning of a day; none before 1970 or where there is no such day.
pub(super) fn secs_of_date(year: u32, month: u32, day: u32) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=days_of_month(year, month)).contains(&day) {
        return None;
    }
    let years: u64 = (1970..year).map(|year| if is_leap(year) { 366 } else { 365 }).sum();
    let months: u64 = (1..month).map(|month| u64::from(days_of_month(year, month))).sum();
    Some((years + months + u64::from(day) - 1) * 86_400)
}

/// Year, month and day of `2017-10-03`.
pub(super) fn date(text: &str) -> Option<(u32, u32, u32)> {
    let mut parts = text.split('-').map(whole);
    let date = (parts.next()??, parts.next()??, parts.next()??);
    secs_of_date(date.0, date.1, date.2).filter(|_| parts.next().is_none()).map(|_| date)
}

/// Seconds of `2017-10-03 07:01:55`.
pub(super) fn secs_of_text(text: &str) -> Option<u64> {
    let (day, time) = text.split_once([' ', 'T'])?;
    let (year, month, day) = date(day)?;
    let mut parts = time.split(':').map(whole);
    let (hours, minutes, secs) = (parts.next()??, parts.next()??, parts.next()??);
    let is_time = hours < 24 && minutes < 60 && secs < 60 && parts.next().is_none();
    let of_day = u64::from(hours * 3_600 + minutes * 60 + secs);
    secs_of_date(year, month, day).filter(|_| is_time).map(|begin| begin + of_day)
}

fn whole(text: &str) -> Option<u32> {
    // The standard library would take a sign as well.
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
        .filter(|&n| n < 10_000)
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap(year)),
        1..=12 => 31,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(secs_of_text(text), expected, "{text}");
    }

    #[test] // 1972 was the first leap year; a billion seconds were over on a Sunday in 2001.
    fn times_are_seconds_since_1970() {
        check("1970-01-01 00:00:00", Some(0));
        check("1970-02-01 00:01:01", Some(31 * 86_400 + 61));
        check("1972-03-01 00:00:00", Some((730 + 60) * 86_400));
        check("2001-09-09 01:46:40", Some(1_000_000_000));
        check("2001-09-09T01:46:40", Some(1_000_000_000));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "2017-10-03", "2017-02-29 00:00:00", "2017-13-01 00:00:00", "2017-10-03 24:00:00"] {
            check(text, None);
        }
        for text in ["2017-10-03 1:2", "2017-10-03 -1:00:00", "1969-12-31 00:00:00", "2017-10-03 00:00:00:00"]
        {
            check(text, None);
        }
    }
}
