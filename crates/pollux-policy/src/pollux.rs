//! Pollux's own policies.

use crate::ga::Genetic;
use crate::plan::Plan;
use crate::policy::{About, AnyPolicy, Cadence, Policy, Terms};
use crate::rivals::{EvenShare, Fifo, Gavel, Optimus, ShortestFirst, Sia, Tiresias};
use crate::round;
use crate::settings::Settings;
use crate::size_aware::{self, SizeAware};
use crate::snapshot::{Job, Known, Snapshot};
use crate::type_blind::TypeBlind;
use crate::valuation::Stake;

/// The Pollux objective, solved with a certificate. Of what jobs declare it looks at the work they have left, and at
/// that only where weights by size are set.
#[derive(Clone, Copy, Debug)]
pub struct Pollux {
    /// The objective and the effort.
    pub settings: Settings,
}

impl Default for Pollux {
    /// As in the paper.
    fn default() -> Self {
        Self { settings: Settings::PAPER }
    }
}

impl Policy for Pollux {
    type Knows = Known;

    fn about(&self) -> About {
        About {
            name: "pollux",
            summary: "fair shares of goodput: a power mean of speed-ups, solved with a certified gap",
            source: "objective: Qiao et al., OSDI 2021; solver: this project",
            adapts_batch: true,
        }
    }

    fn cadence(&self) -> Cadence {
        self.settings.cadence()
    }

    fn plan(&self, snapshot: &Snapshot<Known>, terms: &Terms<'_>) -> Plan {
        let all_alike = |job: &Job| Stake { weight: job.weight, remaining_secs: None };
        let stakes: Vec<Stake> = if self.settings.size > 0.0 {
            size_aware::stakes(snapshot, self.settings.size)
        } else {
            snapshot.jobs().iter().map(all_alike).collect()
        };
        round::plan(snapshot, &self.settings, &stakes, terms)
    }

    fn plan_with_all(&self, snapshot: &Snapshot<Known>, terms: &Terms<'_>) -> Plan {
        Policy::plan(self, snapshot, terms)
    }
}

/// Every policy.
pub fn policies() -> Vec<Box<dyn AnyPolicy>> {
    vec![
        Box::new(Pollux { settings: Settings::BALANCED }),
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
