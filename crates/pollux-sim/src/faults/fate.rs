//! What befalls one node, and when.

use std::time::Duration;

use pollux_model::{NodeId, Random, Timestamp};

use super::Faults;
use crate::random;

/// Something that befalls a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Befalls {
    /// It is said that it will be taken away.
    Warned,
    /// It is gone, with all that runs there.
    Lost,
    /// It is back, or another in its place: as good as new.
    Back,
    /// It becomes slow.
    Slow,
    /// It has its speed again.
    Steady,
}

impl Befalls {
    /// As it is called in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warned => "node-warned",
            Self::Lost => "node-lost",
            Self::Back => "node-back",
            Self::Slow => "node-slow",
            Self::Steady => "node-steady",
        }
    }
}

/// All that befalls a node in the course of time: an iterator without end, or without anything.
///
/// A node is there from time 0. Each time it is there anew it is drawn when it fails and when it is taken away; what
/// comes first happens. So a node that is repaired is no older than a new one.
#[derive(Clone, Debug)]
pub struct Fate {
    faults: Faults,
    failures: Random,
    reclaims: Random,
    stragglers: Random,
    /// When it is warned, if it has not been.
    warned: Option<Timestamp>,
    /// When it is gone; when it is back, if it is gone.
    turns: Option<Timestamp>,
    is_there: bool,
    /// When it becomes slow; when it is steady again, if it is slow.
    changes_speed: Option<Timestamp>,
    is_slow: bool,
}

impl Fate {
    pub(super) fn new(faults: &Faults, seed: u64, node: NodeId) -> Self {
        let stream = |purpose| random::numbered(seed, purpose, node.0.into());
        let mut fate = Self {
            faults: faults.clone(),
            failures: stream("node failures"),
            reclaims: stream("reclaims"),
            stragglers: stream("stragglers"),
            warned: None,
            turns: None,
            is_there: true,
            changes_speed: None,
            is_slow: false,
        };
        fate.begin(Timestamp::ZERO);
        fate
    }

    /// The node is there from now on.
    fn begin(&mut self, now: Timestamp) {
        let mtbf = self.faults.mtbf.map_or(0.0, |mean| mean.as_secs_f64());
        let fails = after(now, &mut self.failures, mtbf);
        let reclaimed = after(now, &mut self.reclaims, mean_secs(self.faults.reclaims_per_hour));
        let taken = reclaimed.map(|at| at + self.faults.warning);
        self.turns = earliest(fails, taken);
        self.warned = reclaimed.filter(|warned| self.turns.is_some_and(|lost| *warned < lost));
        self.is_there = true;
        self.is_slow = false;
        self.changes_speed = self.next_slow(now);
    }

    fn next_slow(&mut self, now: Timestamp) -> Option<Timestamp> {
        after(now, &mut self.stragglers, mean_secs(self.faults.stragglers_per_hour))
    }
}

impl Iterator for Fate {
    type Item = (Timestamp, Befalls);

    fn next(&mut self) -> Option<(Timestamp, Befalls)> {
        if !self.is_there {
            let back = self.turns?;
            self.begin(back);
            return Some((back, Befalls::Back));
        }
        let next = earliest(self.turns, earliest(self.warned, self.changes_speed))?;
        if self.turns == Some(next) {
            self.is_there = false;
            self.turns = Some(next + self.faults.repair);
            return Some((next, Befalls::Lost));
        }
        if self.warned == Some(next) {
            self.warned = None;
            return Some((next, Befalls::Warned));
        }
        self.is_slow = !self.is_slow;
        if self.is_slow {
            self.changes_speed = Some(next + self.faults.slow_for);
            return Some((next, Befalls::Slow));
        }
        self.changes_speed = self.next_slow(next);
        Some((next, Befalls::Steady))
    }
}

fn earliest(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// Mean time between what happens so often an hour; 0 if it never does.
fn mean_secs(per_hour: f64) -> f64 {
    if per_hour > 0.0 { 3_600.0 / per_hour } else { 0.0 }
}

/// A time that is exponentially distributed around its mean; none if there is no mean.
fn after(now: Timestamp, random: &mut Random, mean_secs: f64) -> Option<Timestamp> {
    // Time moves on whatever the mean, and three thousand years are as good as never.
    let secs = |random: &mut Random| random.exponential(mean_secs).clamp(1.0, 1e11);
    (mean_secs > 0.0).then(|| now + Duration::from_secs_f64(secs(random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(text: &str, seed: u64, node: u32) -> Fate {
        text.parse::<Faults>().unwrap().fate(seed, NodeId(node))
    }

    /// Hours on average from the event before each `what` to it, of many nodes.
    fn mean_hours(text: &str, what: Befalls) -> f64 {
        let mut hours = Vec::new();
        for node in 0..200 {
            let events: Vec<_> = fate(text, 1, node).take(50).collect();
            let before = std::iter::once(Timestamp::ZERO).chain(events.iter().map(|(at, _)| *at));
            for (before, (at, _)) in before.zip(&events).filter(|(_, (_, next))| *next == what) {
                hours.push((*at - before).as_secs_f64() / 3_600.0);
            }
        }
        hours.iter().sum::<f64>() / hours.len() as f64
    }

    fn check_mean(text: &str, what: Befalls, hours: f64) {
        let mean = mean_hours(text, what);
        assert!((mean / hours - 1.0).abs() < 0.05, "{text} {what:?}: {mean} h, not {hours} h");
    }

    #[test] // Two chances an hour come first after half an hour; with both kinds at that rate, after a quarter.
    fn times_are_as_they_were_asked_for() {
        check_mean("mtbf=30m", Befalls::Lost, 0.5);
        check_mean("mtbf=30m,repair=3h", Befalls::Back, 3.0);
        check_mean("reclaim=2,warning=6m", Befalls::Warned, 0.5);
        check_mean("reclaim=2,warning=6m", Befalls::Lost, 0.1);
        check_mean("mtbf=30m,reclaim=2,warning=0s", Befalls::Lost, 0.25);
        check_mean("straggler=0.1", Befalls::Slow, 10.0);
        check_mean("straggler=0.1,slow-for=30m", Befalls::Steady, 0.5);
    }

    #[test]
    fn a_node_is_lost_once_and_warned_before() {
        for node in 0..50 {
            let (mut is_there, mut is_warned, mut last) = (true, false, Timestamp::ZERO);
            for (at, what) in fate("mtbf=20h,reclaim=0.1,straggler=0.2", 7, node).take(100) {
                assert!(last <= at);
                last = at;
                match what {
                    Befalls::Back => assert!(!std::mem::replace(&mut is_there, true)),
                    Befalls::Lost => (is_there, is_warned) = (!is_there, false),
                    Befalls::Warned => assert!(is_there && !std::mem::replace(&mut is_warned, true)),
                    Befalls::Slow | Befalls::Steady => assert!(is_there),
                }
            }
        }
    }

    #[test]
    fn nothing_befalls_a_node_unless_asked_for() {
        assert_eq!(fate("work-error=0.3,restart-failure=0.5", 1, 0).next(), None);
        assert_eq!(Faults::default().fate(1, NodeId(0)).next(), None);
    }

    #[test]
    fn nodes_and_seeds_differ_and_kinds_have_streams_of_their_own() {
        let first = |text: &str, seed, node| fate(text, seed, node).next().unwrap();
        assert_eq!(first("mtbf=9h", 1, 0), first("mtbf=9h", 1, 0));
        assert_ne!(first("mtbf=9h", 1, 0), first("mtbf=9h", 1, 1));
        assert_ne!(first("mtbf=9h", 1, 0), first("mtbf=9h", 2, 0));
        // Stragglers that are added change no failure.
        let lost = |text: &str| {
            let events = fate(text, 3, 2).filter(|(_, what)| *what == Befalls::Lost);
            events.take(5).collect::<Vec<_>>()
        };
        assert_eq!(lost("mtbf=9h"), lost("mtbf=9h,straggler=1"));
    }
}
