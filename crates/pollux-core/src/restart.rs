//! What a restart costs this job, as measured.

use std::time::Duration;

use pollux_model::Timestamp;

/// Times the two halves of restarts: from the wish to stop until all is gone, and from the start until there is
/// progress. What lies between them, waiting for GPUs, is no cost of the restart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RestartClock {
    /// When it was asked to stop, until it has.
    pub stop_asked: Option<Timestamp>,
    /// How long the latest stop took.
    pub stopping: Duration,
    /// When it was started, until there is progress.
    pub started: Option<Timestamp>,
    /// What a restart costs; none before the first.
    pub measured: Option<Duration>,
}

impl RestartClock {
    pub(crate) fn stop_asked(&mut self, now: Timestamp) {
        self.stop_asked = Some(now);
        self.started = None;
    }

    pub(crate) fn stopped(&mut self, now: Timestamp) {
        if let Some(asked) = self.stop_asked.take() {
            self.stopping = now - asked;
        }
    }

    pub(crate) fn started(&mut self, now: Timestamp) {
        self.started = Some(now);
    }

    /// The job makes progress: the latest restart counts as much as all before it.
    pub(crate) fn training(&mut self, now: Timestamp) {
        let Some(started) = self.started.take() else { return };
        let cost = self.stopping + (now - started);
        self.measured = Some(self.measured.map_or(cost, |before| (before + cost) / 2));
    }

    /// What one restart costs; nothing before the first start.
    pub(crate) fn measured(&self) -> Option<Duration> {
        self.measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test] // 20 s to start at first; then 10 s to stop, an hour of waiting, 40 s to start.
    fn waiting_is_no_cost() {
        let mut clock = RestartClock::default();
        clock.started(at(100));
        clock.training(at(120));
        assert_eq!(clock.measured(), Some(Duration::from_secs(20)));
        clock.stop_asked(at(200));
        clock.stopped(at(210));
        clock.started(at(3_810));
        clock.training(at(3_850));
        assert_eq!(clock.measured(), Some(Duration::from_secs(35)));
    }

    #[test]
    fn a_start_cut_short_measures_nothing() {
        let mut clock = RestartClock::default();
        clock.started(at(0));
        clock.stop_asked(at(5));
        clock.training(at(6));
        assert_eq!(clock.measured(), None);
    }
}
