//! The exact best batch: argmax of goodput over whole micro-batches and accumulation steps.
//!
//! Three facts make it a handful of evaluations instead of a search (`T` is the time of a step, `φ` the noise
//! scale, `c = K (s + 1)`, so that the batch is `c m`):
//!
//! 1. For fixed `s`, `T` is convex in `m` and goodput has one peak, where `φ (T - m T') = c m² T'`. The left
//!    side falls with `m`, the right side rises. Where `T` is a straight line the solution is in closed form,
//!    so tangents converge in two or three steps.
//! 2. For a given number of samples per replica, fewer accumulation steps are never slower, as long as time
//!    per sample does not rise with the micro-batch (true of the linear form and the roofline). So more steps
//!    are worth a look only where the micro-batch is at its limit, and there `T` is linear in `s`.
//! 3. Hence, from the right `s` on, the peak over real `m` only falls as `s` grows: once it is below the best
//!    whole-number plan found, the search is over.

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

/// How far rounding may put the peak below a whole-number plan next to it.
const PEAK_TOLERANCE: f64 = 1e-6;

pub(crate) fn best_batch(model: &GoodputModel, placement: Placement) -> Option<BatchPlan> {
    let search = Search::new(model, placement);
    let limits = model.limits();
    if limits.is_fixed() {
        return search.split(limits.min());
    }
    if limits.accumulates_alone() && placement.n_replicas() == 1 {
        let accumulating = search.even(1);
        return [search.split(limits.min()), accumulating]
            .into_iter()
            .flatten()
            .max_by(|a, b| search.goodput_of(*a).total_cmp(&search.goodput_of(*b)));
    }
    search.even(0).or_else(|| search.split(limits.min()))
}

/// One placement's problem, in floating point.
struct Search<'a> {
    timing: Timing<'a>,
    table: Option<&'a [(u32, f64)]>,
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

impl<'a> Search<'a> {
    fn new(model: &'a GoodputModel, placement: Placement) -> Self {
        Self {
            timing: Timing::new(model.params(), placement),
            table: match &model.params().grad {
                Compute::Table(table) => Some(table.points()),
                _ => None,
            },
            limits: model.limits(),
            placement,
            n_replicas: f64::from(placement.n_replicas()),
            noise: model.noise().samples(),
        }
    }

    /// Goodput, up to the constant factor `φ + M₀`.
    fn goodput(&self, micro_batch: f64, accum_steps: f64) -> f64 {
        let batch = self.n_replicas * (accum_steps + 1.0) * micro_batch;
        let secs = self.timing.secs(micro_batch, accum_steps);
        if self.noise == f64::INFINITY { batch / secs } else { batch / (secs * (self.noise + batch)) }
    }

    fn goodput_of(&self, plan: BatchPlan) -> f64 {
        let secs = self.timing.secs(f64::from(plan.atomic_batch()), f64::from(plan.accum_steps()));
        let batch = plan.global().0 as f64;
        if self.noise == f64::INFINITY { batch / secs } else { batch / (secs * (self.noise + batch)) }
    }

    /// Exactly `batch` samples, with the accumulation that makes it fastest.
    fn split(&self, batch: GlobalBatch) -> Option<BatchPlan> {
        let share = batch.0.div_ceil(u64::from(self.placement.n_replicas()));
        let fewest = share.div_ceil(u64::from(self.limits.micro_max())) - 1;
        let mut best: Option<BatchPlan> = None;
        for accum_steps in fewest..fewest.saturating_add(SPLIT_ACCUM_STEPS) {
            let Some(plan) = BatchPlan::split(batch, self.placement, u32::try_from(accum_steps).ok()?) else {
                break;
            };
            if !self.limits.allows(self.placement, plan) {
                continue;
            }
            if best.is_none_or(|best| self.goodput_of(plan) > self.goodput_of(best)) {
                best = Some(plan);
            }
            // Fact 2, once no micro-batch is larger than another.
            if self.table.is_none()
                && Some(plan) == BatchPlan::even(self.placement, plan.atomic_batch(), plan.accum_steps())
            {
                break;
            }
        }
        best
    }

    /// The best plan with equal micro-batches and at least this many accumulation steps.
    fn even(&self, at_least: u64) -> Option<BatchPlan> {
        let n_replicas = u64::from(self.placement.n_replicas());
        let (micro_min, micro_max) = (u64::from(self.limits.micro_min()), u64::from(self.limits.micro_max()));
        let (min, max) = (self.limits.min().0, self.limits.max().0);
        let fewest = min.div_ceil(n_replicas * micro_max).saturating_sub(1).max(at_least);
        let most =
            (max / (n_replicas * micro_min)).checked_sub(1)?.min(u64::from(self.limits.max_accum_steps()));
        if fewest > most {
            return None;
        }
        let best = if self.table.is_some() {
            let last = most.min(fewest.saturating_add(TABLE_ACCUM_STEPS - 1));
            (fewest..=last).fold(None, |best, accum_steps| self.better_with(accum_steps, best).0)
        } else {
            self.starting_at_the_right_count(fewest, most)
        }?;
        // Both come from ranges of u32.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a whole micro-batch within u32 limits"
        )]
        BatchPlan::even(self.placement, best.micro_batch as u32, best.accum_steps as u32)
    }

    /// Facts 2 and 3: jump to the accumulation that is best at the largest micro-batch, go on from there.
    fn starting_at_the_right_count(&self, fewest: u64, most: u64) -> Option<Best> {
        let mut accum_steps = self.steps_at_micro_max().clamp(fewest, most);
        let mut best = None;
        loop {
            let (better, peak) = self.better_with(accum_steps, best);
            let overtaken = best.is_some_and(|best: Best| peak * (1.0 + PEAK_TOLERANCE) <= best.goodput);
            best = better;
            if overtaken || accum_steps == most {
                return best;
            }
            accum_steps += 1;
        }
    }

    /// The number of accumulation steps up to which adding one is sure to help, at the largest micro-batch.
    fn steps_at_micro_max(&self) -> u64 {
        let micro_max = f64::from(self.limits.micro_max());
        let grad = self.timing.grad_secs(micro_max);
        let once = (self.timing.secs(micro_max, 0.0) - grad).max(0.0);
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

    /// `best`, or a better plan with this many accumulation steps; and the peak over real micro-batches.
    fn better_with(&self, accum_steps: u64, best: Option<Best>) -> (Option<Best>, f64) {
        let steps = accum_steps as f64;
        let per_sample = self.n_replicas * (steps + 1.0);
        let low = (self.limits.min().0 as f64 / per_sample).max(f64::from(self.limits.micro_min()));
        let high = (self.limits.max().0 as f64 / per_sample).min(f64::from(self.limits.micro_max()));
        let mut result = (best, 0.0_f64);
        if low > high {
            return result;
        }
        let mut consider = |from: f64, to: f64| {
            let peak = self.peak(from, to, steps);
            result.1 = result.1.max(self.goodput(peak, steps));
            if let Some((micro_batch, goodput)) = self.best_whole_near(peak, from, to, steps)
                && result.0.is_none_or(|best| goodput > best.goodput)
            {
                result.0 = Some(Best { micro_batch, accum_steps, goodput });
            }
        };
        let Some(points) = self.table else {
            consider(low, high);
            return result;
        };
        // Between two points of a table time is a straight line: each piece has its own single peak.
        let mut from = low;
        for knot in points.iter().map(|&(at, _)| f64::from(at)).filter(|&at| low < at && at < high) {
            consider(from, knot);
            from = knot;
        }
        consider(from, high);
        result
    }

    /// The real micro-batch of highest goodput between `low` and `high`.
    fn peak(&self, mut low: f64, mut high: f64, accum_steps: f64) -> f64 {
        // Where the peak would lie if time went on along the tangent, less where we are: positive left of
        // the peak and negative right of it.
        let shift = |micro_batch: f64| {
            let (secs, slope) = self.timing.secs_and_slope(micro_batch, accum_steps);
            let intercept = (secs - slope * micro_batch).max(0.0);
            let tangent_peak =
                (self.noise * intercept / (self.n_replicas * (accum_steps + 1.0) * slope)).sqrt();
            if tangent_peak.is_nan() { f64::INFINITY } else { tangent_peak - micro_batch }
        };
        let mut at_high = shift(high);
        if at_high >= 0.0 {
            return high;
        }
        let mut at_low = f64::NAN;
        let mut guess = high + at_high;
        for _ in 0..64 {
            if guess <= low {
                if at_low.is_nan() {
                    at_low = shift(low);
                    if at_low <= 0.0 {
                        return low;
                    }
                }
                guess = f64::midpoint(low, high);
            } else if guess >= high || guess.is_nan() {
                guess = f64::midpoint(low, high);
            }
            let at_guess = shift(guess);
            if at_guess.abs() <= (1e-4 * guess).min(0.25) {
                return (guess + at_guess).clamp(low, high);
            }
            if at_guess > 0.0 {
                (low, at_low) = (guess, at_guess);
            } else {
                (high, at_high) = (guess, at_guess);
            }
            guess = if at_low.is_nan() {
                guess + at_guess
            } else {
                low + (high - low) * (at_low / (at_low - at_high))
            };
        }
        f64::midpoint(low, high)
    }

    /// The best whole micro-batch between `low` and `high`, climbing from the one next to `peak`.
    fn best_whole_near(&self, peak: f64, low: f64, high: f64, accum_steps: f64) -> Option<(f64, f64)> {
        let (low, high) = (low.ceil(), high.floor());
        if low > high {
            return None;
        }
        let mut at = peak.floor().clamp(low, high);
        let mut goodput = self.goodput(at, accum_steps);
        for direction in [1.0, -1.0] {
            loop {
                let next = at + direction;
                if next < low || next > high {
                    break;
                }
                let next_goodput = self.goodput(next, accum_steps);
                if next_goodput > goodput {
                    (at, goodput) = (next, next_goodput);
                } else {
                    break;
                }
            }
        }
        Some((at, goodput))
    }
}
