//! What time it is, for the scheduler.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp as Moment;
use pollux_model::Timestamp;

/// The wall clock's time at the start, then monotonic: it never goes back, whatever is done to the machine's clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Timestamp,
    since: Instant,
}

impl Clock {
    /// Begins now, but not before `least`. Says how far the wall clock is behind that, if it is.
    pub fn starting(least: Timestamp) -> (Self, Option<Duration>) {
        let wall = wall();
        let behind = (wall < least).then(|| least - wall);
        (Self { base: wall.max(least), since: Instant::now() }, behind)
    }

    /// Microseconds since 1970, as far as this clock knows.
    pub fn now(&self) -> Timestamp {
        self.base + self.since.elapsed()
    }
}

fn wall() -> Timestamp {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(u64::try_from(since_1970.as_micros()).unwrap_or(u64::MAX))
}

/// A time as RFC 3339 has it, in UTC, to the millisecond.
pub fn rfc3339(at: Timestamp) -> String {
    let micros = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    Moment::from_microsecond(micros).map_or_else(|_| "-".to_owned(), |moment| format!("{moment:.3}"))
}

/// A time that [`rfc3339`] wrote, in microseconds; 0 if it is none.
pub(super) fn micros(text: &str) -> u64 {
    let moment = text.parse::<Moment>().map_or(0, Moment::as_microsecond);
    u64::try_from(moment).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        assert_eq!(rfc3339(Timestamp::from_micros(1_700_000_000_123_456)), "2023-11-14T22:13:20.123Z");
        assert_eq!(rfc3339(Timestamp::from_micros(u64::MAX)), "-");
    }

    #[test]
    fn a_clock_that_was_set_back_goes_on_from_where_it_was() {
        let future = wall() + Duration::from_hours(1);
        let (clock, behind) = Clock::starting(future);
        assert!(clock.now() >= future);
        assert!(behind.is_some_and(|behind| behind > Duration::from_mins(58)));
        assert_eq!(Clock::starting(Timestamp::ZERO).1, None);
    }
}
