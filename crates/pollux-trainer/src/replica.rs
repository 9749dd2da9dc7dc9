//! One replica: its copy of the model, its share of each step.

use std::time::Instant;

use pollux_model::{BatchPlan, Placement};

use crate::digits::Digits;
use crate::exchange::{Moments, Part};
use crate::network::Network;
use crate::pace::{PassSecs, hold_until};
use crate::sampler::{Sampler, micro_batch};

/// What every replica has and does alike, whatever its rank.
#[derive(Debug)]
pub struct Replica {
    rank: u32,
    placement: Placement,
    network: Network,
    digits: Digits,
    sampler: Sampler,
    momentum: f64,
    /// The model's weights.
    pub weights: Vec<f64>,
    /// The optimizer's running direction.
    pub direction: Vec<f64>,
}

/// When the passes of a step were computed.
#[derive(Clone, Copy, Debug)]
pub struct PassTimes {
    /// Mean seconds of the passes that only accumulate.
    pub accum_secs: Option<f64>,
    /// When the last pass began.
    pub last_began: Instant,
    /// When it was computed.
    pub last_computed: Instant,
}

impl Replica {
    /// A replica with the model's first weights.
    pub fn new(rank: u32, placement: Placement, network: Network, momentum: f64, seed: u64) -> Self {
        let digits = Digits::load();
        Self {
            rank,
            placement,
            network,
            sampler: Sampler::new(digits.training.len(), seed),
            digits,
            momentum,
            weights: network.first_weights(seed),
            direction: vec![0.0; network.n_weights()],
        }
    }

    /// Computes this replica's share of a step that began just now, each pass stretched to the given time.
    pub fn compute(&mut self, plan: BatchPlan, position: u64, pace: PassSecs) -> (Part, PassTimes) {
        let mut part = Part { gradient: vec![0.0; self.weights.len()], ..Part::default() };
        let began = Instant::now();
        let mut pass_began = began;
        for pass in 0..=plan.accum_steps() {
            pass_began = if pass == 0 { began } else { Instant::now() };
            self.compute_pass(plan, position, pass, &mut part);
            hold_until(pass_began, pace.compute);
        }
        let accum_steps = plan.accum_steps();
        let accum_secs =
            (accum_steps > 0).then(|| (pass_began - began).as_secs_f64() / f64::from(accum_steps));
        (part, PassTimes { accum_secs, last_began: pass_began, last_computed: Instant::now() })
    }

    fn compute_pass(&mut self, plan: BatchPlan, position: u64, pass: u32, part: &mut Part) {
        let positions = micro_batch(plan, self.placement, position, self.rank, pass);
        // One gradient alone tells no noise from signal: then it is computed in two halves.
        let alone = self.placement.n_replicas() == 1 && plan.accum_steps() == 0;
        let middle = if alone { positions.start.midpoint(positions.end) } else { positions.start };
        for positions in [positions.start..middle, middle..positions.end] {
            if positions.is_empty() {
                continue;
            }
            let samples = (positions.end - positions.start) as f64;
            let examples = self.sampler.examples(positions);
            let examples = examples.iter().map(|&example| &self.digits.training[example]);
            let mut gradient = vec![0.0; self.weights.len()];
            part.loss += self.network.add_gradients(&self.weights, examples, &mut gradient);
            let sqr_sum: f64 = gradient.iter().map(|value| value * value).sum();
            part.moments.add(Moments {
                count: 1,
                sqr_norm: sqr_sum / (samples * samples),
                inverse_batch: 1.0 / samples,
            });
            for (sum, value) in part.gradient.iter_mut().zip(&gradient) {
                *sum += value;
            }
        }
    }

    /// The optimizer's step (SGD with momentum) along a mean gradient.
    pub fn apply(&mut self, rate: f64, gradient: &[f64]) {
        for ((weight, direction), value) in self.weights.iter_mut().zip(&mut self.direction).zip(gradient) {
            *direction = self.momentum * *direction + value;
            *weight -= rate * *direction;
        }
    }

    /// The share of the images kept out that are told right.
    pub fn accuracy(&self) -> f64 {
        self.network.accuracy(&self.weights, &self.digits.held_out)
    }
}

#[cfg(test)]
mod tests {
    use pollux_model::GlobalBatch;

    use super::*;

    /// The sum over replicas of one step's parts.
    fn step(n_replicas: u32, batch: u64, accum_steps: u32) -> Part {
        let placement = Placement::new(1, n_replicas).unwrap();
        let plan = BatchPlan::split(GlobalBatch(batch), placement, accum_steps).unwrap();
        let mut sum = Part { gradient: vec![0.0; 650], ..Part::default() };
        for rank in 0..n_replicas {
            let mut replica = Replica::new(rank, placement, Network { hidden: 0 }, 0.9, 1);
            let (part, _) = replica.compute(plan, 1_490, PassSecs::default());
            sum.loss += part.loss;
            sum.moments.add(part.moments);
            sum.gradient.iter_mut().zip(&part.gradient).for_each(|(sum, value)| *sum += value);
        }
        sum
    }

    fn check_same(n_replicas: u32, accum_steps: u32, count: u64, inverse_batch: f64) {
        let (one, other) = (step(1, 24, 0), step(n_replicas, 24, accum_steps));
        let off = one.gradient.iter().zip(&other.gradient).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(off < 1e-12, "{n_replicas} replicas, {accum_steps} accumulating: off by {off}");
        assert!((one.loss - other.loss).abs() < 1e-12);
        assert_eq!(other.moments.count, count);
        assert!((other.moments.inverse_batch - inverse_batch).abs() < 1e-12);
    }

    #[test] // 24 samples: two halves of 12, three parts of 8, four of 6; across the end of a pass over the data.
    fn a_step_is_the_same_however_it_is_dealt() {
        check_same(1, 0, 2, 2.0 / 12.0);
        check_same(3, 0, 3, 3.0 / 8.0);
        check_same(1, 2, 3, 3.0 / 8.0);
        check_same(2, 1, 4, 4.0 / 6.0);
    }

    #[test] // Gradient 1 twice, rate 0.1, momentum 0.9: -0.1, then -0.1 - 0.19.
    fn momentum_adds_up() {
        let mut replica = Replica::new(0, Placement::ALONE, Network { hidden: 0 }, 0.9, 1);
        replica.apply(0.1, &[1.0]);
        replica.apply(0.1, &[1.0]);
        assert!((replica.weights[0] + 0.29).abs() < 1e-12);
    }
}
