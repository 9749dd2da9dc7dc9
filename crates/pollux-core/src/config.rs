//! What can be chosen about a scheduler, as data.

use std::time::Duration;

use pollux_policy::{Cadence, Seed};

use crate::scaler::Scaler;

/// How a scheduler goes about its rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// When plans are asked for: usually what the policy wants.
    pub cadence: Cadence,
    /// Where the seeds of all rounds come from.
    pub seed: Seed,
    /// What a restart is taken to cost until one was measured.
    pub restart_cost: Duration,
    /// Whether a new job is valued by what earlier ones of its application taught.
    pub history: bool,
    /// How long a job waits after its first failure; each further one doubles it.
    pub back_off: Duration,
    /// The longest such wait.
    pub longest_back_off: Duration,
    /// Jobs whose record is kept after their end, the latest ones. Of all others it is remembered that they were there.
    pub remember_ended: usize,
    /// How the size of the cluster is chosen; if not at all, pools stay as they are.
    pub scaler: Option<Scaler>,
}

impl Default for Config {
    /// A round a minute, as in the paper, and 30 s for a restart.
    fn default() -> Self {
        Self {
            cadence: Cadence { every: Duration::from_mins(1), on_events: None },
            seed: Seed(0),
            restart_cost: Duration::from_secs(30),
            history: false,
            back_off: Duration::from_secs(10),
            longest_back_off: Duration::from_mins(5),
            remember_ended: 10_000,
            scaler: None,
        }
    }
}

impl Config {
    /// How long to wait after so many failures in a row.
    pub(crate) fn back_off_after(&self, n_failures: u32) -> Duration {
        let doublings = n_failures.saturating_sub(1).min(31);
        self.back_off.saturating_mul(1 << doublings).min(self.longest_back_off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit() {
        let config = Config::default();
        let secs = [1, 2, 3, 6, 100].map(|n| config.back_off_after(n).as_secs());
        assert_eq!(secs, [10, 20, 40, 300, 300]);
    }
}
