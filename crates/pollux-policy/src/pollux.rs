//! Pollux's own policies.

use crate::ga::Genetic;
use crate::plan::Plan;
use crate::policy::{About, AnyPolicy, Policy, Terms};
use crate::rivals::{EvenShare, Fifo, Gavel, Optimus, ShortestFirst, Sia, Tiresias};
use crate::round;
use crate::settings::Settings;
use crate::size_aware::SizeAware;
use crate::snapshot::{Known, Learned, Snapshot};
use crate::type_blind::TypeBlind;
use crate::valuation::Stake;

/// The Pollux objective, solved with a certificate.
#[derive(Clone, Copy, Debug)]
pub struct Pollux {
    /// The objective and the effort.
    pub settings: Settings,
}

impl Default for Pollux {
    fn default() -> Self {
        Self { settings: Settings::PAPER }
    }
}

impl Policy for Pollux {
    type Knows = Learned;

    fn about(&self) -> About {
        About {
            name: "pollux",
            summary: "fair shares of goodput: a power mean of speed-ups, solved with a certified gap",
            source: "objective: Qiao et al., OSDI 2021; solver: this project",
            adapts_batch: true,
        }
    }

    fn plan(&self, snapshot: &Snapshot<Learned>, terms: &Terms<'_>) -> Plan {
        self.plan_seeing(snapshot, terms)
    }

    fn plan_with_all(&self, snapshot: &Snapshot<Known>, terms: &Terms<'_>) -> Plan {
        self.plan_seeing(snapshot, terms)
    }
}

impl Pollux {
    fn plan_seeing<K: AsRef<Learned>>(&self, snapshot: &Snapshot<K>, terms: &Terms<'_>) -> Plan {
        let stakes: Vec<Stake> =
            snapshot.jobs().iter().map(|job| Stake { weight: job.weight, remaining_secs: None }).collect();
        round::plan(snapshot, &self.settings, &stakes, terms)
    }
}

/// Every policy.
pub fn policies() -> Vec<Box<dyn AnyPolicy>> {
    vec![
        Box::new(Pollux::default()),
        Box::new(SizeAware::default()),
        Box::new(Genetic::paper()),
        Box::new(Genetic::osdi21()),
        Box::new(Tiresias::default()),
        Box::new(Optimus),
        Box::new(Fifo),
        Box::new(EvenShare),
        Box::new(ShortestFirst),
        Box::new(Sia::default()),
        Box::new(Gavel::default()),
        Box::new(TypeBlind::default()),
    ]
}
