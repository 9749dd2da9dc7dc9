//! How a run ended, from how its processes ended.

use serde::{Deserialize, Serialize};

use super::folder::ExitRecord;
use super::process::Moment;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// Every process ended with 0.
    Finished,
    /// It was asked to leave, or left with 143 by itself; nobody's failure.
    Left,
    /// Something went wrong, first in this process.
    Failed {
        /// Its rank.
        rank: u32,
        /// How it ended.
        end: End,
        /// Whether the kernel killed it, or a child of it, for using too much memory.
        out_of_memory: bool,
    },
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
    /// It was never started, and why.
    NotStarted(String),
    /// It was killed together with its supervisor.
    Lost,
}

impl End {
    /// Whether this is how processes leave when asked: 143, or killed by SIGTERM.
    pub fn is_leaving(&self) -> bool {
        matches!(self, Self::Code(143) | Self::Signal(15))
    }
}

/// Whether a process failed, and was not merely asked to leave before it ended.
pub(super) fn has_failed(exit: &ExitRecord, stop: Option<&Moment>) -> bool {
    let stopped = stop.is_some_and(|stop| !exit.ended.is_before(stop));
    exit.end != End::Code(0) && !exit.end.is_leaving() && !exit.asked && !stopped
}

/// Judges a run by its processes, in order of ranks, and by when it was asked to stop.
pub(super) fn judge(exits: &[ExitRecord], stop: Option<&Moment>) -> How {
    if exits.iter().all(|exit| exit.end == End::Code(0)) {
        return How::Finished;
    }
    let mut first: Option<(u32, &ExitRecord)> = None;
    for (rank, exit) in (0..).zip(exits).filter(|(_, exit)| has_failed(exit, stop)) {
        if first.is_none_or(|(_, earliest)| exit.ended.is_before(&earliest.ended)) {
            first = Some((rank, exit));
        }
    }
    first.map_or(How::Left, |(rank, exit)| How::Failed {
        rank,
        end: exit.end.clone(),
        out_of_memory: exit.oom_kills.is_some_and(|kills| kills > 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(boot_ms: u64) -> Moment {
        Moment { wall_ms: 0, boot_ms, boot: "b".to_owned() }
    }

    /// Processes that ended at these milliseconds, in this way, asked or not.
    fn check(exits: &[(u64, End, bool)], stop: Option<u64>, expected: &How) {
        let exits: Vec<ExitRecord> = exits
            .iter()
            .map(|(ended, end, asked)| ExitRecord {
                asked: *asked,
                ..ExitRecord::new(end.clone(), at(0), at(*ended))
            })
            .collect();
        assert_eq!(&judge(&exits, stop.map(at).as_ref()), expected, "{exits:?}");
    }

    fn failed(rank: u32, end: End) -> How {
        How::Failed { rank, end, out_of_memory: false }
    }

    #[test]
    fn all_zeros_is_finished_even_if_asked() {
        check(&[(1, End::Code(0), false), (2, End::Code(0), true)], Some(1), &How::Finished);
    }

    #[test]
    fn the_first_to_fail_is_named() {
        let exits = [(9, End::Code(1), false), (5, End::Signal(11), false), (9, End::Signal(9), true)];
        check(&exits, None, &failed(1, End::Signal(11)));
        check(&[(5, End::Code(2), false), (5, End::Code(3), false)], None, &failed(0, End::Code(2)));
        check(&[(5, End::Lost, false), (6, End::Code(0), false)], None, &failed(0, End::Lost));
    }

    #[test]
    fn who_was_asked_has_left_whatever_the_code() {
        check(&[(5, End::Code(1), true), (6, End::Code(0), false)], None, &How::Left);
        check(&[(5, End::Code(143), false)], None, &How::Left);
        check(&[(5, End::Signal(15), false)], None, &How::Left);
        // The neighbour left first and this one stumbled over it before the signal came.
        check(&[(5, End::Code(143), true), (5, End::Code(1), false)], Some(4), &How::Left);
    }

    #[test]
    fn what_failed_before_the_stop_has_failed() {
        check(&[(3, End::Code(1), false), (5, End::Code(143), true)], Some(4), &failed(0, End::Code(1)));
    }

    #[test]
    fn memory_is_named_as_the_reason() {
        let exit = ExitRecord { oom_kills: Some(1), ..ExitRecord::new(End::Signal(9), at(0), at(1)) };
        let how = How::Failed { rank: 0, end: End::Signal(9), out_of_memory: true };
        assert_eq!(judge(&[exit], None), how);
    }
}
