//! What lies beyond the data a model was fitted to.

use pollux_model::Placement;
use pollux_model::fit::Coverage;

use crate::text;

/// How many configurations lie outside of what was observed, and why.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Beyond {
    pub(crate) n_outside: usize,
    n_in_all: usize,
    /// Each way to lie outside, with how many do; in the order they first occur.
    reasons: Vec<(String, usize)>,
}

impl Beyond {
    pub(crate) fn count(
        coverage: &Coverage,
        configurations: impl IntoIterator<Item = (Placement, u32)>,
    ) -> Self {
        let mut beyond = Self::default();
        for (placement, micro_batch) in configurations {
            let found = coverage.extrapolations(placement, micro_batch);
            beyond.n_in_all += 1;
            beyond.n_outside += usize::from(!found.is_empty());
            for reason in found {
                let reason = reason.to_string();
                match beyond.reasons.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, count)) => *count += 1,
                    None => beyond.reasons.push((reason, 1)),
                }
            }
        }
        beyond
    }

    /// `3 of 8 rows`.
    pub(crate) fn share(&self, what: &str) -> String {
        format!("{} of {}", self.n_outside, text::count(self.n_in_all, what))
    }

    /// Each reason, with how many it applies to.
    pub(crate) fn reasons(&self) -> impl Iterator<Item = String> {
        self.reasons.iter().map(|(reason, count)| format!("{reason} ({count})"))
    }

    /// The reasons alone, joined.
    pub(crate) fn joined(&self) -> String {
        self.reasons.iter().map(|(reason, _)| reason.as_str()).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_in_the_order_they_occur() {
        let coverage =
            Coverage { micro_batch: (32, 64), alone: true, one_node: Some((2, 4)), distributed: None };
        let placement = |nodes, replicas| Placement::new(nodes, replicas).unwrap();
        let beyond = Beyond::count(
            &coverage,
            [(placement(1, 1), 64), (placement(1, 4), 128), (placement(2, 8), 128), (placement(2, 8), 32)],
        );
        assert_eq!(beyond.share("row"), "3 of 4 rows");
        assert_eq!(
            beyond.reasons().collect::<Vec<_>>(),
            ["micro-batches above 64 were not observed (2)", "several nodes were not observed (2)"]
        );
        assert_eq!(Beyond::count(&coverage, []).n_outside, 0);
    }
}
