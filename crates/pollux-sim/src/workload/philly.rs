//! Figures of Microsoft's Philly cluster, from which the paper's workloads are drawn.
//!
//! Source: the Philly traces (msr-fiddle/philly-traces, CC BY 4.0), as the OSDI'21 artifact ships them in
//! `simulator/traces/philly.csv`. As there, jobs of less than a minute and of 1000 GPU-hours or more do not count.
//! `tests/philly.rs` counts again.

/// Jobs submitted in each hour of the day, from 2 o'clock on; days folded into one.
///
/// The paper takes the first 8 hours.
pub const HOURLY_JOBS: [u32; 24] = [
    3_550, 3_368, 2_240, 3_728, 5_169, 6_585, 3_499, 3_154, // 2 to 10 o'clock
    2_933, 2_603, 2_061, 2_185, 2_058, 2_098, 2_890, 2_101, // 10 to 18 o'clock
    2_534, 2_202, 2_968, 2_637, 3_551, 3_024, 4_086, 3_204, // 18 to 2 o'clock
];

/// How large a job is, by the GPU-hours it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Less than 1 GPU-hour.
    Small,
    /// From 1 to 10 GPU-hours.
    Medium,
    /// From 10 to 100 GPU-hours.
    Large,
    /// 100 GPU-hours or more.
    ExtraLarge,
}

impl Class {
    /// All of them, in ascending order.
    pub const ALL: [Self; 4] = [Self::Small, Self::Medium, Self::Large, Self::ExtraLarge];

    /// The class of a job that takes so many GPU-hours.
    ///
    /// ```
    /// use pollux_sim::workload::philly::Class;
    ///
    /// assert_eq!(Class::of_gpu_hours(0.9), Class::Small);
    /// assert_eq!(Class::of_gpu_hours(10.0), Class::Large);
    /// ```
    pub fn of_gpu_hours(gpu_hours: f64) -> Self {
        match gpu_hours {
            ..1.0 => Self::Small,
            ..10.0 => Self::Medium,
            ..100.0 => Self::Large,
            _ => Self::ExtraLarge,
        }
    }

    /// The class the paper puts one of its six applications into.
    ///
    /// By hand, it seems: the artifact's traces give cifar10 1.05 hours on one GPU and yolov3 9.4, so that both would
    /// miss their class by a little.
    pub fn of_paper(application: &str) -> Option<Self> {
        match application {
            "cifar10" | "ncf" => Some(Self::Small),
            "bert" | "deepspeech2" => Some(Self::Medium),
            "yolov3" => Some(Self::Large),
            "imagenet" => Some(Self::ExtraLarge),
            _ => None,
        }
    }

    /// How many GPUs jobs of this class had, and how many jobs had so many.
    ///
    /// Of those submitted between 2 and 10 o'clock that took a day at most.
    pub fn gpu_counts(self) -> &'static [(u32, u32)] {
        match self {
            Self::Small => &[(1, 24_063), (2, 74), (4, 241), (8, 109), (16, 11)],
            Self::Medium => &[(1, 4_540), (2, 9), (4, 93), (8, 103), (12, 1), (16, 15), (24, 2), (32, 8)],
            Self::Large => &[(1, 504), (2, 38), (4, 256), (8, 169), (12, 1), (16, 12), (32, 9), (64, 2)],
            Self::ExtraLarge => &[(8, 41), (16, 16), (32, 5)],
        }
    }
}

/// How much of a workload arrives in each of its hours; the last one may be shorter than an hour.
///
/// ```
/// use pollux_sim::workload::philly::hourly_weights;
///
/// assert_eq!(hourly_weights(1.5), [3_550.0, 1_684.0]);
/// assert_eq!(hourly_weights(25.0)[24], 3_550.0);
/// ```
pub fn hourly_weights(hours: f64) -> Vec<f64> {
    let day = HOURLY_JOBS.into_iter().cycle().map(f64::from);
    let mut rest = hours;
    let mut weights = Vec::new();
    for jobs in day {
        if rest.is_nan() || rest <= 0.0 {
            break;
        }
        weights.push(jobs * rest.min(1.0));
        rest -= 1.0;
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_bounds() {
        let classes = [0.0, 0.99, 1.0, 9.9, 10.0, 99.0, 100.0, 999.0].map(Class::of_gpu_hours);
        let [small, medium, large, extra] = Class::ALL;
        assert_eq!(classes, [small, small, medium, medium, large, large, extra, extra]);
    }

    #[test] // Larger jobs ask for more GPUs.
    fn classes_ascend() {
        let mean = |class: Class| {
            let (gpus, jobs) = class
                .gpu_counts()
                .iter()
                .fold((0, 0), |(gpus, jobs), &(count, number)| (gpus + count * number, jobs + number));
            f64::from(gpus) / f64::from(jobs)
        };
        assert!(Class::ALL.is_sorted_by(|&small, &large| mean(small) < mean(large)));
    }

    #[test]
    fn no_hours_have_no_weights() {
        assert!(hourly_weights(0.0).is_empty() && hourly_weights(f64::NAN).is_empty());
        assert_eq!(hourly_weights(8.0).len(), 8);
    }
}
