//! The exact best batch: argmax of goodput over whole micro-batches and accumulation steps.
//!
//! Four facts make it a handful of evaluations instead of a search (`T` is the time of a step, `φ` the noise
//! scale, `c = K (s + 1)`, so that the batch is `c m`):
//!
//! 1. For fixed `s`, `T` is convex in `m` and goodput has one peak, where `φ (T - m T') = c m² T'`. The left
//!    side falls with `m`, the right side rises. Where `T` is a straight line the solution is in closed form,
//!    so tangents converge in two or three steps.
//! 2. For a given number of samples per replica, fewer accumulation steps are never slower, as long as time
//!    per sample does not rise with the micro-batch (true of the linear form and the roofline). So more steps
//!    are worth a look only where the micro-batch is at its limit, and there `T` is linear in `s`.
//! 3. Hence, from the right `s` on, the peak over real `m` only falls as `s` grows: once it is not above the
//!    best whole-number plan found, the search is over.
//! 4. A tangent lies below the convex `T`, so goodput lies below what the tangent promises, whose peak costs
//!    a square root. Most candidates are dismissed by a tangent already at hand, without an evaluation.

use crate::allocation::Placement;
use crate::batch::{BatchLimits, BatchPlan, GlobalBatch};
use crate::compute::Compute;
use crate::goodput::GoodputModel;
use crate::perf::Timing;

/// A table's time per sample may rise with the micro-batch, so fact 2 does not hold for it: that many
/// accumulation counts are tried, from the smallest the limits allow.
const TABLE_ACCUM_STEPS: u64 = 64;

/// Uneven micro-batches are as slow as the largest of them, so one more accumulation step can be faster:
/// that many counts are tried, from the smallest the limits allow.
const SPLIT_ACCUM_STEPS: u64 = 64;

/// Jobs of any use need a few accumulation counts. Only where thousands of samples must be met within a
/// handful, or time is exactly proportional to samples, could the search go on and on.
const EVEN_ACCUM_STEPS: u64 = 1_024;

/// Tangents find a peak in two or three steps; after this many, halving the interval does.
const TANGENT_STEPS: u32 = 8;

/// A plan promised to be better by less than this is none: the promise is rounded.
const ROUNDING: f64 = 1e-13;

pub(crate) fn best_batch(model: &GoodputModel, placement: Placement) -> Option<BatchPlan> {
    let search = Search::new(model, placement);
    let limits = model.limits();
    if limits.is_fixed() {
        return search.split(limits.min());
    }
    if limits.accumulates_alone() && placement.n_replicas() == 1 {
        return search.better_of(search.split(limits.min()), search.even(1));
    }
    let even = search.even(0);
    if even.is_some() && !search.leaves_a_gap() {
        return even;
    }
    search.better_of(search.split(limits.min()), even)
}

/// One placement's problem, in floating point.
struct Search<'a> {
    timing: Timing<'a>,
    grad: &'a Compute,
    limits: &'a BatchLimits,
    placement: Placement,
    n_replicas: f64,
    noise: f64,
}

/// The best whole-number plan so far.
#[derive(Clone, Copy)]
struct Best {
    micro_batch: f64,
    accum_steps: u64,
    goodput: f64,
}

/// Step time at one micro-batch, and the straight line that touches it there.
#[derive(Clone, Copy)]
struct Tangent {
    micro_batch: f64,
    accum_steps: f64,
    secs: f64,
    slope: f64,
}

/// Micro-batches from the first to the second, both included; perhaps none.
type Range = (f64, f64);

impl<'a> Search<'a> {
    fn new(model: &'a GoodputModel, placement: Placement) -> Self {
        Self {
            timing: Timing::new(model.params(), placement),
            grad: &model.params().grad,
            limits: model.limits(),
            placement,
            n_replicas: f64::from(placement.n_replicas()),
            noise: model.noise().samples(),
        }
    }

    fn has_table(&self) -> bool {
        matches!(self.grad, Compute::Table(_))
    }

    /// Goodput, up to the constant factor `φ + M₀`.
    fn goodput(&self, batch: f64, secs: f64) -> f64 {
        if self.noise == f64::INFINITY { batch / secs } else { batch / (secs * (self.noise + batch)) }
    }

    fn goodput_of(&self, plan: BatchPlan) -> f64 {
        let secs = self.timing.secs(f64::from(plan.atomic_batch()), f64::from(plan.accum_steps()));
        self.goodput(plan.global().0 as f64, secs)
    }

    fn better_of(&self, one: Option<BatchPlan>, other: Option<BatchPlan>) -> Option<BatchPlan> {
        match (one, other) {
            (Some(one), Some(other)) if self.goodput_of(one) > self.goodput_of(other) => Some(one),
            (one, other) => other.or(one),
        }
    }

    /// Exactly `batch` samples, with the accumulation that makes it fastest.
    fn split(&self, batch: GlobalBatch) -> Option<BatchPlan> {
        let share = batch.0.div_ceil(u64::from(self.placement.n_replicas()));
        let fewest = share.div_ceil(u64::from(self.limits.micro_max())) - 1;
        let mut best: Option<(BatchPlan, f64)> = None;
        for accum_steps in fewest..fewest.saturating_add(SPLIT_ACCUM_STEPS) {
            let plan = u32::try_from(accum_steps)
                .ok()
                .and_then(|accum_steps| BatchPlan::split(batch, self.placement, accum_steps));
            let Some(plan) = plan else { break };
            if !self.limits.allows(self.placement, plan) {
                continue;
            }
            let goodput = self.goodput_of(plan);
            if best.is_none_or(|(_, best)| goodput > best) {
                best = Some((plan, goodput));
            }
            // Fact 2, once no micro-batch is larger than another.
            let even = BatchPlan::even(self.placement, plan.atomic_batch(), plan.accum_steps());
            if !self.has_table() && even == Some(plan) {
                break;
            }
        }
        best.map(|(plan, _)| plan)
    }

    /// The smallest and largest number of accumulation steps of plans with equal micro-batches.
    fn accum_range(&self, at_least: u64) -> Option<(u64, u64)> {
        let n_replicas = u64::from(self.placement.n_replicas());
        let (micro_min, micro_max) = (u64::from(self.limits.micro_min()), u64::from(self.limits.micro_max()));
        let (min, max) = (self.limits.min().0, self.limits.max().0);
        let fewest = min.div_ceil(n_replicas * micro_max).saturating_sub(1).max(at_least);
        let most = (max / (n_replicas * micro_min)).checked_sub(1)?.min(self.limits.max_accum_steps().into());
        (fewest <= most).then_some((fewest, most))
    }

    /// Whether the batch sizes allowed lie so close together that the fewest accumulation steps have no plan
    /// with equal micro-batches. Otherwise that plan is faster than any uneven one of the smallest batch.
    fn leaves_a_gap(&self) -> bool {
        self.accum_range(0).is_none_or(|(fewest, _)| {
            let (low, high) = self.whole_range(fewest);
            low > high
        })
    }

    /// The whole micro-batches that keep the limits with this many accumulation steps.
    fn whole_range(&self, accum_steps: u64) -> Range {
        let passes = u64::from(self.placement.n_replicas()) * (accum_steps + 1);
        let low = self.limits.min().0.div_ceil(passes).max(self.limits.micro_min().into());
        let high = (self.limits.max().0 / passes).min(self.limits.micro_max().into());
        (low as f64, high as f64)
    }

    /// The real micro-batches that do.
    fn real_range(&self, accum_steps: u64) -> Range {
        let passes = self.n_replicas * (accum_steps as f64 + 1.0);
        let low = (self.limits.min().0 as f64 / passes).max(self.limits.micro_min().into());
        let high = (self.limits.max().0 as f64 / passes).min(self.limits.micro_max().into());
        (low, high)
    }

    /// The best plan with equal micro-batches and at least this many accumulation steps.
    fn even(&self, at_least: u64) -> Option<BatchPlan> {
        let (fewest, most) = self.accum_range(at_least)?;
        let best = match self.grad {
            Compute::Table(table) => self.between_points(table.points(), fewest, most),
            _ => self.starting_at_the_right_count(fewest, most),
        }?;
        // Both come from ranges of u32.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and within u32")]
        BatchPlan::even(self.placement, best.micro_batch as u32, best.accum_steps as u32)
    }

    /// Facts 2 and 3: jump to the accumulation that is best at the largest micro-batch, go on from there.
    fn starting_at_the_right_count(&self, fewest: u64, most: u64) -> Option<Best> {
        let at_micro_max = self.tangent(self.limits.micro_max().into(), 0.0);
        let first = self.steps_at_micro_max(&at_micro_max).clamp(fewest, most);
        let mut known = self.accumulating(&at_micro_max, first as f64);
        let mut best = None;
        for accum_steps in first..=most.min(first.saturating_add(EVEN_ACCUM_STEPS - 1)) {
            let real = self.real_range(accum_steps);
            // Up to the second count the peak may rise.
            if accum_steps > first && self.is_beaten(&known, real, best) {
                break;
            }
            known = self.climb(accum_steps, self.whole_range(accum_steps), known, &mut best);
            if accum_steps > first && self.is_beaten(&known, real, best) {
                break;
            }
            known = self.accumulating(&known, 1.0);
        }
        best
    }

    /// Between two points of a table time is a straight line: each piece has its own single peak.
    fn between_points(&self, points: &[(u32, f64)], fewest: u64, most: u64) -> Option<Best> {
        let mut best = None;
        for accum_steps in fewest..=most.min(fewest.saturating_add(TABLE_ACCUM_STEPS - 1)) {
            let (mut from, high) = self.whole_range(accum_steps);
            let ends = points.iter().map(|&(at, _)| f64::from(at)).chain([high]);
            for to in ends.map(|end| end.min(high)) {
                // A piece ends with its right point and begins after its left one: slopes are those of the
                // line to the left.
                if from <= to {
                    let known = self.tangent(to, accum_steps as f64);
                    self.climb(accum_steps, (from, to), known, &mut best);
                    from = to + 1.0;
                }
            }
        }
        best
    }

    /// The number of accumulation steps up to which adding one is sure to help, at the largest micro-batch.
    fn steps_at_micro_max(&self, at_micro_max: &Tangent) -> u64 {
        let micro_max = at_micro_max.micro_batch;
        let grad = self.timing.grad_secs(micro_max);
        let once = (at_micro_max.secs - grad).max(0.0);
        let by_goodput = (self.noise * once / (grad * self.n_replicas * micro_max)).sqrt() - 1.0;
        let by_max_batch = self.limits.max().0 as f64 / (self.n_replicas * micro_max) - 1.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, NaN becomes 0"
        )]
        {
            by_goodput.min(by_max_batch) as u64
        }
    }

    fn tangent(&self, micro_batch: f64, accum_steps: f64) -> Tangent {
        let (secs, slope) = self.timing.secs_and_slope(micro_batch, accum_steps);
        Tangent { micro_batch, accum_steps, secs, slope }
    }

    /// The tangent at the same micro-batch after `more` accumulation steps.
    fn accumulating(&self, tangent: &Tangent, more: f64) -> Tangent {
        if more <= 0.0 {
            return *tangent;
        }
        let (grad, slope) = self.grad.secs_and_slope(tangent.micro_batch);
        Tangent {
            accum_steps: tangent.accum_steps + more,
            secs: tangent.secs + more * grad,
            slope: tangent.slope + more * slope,
            ..*tangent
        }
    }

    /// Where goodput would peak if time went on along the tangent. Right of where it touches exactly if the
    /// true peak is.
    fn peak_of(&self, tangent: &Tangent) -> f64 {
        let intercept = tangent.secs - tangent.slope * tangent.micro_batch;
        if tangent.slope <= 0.0 {
            return f64::INFINITY;
        }
        if intercept < 0.0 {
            return 0.0;
        }
        let passes = self.n_replicas * (tangent.accum_steps + 1.0);
        let peak = (self.noise * intercept / (passes * tangent.slope)).sqrt();
        if peak.is_nan() { f64::INFINITY } else { peak }
    }

    /// Fact 4: whether the tangent rules out a better plan in this range.
    fn is_beaten(&self, tangent: &Tangent, (low, high): Range, best: Option<Best>) -> bool {
        let Some(best) = best else { return false };
        let at = self.peak_of(tangent).min(high).max(low);
        let secs = tangent.secs + tangent.slope * (at - tangent.micro_batch);
        let batch = self.n_replicas * (tangent.accum_steps + 1.0) * at;
        secs > 0.0 && self.goodput(batch, secs) <= best.goodput * (1.0 + ROUNDING)
    }

    /// Puts the best whole micro-batch between `left` and `right` in place of `best`, if it is better. `known`
    /// is any tangent of as many accumulation steps; the result is the last one.
    fn climb(
        &self,
        accum_steps: u64,
        (mut left, mut right): Range,
        mut known: Tangent,
        best: &mut Option<Best>,
    ) -> Tangent {
        let mut steps = 0;
        while left <= right && !self.is_beaten(&known, (left, right), *best) {
            let at = if steps < TANGENT_STEPS { self.peak_of(&known) } else { f64::midpoint(left, right) };
            let at = at.round().min(right).max(left);
            known = self.tangent(at, accum_steps as f64);
            let batch = self.n_replicas * (known.accum_steps + 1.0) * at;
            let goodput = self.goodput(batch, known.secs);
            if best.is_none_or(|best| goodput > best.goodput) {
                *best = Some(Best { micro_batch: at, accum_steps, goodput });
            }
            // The others lie on the side of the peak.
            if self.peak_of(&known) >= at {
                left = at + 1.0;
            } else {
                right = at - 1.0;
            }
            steps += 1;
        }
        known
    }
}
