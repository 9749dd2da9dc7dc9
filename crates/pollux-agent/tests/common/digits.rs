//! Softmax regression on handwritten digits: a small real problem whose noise scale can be computed exactly.

use super::Dice;

const PIXELS: usize = 64;
const INPUTS: usize = PIXELS + 1;
const CLASSES: usize = 10;
pub const WEIGHTS: usize = INPUTS * CLASSES;

pub type Gradient = Vec<f64>;

pub struct Digits {
    images: Vec<[f64; INPUTS]>,
    labels: Vec<usize>,
}

/// `|g|²` and `tr(Σ)` over the whole data set: the truth the estimators are judged by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact {
    pub sqr: f64,
    pub trace: f64,
}

impl Digits {
    pub fn load() -> Self {
        let data = smartcore::dataset::digits::load_dataset();
        let images = data.data.chunks(PIXELS).map(|pixels| {
            let mut image = [1.0; INPUTS];
            for (input, pixel) in image.iter_mut().zip(pixels) {
                *input = f64::from(*pixel) / 16.0;
            }
            image
        });
        let labels = data.target.iter().map(|&label| label as usize).collect();
        Self { images: images.collect(), labels }
    }

    pub fn len(&self) -> usize {
        self.images.len()
    }

    /// Error of the predicted probabilities of one example: the gradient is its outer product with the image.
    fn errors(&self, weights: &[f64], example: usize) -> [f64; CLASSES] {
        let image = &self.images[example];
        let mut scores = [0.0; CLASSES];
        for (score, row) in scores.iter_mut().zip(weights.chunks(INPUTS)) {
            *score = row.iter().zip(image).map(|(weight, input)| weight * input).sum();
        }
        let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut errors = scores.map(|score| libm::exp(score - largest));
        let total: f64 = errors.iter().sum();
        for error in &mut errors {
            *error /= total;
        }
        errors[self.labels[example]] -= 1.0;
        errors
    }

    /// Mean cross-entropy over all examples.
    pub fn loss(&self, weights: &[f64]) -> f64 {
        let probability = |example: usize| self.errors(weights, example)[self.labels[example]] + 1.0;
        (0..self.len()).map(|example| -libm::log(probability(example).max(1e-300))).sum::<f64>()
            / self.len() as f64
    }

    /// Mean gradient over some examples.
    pub fn gradient(&self, weights: &[f64], examples: &[usize]) -> Gradient {
        let mut gradient = vec![0.0; WEIGHTS];
        for &example in examples {
            let errors = self.errors(weights, example).map(|error| error / examples.len() as f64);
            for (error, row) in errors.iter().zip(gradient.chunks_mut(INPUTS)) {
                for (sum, input) in row.iter_mut().zip(&self.images[example]) {
                    *sum += error * input;
                }
            }
        }
        gradient
    }

    /// Signal and noise in the space of `scale` (the diagonal of the preconditioner).
    pub fn exact(&self, weights: &[f64], scale: &[f64]) -> Exact {
        let everything: Vec<usize> = (0..self.len()).collect();
        let mean = self.gradient(weights, &everything);
        let sqr = sqr_norm(&mean, scale);
        let mut second_moment = 0.0;
        for example in everything {
            let errors = self.errors(weights, example);
            for (class, error) in errors.iter().enumerate() {
                for (input, pixel) in self.images[example].iter().enumerate() {
                    let value = error * pixel * scale[class * INPUTS + input];
                    second_moment += value * value;
                }
            }
        }
        Exact { sqr, trace: second_moment / self.len() as f64 - sqr }
    }

    /// Examples drawn with replacement.
    pub fn draw(&self, dice: &mut Dice, count: usize) -> Vec<usize> {
        (0..count).map(|_| dice.whole(0, self.len() as u64 - 1) as usize).collect()
    }
}

/// Squared norm of a gradient times the preconditioner.
pub fn sqr_norm(gradient: &[f64], scale: &[f64]) -> f64 {
    gradient.iter().zip(scale).map(|(value, scale)| (value * scale) * (value * scale)).sum()
}

pub fn dot(a: &[f64], b: &[f64], scale: &[f64]) -> f64 {
    a.iter().zip(b).zip(scale).map(|((a, b), scale)| a * b * scale * scale).sum()
}

pub fn mean_of(gradients: &[Gradient]) -> Gradient {
    let mut mean = vec![0.0; WEIGHTS];
    for gradient in gradients {
        for (sum, value) in mean.iter_mut().zip(gradient) {
            *sum += value / gradients.len() as f64;
        }
    }
    mean
}
