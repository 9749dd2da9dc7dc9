//! How long the forward and backward pass of one micro-batch takes.

use crate::math::Norm;

/// Seconds of one forward and backward pass, by micro-batch: a closed set of forms, since it travels
/// between processes and into stored files. The data choose the form; see [`crate::fit`].
#[derive(Clone, Debug, PartialEq)]
pub enum Compute {
    /// `α + β m`: the paper's form, right for GPUs of its time.
    Linear {
        /// Seconds that do not depend on the micro-batch.
        alpha: f64,
        /// Seconds per sample.
        beta: f64,
    },
    /// `(α^δ + (β m)^δ)^(1/δ)`: flat while kernel launches dominate, then linear. Newer GPUs need it: on an
    /// H200 the linear form errs by 10 to 18 % on most models, this one by 2 to 6 %.
    Roofline {
        /// Seconds of the flat part.
        alpha: f64,
        /// Seconds per sample of the linear part.
        beta: f64,
        /// How sharp the bend is: 1 is the linear form, 10 close to the larger of the two.
        delta: f64,
    },
    /// Measured points, for what no formula describes (other parallelism, other hardware).
    Table(StepTable),
}

/// Bounds of the exponents `δ` and `γ`.
pub(crate) const EXPONENT_RANGE: (f64, f64) = (1.0, 10.0);

impl Compute {
    /// The form's name as it stands in stored files.
    pub fn form(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::Roofline { .. } => "roofline",
            Self::Table(_) => "table",
        }
    }

    /// Seconds for a micro-batch of this many samples.
    pub fn secs(&self, micro_batch: f64) -> f64 {
        self.secs_and_slope(micro_batch).0
    }

    /// All times multiplied by `factor`; as it is where that gives no times.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        match self {
            Self::Linear { alpha, beta } => Self::Linear { alpha: alpha * factor, beta: beta * factor },
            Self::Roofline { alpha, beta, delta } => {
                Self::Roofline { alpha: alpha * factor, beta: beta * factor, delta: *delta }
            }
            Self::Table(table) => {
                let points = table.points().iter().map(|&(at, secs)| (at, secs * factor));
                Self::Table(StepTable::new(points).unwrap_or_else(|_| table.clone()))
            }
        }
    }

    /// Seconds, and how fast they grow with the micro-batch.
    pub(crate) fn secs_and_slope(&self, micro_batch: f64) -> (f64, f64) {
        match self {
            Self::Linear { alpha, beta } => (alpha + beta * micro_batch, *beta),
            Self::Roofline { alpha, beta, delta } => {
                let norm = Norm::of(beta * micro_batch, *alpha, *delta);
                (norm.value, norm.share * norm.value / micro_batch)
            }
            Self::Table(table) => table.secs_and_slope(micro_batch),
        }
    }

    /// Most samples per second that any micro-batch up to `micro_max` reaches.
    pub(crate) fn best_rate(&self, micro_max: u32) -> f64 {
        let rate = |micro_batch: u32| f64::from(micro_batch) / self.secs(f64::from(micro_batch));
        let points = match self {
            // More samples spread the constant part thinner.
            Self::Linear { .. } | Self::Roofline { .. } => &[],
            // Between two points the rate is monotone, and it does not grow beyond the last.
            Self::Table(table) => table.points(),
        };
        let within = points.iter().map(|&(at, _)| at).filter(|&at| at <= micro_max);
        within.chain([micro_max]).map(rate).fold(0.0, f64::max)
    }

    /// Whether this describes a time: all parts finite and not negative, and not all zero.
    pub fn is_valid(&self) -> bool {
        let (low, high) = EXPONENT_RANGE;
        match self {
            Self::Linear { alpha, beta } => valid_pair(*alpha, *beta),
            Self::Roofline { alpha, beta, delta } => {
                valid_pair(*alpha, *beta) && (low..=high).contains(delta)
            }
            Self::Table(_) => true,
        }
    }
}

fn valid_pair(alpha: f64, beta: f64) -> bool {
    alpha >= 0.0 && beta >= 0.0 && alpha + beta > 0.0 && (alpha + beta).is_finite()
}

/// Measured seconds by micro-batch, joined by straight lines.
///
/// Below the first point time stays flat; beyond the last it grows in proportion, so that a table never
/// promises more samples per second than were measured.
///
/// ```
/// use pollux_model::StepTable;
///
/// let table = StepTable::new([(8, 0.010), (16, 0.012), (32, 0.020)]).unwrap();
/// assert_eq!(table.secs(4.0), 0.010);
/// assert_eq!(table.secs(24.0), 0.016);
/// assert_eq!(table.secs(64.0), 0.040);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StepTable(Vec<(u32, f64)>);

impl StepTable {
    /// From points with ascending, distinct micro-batches and positive times.
    pub fn new(points: impl IntoIterator<Item = (u32, f64)>) -> Result<Self, InvalidTable> {
        let points: Vec<_> = points.into_iter().collect();
        if points.is_empty() {
            return Err(InvalidTable::Empty);
        }
        for (index, &(micro_batch, secs)) in points.iter().enumerate() {
            if micro_batch == 0 || (index > 0 && micro_batch <= points[index - 1].0) {
                return Err(InvalidTable::NotAscending { micro_batch });
            }
            if !(secs > 0.0 && secs.is_finite()) {
                return Err(InvalidTable::NotATime { micro_batch, secs });
            }
        }
        Ok(Self(points))
    }

    /// The points.
    pub fn points(&self) -> &[(u32, f64)] {
        &self.0
    }

    /// Seconds for a micro-batch of this many samples.
    pub fn secs(&self, micro_batch: f64) -> f64 {
        self.secs_and_slope(micro_batch).0
    }

    fn secs_and_slope(&self, micro_batch: f64) -> (f64, f64) {
        let after = self.0.partition_point(|&(at, _)| f64::from(at) < micro_batch);
        let Some(&(right, right_secs)) = self.0.get(after) else {
            let (last, last_secs) = self.0[self.0.len() - 1];
            let slope = last_secs / f64::from(last);
            return (slope * micro_batch, slope);
        };
        let Some(&(left, left_secs)) = after.checked_sub(1).and_then(|before| self.0.get(before)) else {
            return (right_secs, 0.0);
        };
        let width = f64::from(right) - f64::from(left);
        let along = (micro_batch - f64::from(left)) / width;
        (left_secs * (1.0 - along) + right_secs * along, (right_secs - left_secs) / width)
    }
}

/// Points that make no table.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum InvalidTable {
    /// There is nothing to read off it.
    #[error("the table has no points")]
    Empty,
    /// Micro-batches must be ascending and at least 1.
    #[error("micro-batch {micro_batch} is zero, or not larger than the one before it")]
    NotAscending {
        /// The one out of order.
        micro_batch: u32,
    },
    /// A time that is none.
    #[error("{secs} is not a time in seconds (micro-batch {micro_batch})")]
    NotATime {
        /// Where it stands.
        micro_batch: u32,
        /// What stands there.
        secs: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_slope(compute: &Compute, micro_batch: f64) {
        let step = micro_batch * 1e-6;
        let difference = (compute.secs(micro_batch + step) - compute.secs(micro_batch - step)) / (2.0 * step);
        let (_, slope) = compute.secs_and_slope(micro_batch);
        assert!((slope - difference).abs() <= 1e-6 * slope.abs().max(1e-9), "{compute:?} at {micro_batch}");
    }

    #[test]
    fn slopes_match_finite_differences() {
        let table = StepTable::new([(8, 0.010), (16, 0.012), (32, 0.020)]).unwrap();
        for compute in [
            Compute::Linear { alpha: 0.02, beta: 0.001 },
            Compute::Roofline { alpha: 0.02, beta: 0.001, delta: 3.0 },
            Compute::Roofline { alpha: 0.0, beta: 0.001, delta: 1.0 },
            Compute::Table(table),
        ] {
            for micro_batch in [3.0, 11.0, 20.5, 25.0, 200.0] {
                check_slope(&compute, micro_batch);
            }
        }
    }

    #[test]
    fn a_roofline_of_one_is_the_linear_form() {
        let roofline = Compute::Roofline { alpha: 0.02, beta: 0.001, delta: 1.0 };
        assert!((roofline.secs(30.0) - 0.05).abs() < 1e-15);
    }

    #[test]
    fn bad_tables_say_what_is_wrong() {
        assert_eq!(StepTable::new([]).unwrap_err(), InvalidTable::Empty);
        assert!(StepTable::new([(4, 0.1), (4, 0.2)]).is_err());
        assert!(StepTable::new([(0, 0.1)]).is_err());
        assert!(StepTable::new([(4, f64::NAN)]).is_err());
        assert!(StepTable::new([(4, -1.0)]).is_err());
    }
}
