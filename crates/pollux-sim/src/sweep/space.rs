//! What is searched: hyper-parameters and their ranges.

/// A choice of hyper-parameters: for each dimension of a space a number from 0, its low end, to 1, its high end.
pub type Point = Vec<f64>;

/// One hyper-parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dimension {
    /// Its name.
    pub name: &'static str,
    /// The least it can be; above 0 on a logarithmic scale.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// How values lie between the two.
    pub scale: Scale,
}

/// How values lie between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps add equal amounts.
    Linear,
    /// Equal steps multiply by equal factors.
    Log,
}

/// What is usually tuned of a network trained by SGD with momentum.
///
/// The Pollux paper tunes ResNet18 on CIFAR-10. Parameters that change the time of a step, such as depth and width,
/// are left out: a trial trains as the profile of its application says.
pub const SPACE: [Dimension; 4] = [
    Dimension { name: "learning_rate", low: 1e-3, high: 1.0, scale: Scale::Log },
    Dimension { name: "momentum", low: 0.5, high: 0.99, scale: Scale::Linear },
    Dimension { name: "weight_decay", low: 1e-6, high: 1e-2, scale: Scale::Log },
    Dimension { name: "annealing", low: 0.05, high: 0.5, scale: Scale::Linear },
];

impl Dimension {
    /// The value at a place from 0 to 1: `low + (high - low) * unit`, or `low * (high / low)^unit`.
    ///
    /// ```
    /// use pollux_sim::sweep::{Dimension, Scale};
    ///
    /// let rate = Dimension { name: "rate", low: 0.01, high: 1.0, scale: Scale::Log };
    /// assert!((rate.value(0.5) - 0.1).abs() < 1e-12);
    /// ```
    pub fn value(&self, unit: f64) -> f64 {
        let Self { low, high, scale, .. } = *self;
        match scale {
            Scale::Linear => low + (high - low) * unit,
            Scale::Log => low * libm::pow(high / low, unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, unit: f64, expected: f64) {
        let dimension = SPACE.iter().find(|dimension| dimension.name == name).unwrap();
        let value = dimension.value(unit);
        assert!((value - expected).abs() < 1e-9 * expected, "{name} at {unit}: {value}");
    }

    #[test]
    fn values_lie_between_the_ends() {
        check("learning_rate", 0.0, 0.001);
        check("learning_rate", 1.0, 1.0);
        check("weight_decay", 0.5, 1e-4);
        check("momentum", 0.0, 0.5);
        check("annealing", 0.5, 0.275);
    }
}
