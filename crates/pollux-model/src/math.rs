//! The few transcendental functions of the model, from `libm`: the same bits on every machine.

pub(crate) use libm::{exp, log as ln, pow};

/// `(a^p + b^p)^(1/p)` of two non-negative numbers, and how much of it is `a`'s.
///
/// The step-time model uses this norm twice: to overlap compute with synchronisation, and to bend the
/// roofline. `share` is `a^p / (a^p + b^p)`, from which every derivative follows:
/// `d norm / d a = share * norm / a`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    pub(crate) value: f64,
    pub(crate) share: f64,
}

impl Norm {
    pub(crate) fn of(a: f64, b: f64, p: f64) -> Self {
        if b <= 0.0 {
            return Self { value: a, share: 1.0 };
        }
        if a <= 0.0 {
            return Self { value: b, share: 0.0 };
        }
        if p <= 1.0 {
            return Self { value: a + b, share: a / (a + b) };
        }
        let (large, small) = if a >= b { (a, b) } else { (b, a) };
        let ratio = pow(small / large, p);
        let value = large * pow(1.0 + ratio, 1.0 / p);
        let of_large = 1.0 / (1.0 + ratio);
        Self { value, share: if a >= b { of_large } else { 1.0 - of_large } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: f64, b: f64, p: f64, value: f64, share: f64) {
        let norm = Norm::of(a, b, p);
        assert!((norm.value - value).abs() < 1e-12, "{norm:?}");
        assert!((norm.share - share).abs() < 1e-12, "{norm:?}");
    }

    #[test] // A 3-4-5 triangle: 9 of the 25 are the shorter side's.
    fn norm_of_two_is_the_hypotenuse() {
        check(3.0, 4.0, 2.0, 5.0, 9.0 / 25.0);
        check(4.0, 3.0, 2.0, 5.0, 16.0 / 25.0);
        check(3.0, 4.0, 1.0, 7.0, 3.0 / 7.0);
        check(3.0, 0.0, 5.0, 3.0, 1.0);
        check(0.0, 4.0, 5.0, 4.0, 0.0);
    }
}
