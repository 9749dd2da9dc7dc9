//! Who chooses the hyper-parameters of the next trial, and which trials are given up.

use std::fmt;
use std::str::FromStr;

use super::space::{Point, SPACE};
use super::stopping::Rungs;
use super::tpe;
use crate::random;

/// A way to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Every trial at random, and to its end.
    Random,
    /// The tree-structured Parzen estimator; every trial to its end.
    Tpe,
    /// Every trial at random; those that lag behind are given up, by successive halving.
    Halving,
}

impl Search {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Random, Self::Tpe, Self::Halving];
}

/// Text that names no way to search.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to search; write `random`, `tpe` or `halving`")]
pub struct SearchError(String);

impl FromStr for Search {
    type Err = SearchError;

    fn from_str(text: &str) -> Result<Self, SearchError> {
        let named = |search: &Self| search.to_string() == text;
        Self::ALL.into_iter().find(named).ok_or_else(|| SearchError(text.to_owned()))
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Random => "random",
            Self::Tpe => "tpe",
            Self::Halving => "halving",
        })
    }
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Searcher {
    search: Search,
    seed: u64,
    tried: Vec<(Point, f64)>,
    rungs: Rungs,
}

impl Searcher {
    /// A search among trainings of so many epochs.
    pub fn new(search: Search, seed: u64, n_epochs: usize) -> Self {
        Self { search, seed, tried: Vec::new(), rungs: Rungs::new(n_epochs) }
    }

    /// Hyper-parameters for the trial with this number. Those drawn at random depend on nothing else, so that searches with
    /// one seed begin alike.
    pub fn suggest(&self, trial: usize) -> Point {
        let mut random = random::numbered(self.seed, "sweep suggestion", trial as u64);
        match self.search {
            Search::Tpe if self.tried.len() >= tpe::N_STARTUP => tpe::suggest(&self.tried, &mut random),
            _ => SPACE.iter().map(|_| random.unit()).collect(),
        }
    }

    /// Whether a trial with this accuracy after so many epochs is worth going on with.
    pub fn goes_on(&mut self, epochs: usize, accuracy: f64) -> bool {
        self.search != Search::Halving || self.rungs.goes_on(epochs, accuracy)
    }

    /// A trial ended with this accuracy.
    pub fn learn(&mut self, point: Point, accuracy: f64) {
        self.tried.push((point, accuracy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Curves;

    #[test]
    fn names_are_read_as_they_are_written() {
        for search in Search::ALL {
            assert_eq!(search.to_string().parse(), Ok(search));
        }
        let error = "grid".parse::<Search>().unwrap_err().to_string();
        assert_eq!(error, "`grid` is no way to search; write `random`, `tpe` or `halving`");
    }

    #[test] // The first 20 trials are drawn alike, whatever they find; random search goes on like that.
    fn searches_begin_alike() {
        let mut tpe = Searcher::new(Search::Tpe, 3, 100);
        let random = Searcher::new(Search::Random, 3, 100);
        for trial in 0..20 {
            assert_eq!(tpe.suggest(trial), random.suggest(trial));
            tpe.learn(tpe.suggest(trial), 0.5);
        }
        assert_ne!(tpe.suggest(20), random.suggest(20));
    }

    /// Mean accuracy at the end of the best 5 of 100 trials, one after the other.
    fn top5(search: Search, seed: u64) -> f64 {
        let curves = Curves::new(seed, 100);
        let mut searcher = Searcher::new(search, seed, 100);
        let mut found = Vec::new();
        for trial in 0..100 {
            let point = searcher.suggest(trial);
            found.push(curves.at_end(&point));
            searcher.learn(point.clone(), curves.measured(trial, &point, 100));
        }
        found.sort_by(f64::total_cmp);
        found[95..].iter().sum::<f64>() / 5.0
    }

    #[test]
    fn tpe_finds_more_than_chance_with_as_many_trials() {
        let found: Vec<(f64, f64)> =
            (1..=20).map(|seed| (top5(Search::Tpe, seed), top5(Search::Random, seed))).collect();
        let wins = found.iter().filter(|(tpe, random)| tpe > random).count();
        let gain = found.iter().map(|(tpe, random)| tpe - random).sum::<f64>() / 20.0;
        assert!(wins == 20 && gain > 0.005, "{wins} of 20, {gain} on average: {found:?}");
    }
}
