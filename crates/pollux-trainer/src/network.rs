//! The model: softmax regression, or a network with one hidden layer.

use pollux_model::Random;

use crate::digits::{CLASSES, Example, INPUTS};

/// The stream of chance that first weights come from; passes over the data use the ones from 0.
const WEIGHTS_STREAM: u64 = u64::MAX;

/// The shape of the model. Its weights are kept apart, as one list.
///
/// With `h` hidden units (rectified) these are `h` rows of 65, then 10 rows of `h + 1`; without, 10 rows of 65. The last of
/// each row is the bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Hidden units; 0 for softmax regression.
    pub hidden: usize,
}

/// Values on the way through the network, kept between examples so that nothing is allocated for each.
struct Scratch {
    hidden: Vec<f64>,
    backward: Vec<f64>,
}

impl Network {
    /// How many weights it has.
    pub fn n_weights(self) -> usize {
        if self.hidden == 0 { CLASSES * INPUTS } else { self.hidden * INPUTS + CLASSES * (self.hidden + 1) }
    }

    /// The weights training begins with: zero for softmax regression, else normal with deviation `1 / √inputs`.
    pub fn first_weights(self, seed: u64) -> Vec<f64> {
        let mut weights = vec![0.0; self.n_weights()];
        if self.hidden > 0 {
            let mut random = Random::stream(seed, WEIGHTS_STREAM);
            let (first, second) = weights.split_at_mut(self.hidden * INPUTS);
            first.fill_with(|| random.normal() / libm::sqrt(INPUTS as f64));
            second.fill_with(|| random.normal() / libm::sqrt(self.hidden as f64 + 1.0));
        }
        weights
    }

    /// Adds the gradient of each example's loss to `sum`, and gives the sum of the losses (cross-entropy).
    pub fn add_gradients<'a>(
        self,
        weights: &[f64],
        examples: impl IntoIterator<Item = &'a Example>,
        sum: &mut [f64],
    ) -> f64 {
        let mut scratch = self.scratch();
        let mut loss = 0.0;
        for example in examples {
            let mut errors = self.probabilities(weights, example, &mut scratch);
            loss -= libm::log(errors[example.label].max(1e-300));
            errors[example.label] -= 1.0;
            if self.hidden == 0 {
                add_outer(sum, &errors, &example.inputs);
                continue;
            }
            let (first, second) = sum.split_at_mut(self.hidden * INPUTS);
            add_outer(second, &errors, &scratch.hidden);
            scratch.backward.fill(0.0);
            let rows = weights[self.hidden * INPUTS..].chunks_exact(self.hidden + 1);
            for (error, row) in errors.iter().zip(rows) {
                for (backward, weight) in scratch.backward.iter_mut().zip(row) {
                    *backward += error * weight;
                }
            }
            for (backward, hidden) in scratch.backward.iter_mut().zip(&scratch.hidden) {
                if *hidden <= 0.0 {
                    *backward = 0.0;
                }
            }
            add_outer(first, &scratch.backward, &example.inputs);
        }
        loss
    }

    /// The share of examples whose digit gets the largest probability.
    pub fn accuracy(self, weights: &[f64], examples: &[Example]) -> f64 {
        let mut scratch = self.scratch();
        let right = examples.iter().filter(|example| {
            let probabilities = self.probabilities(weights, example, &mut scratch);
            let own = probabilities[example.label];
            probabilities.iter().enumerate().all(|(label, other)| label == example.label || *other < own)
        });
        right.count() as f64 / examples.len().max(1) as f64
    }

    fn scratch(self) -> Scratch {
        // The last hidden value stays 1: the input of the second layer's bias.
        Scratch { hidden: vec![1.0; self.hidden + 1], backward: vec![0.0; self.hidden] }
    }

    fn probabilities(self, weights: &[f64], example: &Example, scratch: &mut Scratch) -> [f64; CLASSES] {
        if self.hidden == 0 {
            return softmax(scores(weights, &example.inputs));
        }
        let (first, second) = weights.split_at(self.hidden * INPUTS);
        for (hidden, row) in scratch.hidden.iter_mut().zip(first.chunks_exact(INPUTS)) {
            *hidden = dot(row, &example.inputs).max(0.0);
        }
        softmax(scores(second, &scratch.hidden))
    }
}

fn scores(weights: &[f64], inputs: &[f64]) -> [f64; CLASSES] {
    let mut scores = [0.0; CLASSES];
    for (score, row) in scores.iter_mut().zip(weights.chunks_exact(inputs.len())) {
        *score = dot(row, inputs);
    }
    scores
}

fn softmax(scores: [f64; CLASSES]) -> [f64; CLASSES] {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let powers = scores.map(|score| libm::exp(score - largest));
    let total: f64 = powers.iter().sum();
    powers.map(|power| power / total)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds `rows ⊗ columns` to a matrix stored by rows.
fn add_outer(sum: &mut [f64], rows: &[f64], columns: &[f64]) {
    for (row, line) in rows.iter().zip(sum.chunks_exact_mut(columns.len())) {
        for (sum, column) in line.iter_mut().zip(columns) {
            *sum += row * column;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digits::Digits;

    /// Each gradient against the difference of losses a little to both sides.
    fn check_gradient(hidden: usize) {
        let network = Network { hidden };
        let digits = Digits::load();
        let examples = &digits.training[..5];
        let weights = Network { hidden }.first_weights(3);
        let loss =
            |weights: &[f64]| network.add_gradients(weights, examples, &mut vec![0.0; network.n_weights()]);
        let mut gradient = vec![0.0; network.n_weights()];
        network.add_gradients(&weights, examples, &mut gradient);
        for index in (0..network.n_weights()).step_by(7) {
            let moved = |by: f64| {
                let mut weights = weights.clone();
                weights[index] += by;
                loss(&weights)
            };
            let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((difference - gradient[index]).abs() < 1e-6, "{index}: {difference} {}", gradient[index]);
        }
    }

    #[test]
    fn gradients_are_those_of_the_loss() {
        check_gradient(0);
        check_gradient(7);
    }

    #[test] // Nothing learned: each of ten digits has a tenth, and no digit is the largest.
    fn without_weights_nothing_is_known() {
        let network = Network { hidden: 0 };
        let digits = Digits::load();
        let weights = network.first_weights(1);
        let loss = network.add_gradients(&weights, &digits.training[..1], &mut vec![0.0; 650]);
        assert!((loss - libm::log(10.0)).abs() < 1e-12);
        assert!(network.accuracy(&weights, &digits.held_out).abs() < 1e-12);
    }
}
