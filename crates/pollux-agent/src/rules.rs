//! Learning-rate rules: what a batch other than the initial one does to the learning rate.

use std::fmt;
use std::sync::Arc;

/// What a rule may look at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuleInput {
    /// Batch over initial batch, `r`.
    pub scale: f64,
    /// Steps at the initial batch that one step is worth; between 1 and `r`.
    pub gain: f64,
    /// The noise scale, in samples, where known.
    pub noise_scale: Option<f64>,
    /// Work done, in steps at the initial batch size.
    pub progress: f64,
    /// Samples processed.
    pub samples: f64,
}

/// A rule of the user's own.
pub trait CustomRule: Send + Sync {
    /// What the learning rate is multiplied by. What is not positive and finite is ignored.
    fn factor(&self, input: &RuleInput) -> f64;
}

/// How the learning rate follows the batch. The user tuned it for the initial batch, where the factor is 1.
#[derive(Clone, Default)]
pub enum LearningRateRule {
    /// `gain`: `AdaScale` (Johnson et al. 2020), for SGD.
    #[default]
    AdaScale,
    /// `√gain`: `AdaScale` for the Adam family.
    AdamScale,
    /// `√r`: square root, for the Adam family.
    SquareRoot,
    /// `r`: linear.
    Linear,
    /// `√r`, reached by a linear warm-up whose length grows with `r`: LEGW (You et al. 2019).
    Legw {
        /// Warm-up at the initial batch, in epochs.
        base_warmup_epochs: f64,
        /// Samples of one epoch.
        epoch_samples: f64,
    },
    /// 1: the user's learning rate, whatever the batch.
    None,
    /// The user's own.
    Custom(Arc<dyn CustomRule>),
}

impl LearningRateRule {
    /// Its name in settings and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AdaScale => "adascale",
            Self::AdamScale => "adamscale",
            Self::SquareRoot => "sqrt",
            Self::Linear => "linear",
            Self::Legw { .. } => "legw",
            Self::None => "none",
            Self::Custom(_) => "custom",
        }
    }

    /// The factor for this input; nothing if the rule gave no usable number.
    ///
    /// ```
    /// use pollux_agent::{LearningRateRule, RuleInput};
    ///
    /// let input = RuleInput { scale: 16.0, gain: 4.0, noise_scale: None, progress: 0.0, samples: 0.0 };
    /// assert_eq!(LearningRateRule::AdaScale.factor(&input), Some(4.0));
    /// assert_eq!(LearningRateRule::AdamScale.factor(&input), Some(2.0));
    /// assert_eq!(LearningRateRule::SquareRoot.factor(&input), Some(4.0));
    /// assert_eq!(LearningRateRule::Linear.factor(&input), Some(16.0));
    /// ```
    pub fn factor(&self, input: &RuleInput) -> Option<f64> {
        let factor = match self {
            Self::AdaScale => input.gain,
            Self::AdamScale => input.gain.sqrt(),
            Self::SquareRoot => input.scale.sqrt(),
            Self::Linear => input.scale,
            Self::Legw { base_warmup_epochs, epoch_samples } => {
                let warm_up = base_warmup_epochs * epoch_samples * input.scale;
                let done = if warm_up > 0.0 { (input.samples / warm_up).clamp(0.0, 1.0) } else { 1.0 };
                // The very first step needs some rate.
                input.scale.sqrt() * done.max(1e-3)
            }
            Self::None => 1.0,
            Self::Custom(rule) => rule.factor(input),
        };
        (factor > 0.0 && factor.is_finite()).then_some(factor)
    }

    /// Whether each step's factor depends on the work done before it, so that steps cannot be taken together. LEGW's
    /// does too, but the last step's is all that remains of it.
    pub(crate) fn sees_progress(&self) -> bool {
        matches!(self, Self::Custom(_))
    }

    /// Whether the factor is meant to rise from near zero, so that a warm-up of ours would double it.
    pub(crate) fn warms_up_itself(&self) -> bool {
        matches!(self, Self::Legw { .. })
    }
}

impl fmt::Debug for LearningRateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(scale: f64, samples: f64) -> RuleInput {
        RuleInput { scale, gain: 1.0 + scale / 2.0, noise_scale: None, progress: 0.0, samples }
    }

    #[test]
    fn legw_warms_up_longer_for_larger_batches() {
        let rule = LearningRateRule::Legw { base_warmup_epochs: 2.0, epoch_samples: 100.0 };
        assert_eq!(rule.factor(&input(4.0, 400.0)), Some(1.0), "half of 8 epochs are done");
        assert_eq!(rule.factor(&input(4.0, 800.0)), Some(2.0));
        assert_eq!(rule.factor(&input(1.0, 200.0)), Some(1.0));
    }

    #[test]
    fn an_unusable_custom_factor_is_no_factor() {
        struct Broken;
        impl CustomRule for Broken {
            fn factor(&self, _: &RuleInput) -> f64 {
                f64::NAN
            }
        }
        assert_eq!(LearningRateRule::Custom(Arc::new(Broken)).factor(&input(2.0, 0.0)), None);
    }
}
