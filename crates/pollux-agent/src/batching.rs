//! Which batch to train with: the best within reach, worth the change, and now and then one tried for its
//! timing.

use pollux_model::{BatchLimits, BatchPlan, GlobalBatch, GoodputModel, Placement};

use crate::settings::AgentSettings;

/// Why a batch is what it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BatchReason {
    /// Nothing is known yet: as near to the user's batch as the GPUs allow.
    Initial,
    /// Predicted goodput rises by this factor.
    Better {
        /// New over old goodput.
        factor: f64,
    },
    /// The allocation changed, and the batch with it.
    NewPlacement,
    /// A micro-batch size is tried for its timing, so that the model knows how time grows with it.
    Explore,
    /// The experiment is over: back to the batch before it.
    Explored,
    /// Nothing else was worth a change.
    Keep,
    /// The limits leave this batch alone on these GPUs.
    OnlyChoice,
}

/// A batch and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchDecision {
    /// The batch to train with.
    pub plan: BatchPlan,
    /// Whether it differs from the one in use.
    pub changed: bool,
    /// Why.
    pub reason: BatchReason,
}

/// The plan next to the user's batch: exactly that if the GPUs allow, else the smallest above it.
pub(crate) fn initial_plan(limits: &BatchLimits, placement: Placement) -> Option<BatchPlan> {
    let n_replicas = u64::from(placement.n_replicas());
    let initial = limits.min();
    let share = initial.0.div_ceil(n_replicas);
    let fewest = u32::try_from(share.div_ceil(u64::from(limits.micro_max())) - 1).ok()?;
    let exact = (fewest..fewest.saturating_add(64))
        .map_while(|accum_steps| BatchPlan::split(initial, placement, accum_steps))
        .find(|&plan| limits.allows(placement, plan));
    let smallest = || {
        let micro_batch = u32::try_from(share).ok()?.clamp(limits.micro_min(), limits.micro_max());
        (fewest..fewest.saturating_add(64))
            .filter_map(|accum_steps| {
                let least = share.div_ceil(u64::from(accum_steps) + 1);
                let micro_batch = u32::try_from(least).unwrap_or(micro_batch).max(limits.micro_min());
                BatchPlan::even(placement, micro_batch, accum_steps)
            })
            .find(|&plan| limits.allows(placement, plan))
    };
    exact.or_else(smallest)
}

/// The same global batch on another placement, or the nearest allowed.
pub(crate) fn carried_over(limits: &BatchLimits, plan: BatchPlan, placement: Placement) -> Option<BatchPlan> {
    let same = limits.within(plan.global(), plan.global());
    same.and_then(|same| initial_plan(&same, placement)).or_else(|| initial_plan(limits, placement))
}

/// The best plan within one change's reach of `from`, if the way there is worth it: the goodput of the best
/// plan of all (not only of those within reach) over the present one.
pub(crate) fn better_within_reach(
    settings: &AgentSettings,
    model: &GoodputModel,
    placement: Placement,
    from: BatchPlan,
) -> Option<(BatchPlan, f64)> {
    let goodput = |plan| model.goodput(placement, plan).useful_samples_per_sec();
    let here = goodput(from);
    let factor = goodput(model.best_batch(placement)?) / here;
    if factor <= settings.worthwhile {
        return None;
    }
    let (low, high) = reach(settings, from.global());
    let limits = model.limits().within(low, high)?;
    let near = GoodputModel::new(model.params().clone(), model.noise(), limits).ok()?;
    let plan = near.best_batch(placement)?;
    (goodput(plan) > here).then_some((plan, factor))
}

fn reach(settings: &AgentSettings, batch: GlobalBatch) -> (GlobalBatch, GlobalBatch) {
    let samples = batch.0 as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let whole = |value: f64| GlobalBatch(value as u64);
    (whole((samples / settings.batch_change).ceil()), whole(samples * settings.batch_change))
}

/// A plan whose micro-batch was not timed yet, at a batch within reach of `from`: twice the largest timed,
/// or half the smallest; with a fixed batch, more or fewer accumulation steps.
pub(crate) fn exploring_plan(
    settings: &AgentSettings,
    limits: &BatchLimits,
    placement: Placement,
    from: BatchPlan,
    timed: &std::collections::BTreeSet<u32>,
) -> Option<BatchPlan> {
    let (&smallest, &largest) = (timed.first()?, timed.last()?);
    let wanted = [largest.saturating_mul(2).min(limits.micro_max()), (smallest / 2).max(limits.micro_min())];
    let (_, high) = reach(settings, from.global());
    for micro_batch in wanted {
        if timed.contains(&micro_batch) {
            continue;
        }
        // The fewest passes that reach the present batch, and one fewer.
        let per_pass = u64::from(placement.n_replicas()) * u64::from(micro_batch);
        let passes = from.global().0.div_ceil(per_pass).max(1);
        for accum_steps in [passes - 1, passes.saturating_sub(2)] {
            let steps = u32::try_from(accum_steps).ok()?;
            let even = BatchPlan::even(placement, micro_batch, steps);
            let split = BatchPlan::split(from.global(), placement, steps);
            let found = [even, split].into_iter().flatten().find(|&plan| {
                limits.allows(placement, plan)
                    && plan.global() <= high
                    && !timed.contains(&plan.atomic_batch())
            });
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn placement(n_replicas: u32) -> Placement {
        Placement::packed(n_replicas, 4).unwrap()
    }

    fn check_initial(limits: &BatchLimits, n_replicas: u32, expected: Option<(u64, u32, u32)>) {
        let plan = initial_plan(limits, placement(n_replicas));
        let seen = plan.map(|plan| (plan.global().0, plan.atomic_batch(), plan.accum_steps()));
        assert_eq!(seen, expected, "{n_replicas} replicas");
        assert!(plan.is_none_or(|plan| limits.allows(placement(n_replicas), plan)));
    }

    #[test]
    fn the_first_batch_keeps_the_limits() {
        let limits = BatchLimits::new(128, 4_096, 16, 64).unwrap();
        check_initial(&limits, 1, Some((128, 64, 1)));
        check_initial(&limits, 3, Some((128, 43, 0)));
        check_initial(&limits, 16, Some((256, 16, 0)));
        check_initial(&limits, 1_000, None);
        check_initial(&BatchLimits::fixed(128, 16, 64).unwrap(), 16, None);
    }

    #[test]
    fn exploring_tries_twice_the_largest_then_half_the_smallest() {
        let settings = AgentSettings::default();
        let limits = BatchLimits::new(32, 256, 8, 256).unwrap();
        let from = initial_plan(&limits, Placement::ALONE).unwrap();
        let next = |timed: &[u32]| {
            let timed: BTreeSet<u32> = timed.iter().copied().collect();
            exploring_plan(&settings, &limits, Placement::ALONE, from, &timed)
                .map(|plan| (plan.global().0, plan.atomic_batch(), plan.accum_steps()))
        };
        assert_eq!(next(&[32]), Some((64, 64, 0)));
        assert_eq!(next(&[32, 64]), Some((32, 16, 1)), "128 samples are out of reach of 32");
    }

    #[test]
    fn a_fixed_batch_explores_by_accumulating() {
        let settings = AgentSettings::default();
        let limits = BatchLimits::fixed(128, 8, 256).unwrap();
        let from = initial_plan(&limits, Placement::ALONE).unwrap();
        let plan =
            exploring_plan(&settings, &limits, Placement::ALONE, from, &BTreeSet::from([128])).unwrap();
        assert_eq!((plan.global().0, plan.atomic_batch(), plan.accum_steps()), (128, 64, 1));
    }
}
