//! Every rank but 0: does as it is told.

use pollux_model::Placement;

use crate::exchange::{ExchangeError, Leader, Order};
use crate::pace::{Pace, hold_until};
use crate::replica::Replica;
use crate::signals::Asked;
use crate::{Ended, TrainError};

/// Trains until rank 0 ends it.
///
/// One that was asked to leave says so with its next part; rank 0 then saves, and lets all go.
pub(crate) fn follow(
    mut replica: Replica,
    mut leader: Leader,
    placement: Placement,
    pace: &Pace,
    asked: &Asked,
) -> Result<Ended, TrainError> {
    match obey(&mut replica, &mut leader, placement, pace, asked) {
        // Rank 0 was asked too, and was faster.
        Err(ExchangeError::Lost { .. }) if asked.to_leave() => Ok(Ended::Left),
        outcome => Ok(outcome?),
    }
}

fn obey(
    replica: &mut Replica,
    leader: &mut Leader,
    placement: Placement,
    pace: &Pace,
    asked: &Asked,
) -> Result<Ended, ExchangeError> {
    (replica.weights, replica.direction) = leader.welcome()?;
    loop {
        let (plan, position) = match leader.order()? {
            Order::Step { plan, position } => (plan, position),
            Order::Finish => return Ok(Ended::Followed),
            Order::Leave => return Ok(Ended::Left),
        };
        let secs = pace.pass_secs(placement, plan);
        let (mut part, times) = replica.compute(plan, position, secs);
        part.asked = asked.to_leave();
        leader.part(&part)?;
        let (rate, gradient) = leader.update()?;
        replica.apply(rate, &gradient);
        hold_until(times.last_began, secs.last);
    }
}
