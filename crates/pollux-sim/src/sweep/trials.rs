//! A search on its way through a cluster.

use pollux_model::Timestamp;

use super::curve::Curves;
use super::report::Figures;
use super::search::{Search, Searcher};
use super::space::Point;
use super::stopping::is_below_median;
use super::{SPACE, Sweep};
use crate::outcome::Run;
use crate::simulation::{Guide, Milestone, Order};
use crate::workload::Submission;

/// How one trial went.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Its hyper-parameters, from 0 to 1.
    pub point: Point,
    /// Accuracy after each epoch.
    pub accuracies: Vec<f64>,
    /// When it was submitted.
    pub submitted: Timestamp,
    /// When it was done or given up.
    pub ended: Option<Timestamp>,
    /// Whether it was given up.
    pub given_up: bool,
    /// GPU-seconds it held.
    pub gpu_secs: f64,
    /// Restarts after its first start.
    pub restarts: u32,
}

impl Trial {
    /// Its hyper-parameters by name.
    pub fn values(&self) -> impl Iterator<Item = (&'static str, f64)> {
        SPACE.iter().zip(&self.point).map(|(dimension, unit)| (dimension.name, dimension.value(*unit)))
    }

    /// The last accuracy that was seen of it; 0 if none was.
    pub fn accuracy(&self) -> f64 {
        self.accuracies.last().copied().unwrap_or(0.0)
    }
}

/// What a search found, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The trials, in the order of submission.
    pub trials: Vec<Trial>,
}

impl Found {
    /// The figures of the search.
    pub fn figures(&self) -> Figures {
        let n = self.trials.len().max(1) as f64;
        let sum = |value: fn(&Trial) -> f64| self.trials.iter().map(value).sum::<f64>() + 0.0;
        let mut accuracies: Vec<f64> = self.trials.iter().map(Trial::accuracy).collect();
        accuracies.sort_by(|a, b| b.total_cmp(a));
        let top = &accuracies[..accuracies.len().min(5)];
        let secs = |trial: &Trial| trial.ended.map_or(0.0, |at| at.since(trial.submitted).as_secs_f64());
        let last = self.trials.iter().filter_map(|trial| trial.ended).max();
        Figures {
            best: top.first().copied().unwrap_or(0.0),
            top5: top.iter().sum::<f64>() / top.len().max(1) as f64,
            trial_secs: sum(secs) / n,
            makespan_secs: last.map_or(0.0, Timestamp::as_secs_f64),
            gpu_hours: sum(|trial| trial.gpu_secs) / 3_600.0,
            given_up: sum(|trial| f64::from(u8::from(trial.given_up))),
            restarts_per_trial: sum(|trial| trial.restarts.into()) / n,
        }
    }
}

/// The guide of a simulation that is a search.
pub(super) struct Searching<'a> {
    sweep: &'a Sweep,
    batch: u64,
    searcher: Searcher,
    curves: Curves,
    n_epochs: usize,
    trials: Vec<Trial>,
}

impl<'a> Searching<'a> {
    pub(super) fn new(sweep: &'a Sweep, search: Search, batch: u64, seed: u64, n_epochs: usize) -> Self {
        Self {
            sweep,
            batch,
            searcher: Searcher::new(search, seed, n_epochs),
            curves: Curves::new(seed, n_epochs),
            n_epochs,
            trials: Vec::new(),
        }
    }

    /// The trials to begin with.
    pub(super) fn first(&mut self) -> Vec<Submission> {
        let n = self.sweep.at_once.min(self.sweep.n_trials);
        (0..n).map(|_| self.next(Timestamp::ZERO)).collect()
    }

    fn next(&mut self, now: Timestamp) -> Submission {
        let number = self.trials.len();
        self.trials.push(Trial {
            point: self.searcher.suggest(number),
            accuracies: Vec::new(),
            submitted: now,
            ended: None,
            given_up: false,
            gpu_secs: 0.0,
            restarts: 0,
        });
        Submission {
            name: format!("trial-{number}"),
            at_secs: 0,
            application: self.sweep.application.clone(),
            gpus: self.sweep.gpus,
            batch: self.batch,
            work: None,
            group: None,
        }
    }

    /// What a finished run adds to what is known.
    pub(super) fn found(mut self, run: &Run) -> Found {
        for (trial, outcome) in self.trials.iter_mut().zip(&run.jobs) {
            trial.submitted = outcome.submitted;
            trial.gpu_secs = outcome.gpu_secs;
            trial.restarts = outcome.restarts;
        }
        Found { trials: self.trials }
    }

    fn is_hopeless(&mut self, index: usize, epochs: usize, accuracy: f64) -> bool {
        let is_done = |trial: &&Trial| trial.ended.is_some() && !trial.given_up;
        let done = self.trials.iter().filter(is_done).map(|trial| trial.accuracies.as_slice());
        let below = self.sweep.median && is_below_median(&self.trials[index].accuracies, done);
        below || !self.searcher.goes_on(epochs, accuracy)
    }
}

impl Guide for Searching<'_> {
    fn passed(&mut self, now: Timestamp, index: usize, milestone: Milestone) -> Vec<Order> {
        let (epochs, is_done) = match milestone {
            Milestone::Epochs(epochs) => (epochs, false),
            Milestone::Done => (self.n_epochs, true),
        };
        let accuracy = self.curves.measured(index, &self.trials[index].point, epochs);
        self.trials[index].accuracies.push(accuracy);
        let given_up = !is_done && self.is_hopeless(index, epochs, accuracy);
        if !is_done && !given_up {
            return Vec::new();
        }
        let trial = &mut self.trials[index];
        (trial.ended, trial.given_up) = (Some(now), given_up);
        let point = trial.point.clone();
        self.searcher.learn(point, accuracy);
        let mut orders = Vec::new();
        if given_up {
            orders.push(Order::GiveUp(index));
        }
        if self.trials.len() < self.sweep.n_trials {
            orders.push(Order::Submit(self.next(now)));
        }
        orders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(sweep: &Sweep, search: Search) -> Searching<'_> {
        let mut trials = Searching::new(sweep, search, 128, 1, 16);
        assert_eq!(trials.first().len(), sweep.at_once.min(sweep.n_trials));
        trials
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test] // Three trials, two at a time: the end of the first brings the third, that of the second nothing.
    fn one_comes_when_one_ends() {
        let sweep = Sweep { n_trials: 3, at_once: 2, ..Sweep::default() };
        let mut trials = trials(&sweep, Search::Random);
        assert!(trials.passed(at(1), 0, Milestone::Epochs(15)).is_empty());
        let orders = trials.passed(at(2), 0, Milestone::Done);
        assert!(matches!(&orders[..], [Order::Submit(next)] if next.name == "trial-2"), "{orders:?}");
        assert!(trials.passed(at(3), 1, Milestone::Done).is_empty());
        assert_eq!(trials.trials[1].ended, Some(at(3)));
    }

    #[test] // Of two that come to a rung the better goes on, or the first: the other is replaced.
    fn one_that_lags_behind_is_replaced() {
        let sweep = Sweep { n_trials: 9, at_once: 2, ..Sweep::default() };
        let mut trials = trials(&sweep, Search::Halving);
        let end = |trials: &Searching<'_>, index: usize| trials.curves.at_end(&trials.trials[index].point);
        let (better, worse) = if end(&trials, 0) > end(&trials, 1) { (0, 1) } else { (1, 0) };
        assert!(trials.passed(at(1), better, Milestone::Epochs(4)).is_empty());
        let orders = trials.passed(at(1), worse, Milestone::Epochs(4));
        assert!(matches!(&orders[..], [Order::GiveUp(index), Order::Submit(_)] if *index == worse));
        assert!(trials.trials[worse].given_up);
    }

    #[test] // Two hours for one, half an hour for the other, which was given up.
    fn figures_are_of_all_trials() {
        let trial = |from, to, given_up, accuracy| Trial {
            point: vec![],
            accuracies: vec![accuracy],
            submitted: at(from),
            ended: Some(at(to)),
            given_up,
            gpu_secs: 3_600.0,
            restarts: 1,
        };
        let found = Found { trials: vec![trial(0, 7_200, false, 0.75), trial(5_400, 7_200, true, 0.25)] };
        let expected = Figures {
            best: 0.75,
            top5: 0.5,
            trial_secs: 4_500.0,
            makespan_secs: 7_200.0,
            gpu_hours: 2.0,
            given_up: 1.0,
            restarts_per_trial: 1.0,
        };
        assert_eq!(found.figures(), expected);
    }
}
