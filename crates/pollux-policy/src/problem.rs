//! One round as the solver sees it: a table of options for each job, and what couples them.

use crate::plan::Starved;
use crate::snapshot::Priority;
use crate::utility::Utility;

/// Nodes, tables and caps. Everything a job prefers is in its table; everything that couples jobs is here.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// How many GPU types there are.
    pub n_pools: usize,
    /// The nodes.
    pub nodes: Vec<Slot>,
    /// Limits on GPUs of one pool that some jobs hold together.
    pub caps: Vec<Cap>,
    /// The caps over each group's jobs: its own and its ancestors'.
    pub groups: Vec<Vec<usize>>,
    /// The jobs.
    pub jobs: Vec<Table>,
    /// Whether two jobs on several nodes each may share one.
    pub avoid_interference: bool,
    /// What sum of worth makes what mean.
    pub utility: Utility,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The type of its GPUs.
    pub pool: usize,
    /// GPUs our jobs may hold here.
    pub gpus: u32,
    /// Whether jobs may come; if not, only what is kept stays.
    pub open: bool,
}

/// A limit on the GPUs of one pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Of which pool.
    pub pool: usize,
    /// How many at most.
    pub limit: u32,
}

/// The options of one job and what each is worth.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Who starves last.
    pub priority: Priority,
    /// The group whose caps it counts for.
    pub group: Option<usize>,
    /// How much it counts in the mean.
    pub weight: f64,
    /// What it is worth to hold nothing; none if it must keep what it holds.
    pub nothing: Option<f64>,
    /// What it holds, and what keeping that is worth; none if it may not stay.
    pub keep: Option<Keep>,
    /// New places, for each pool.
    pub options: Vec<Options>,
}

/// What a job holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Keep {
    /// What it is worth to stay.
    pub worth: f64,
    /// GPUs by node.
    pub at: Vec<(usize, u32)>,
}

/// What new places in one pool are worth to a job; minus infinity where it may not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// `k` GPUs on one node, at `k - 1`.
    pub one_node: Vec<f64>,
    /// `k` GPUs on several nodes, at `k - 2`.
    pub spread: Vec<f64>,
}

impl Options {
    /// What `gpus` GPUs on one node, or on several, are worth.
    pub fn worth(&self, gpus: u32, is_spread: bool) -> f64 {
        let (list, first) = if is_spread { (&self.spread, 2) } else { (&self.one_node, 1) };
        let index = (gpus as usize).checked_sub(first);
        index.and_then(|index| list.get(index)).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// Fewest GPUs that are an option.
    pub fn fewest(&self) -> Option<u32> {
        let first =
            |list: &[f64], first: usize| Some(list.iter().position(|worth| worth.is_finite())? + first);
        let fewest = [first(&self.one_node, 1), first(&self.spread, 2)].into_iter().flatten().min()?;
        u32::try_from(fewest).ok()
    }
}

/// What a job gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Nothing.
    Nothing,
    /// What it holds.
    Keep,
    /// New GPUs, by node, in ascending order of nodes.
    Place(Vec<(usize, u32)>),
}

/// How good a choice for each job is: starved jobs first, then the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// Jobs that hold nothing.
    pub starved: Starved,
    /// What it is worth to all jobs together, those that hold nothing included.
    pub sum: f64,
}

/// Why choices do not fit together.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Violation {
    /// A job chose what its table does not offer.
    #[error("job {0} has no such option")]
    NoSuchOption(usize),
    /// More GPUs than the node has.
    #[error("node {0} is overfull")]
    Overfull(usize),
    /// New GPUs on a closed node.
    #[error("node {0} is closed")]
    Closed(usize),
    /// Two jobs on several nodes each share one, and one of them chose to.
    #[error("two jobs that span nodes share node {0}")]
    Interference(usize),
    /// More GPUs than a cap allows, and not only by what must be kept.
    #[error("cap {0} is exceeded")]
    OverCap(usize),
}

impl Problem {
    /// Checks that choices fit together and says what they are worth.
    pub fn score(&self, choices: &[Choice]) -> Result<Score, Violation> {
        let mut score = Score { starved: Starved::default(), sum: 0.0 };
        let mut used = vec![0_u32; self.nodes.len()];
        let mut spreading = vec![(0_u32, false); self.nodes.len()];
        let mut held = vec![(0_u32, false); self.caps.len()];
        for (index, (table, choice)) in self.jobs.iter().zip(choices).enumerate() {
            let worth = self.worth(index, choice).ok_or(Violation::NoSuchOption(index))?;
            let at = self.places(index, choice);
            if *choice == Choice::Nothing {
                *score.starved.of(table.priority) += 1;
            }
            score.sum += worth;
            // What a job cannot leave is no fault of the choice.
            let is_free = table.nothing.is_some();
            for &(node, gpus) in at {
                if *choice != Choice::Keep && !self.nodes[node].open {
                    return Err(Violation::Closed(node));
                }
                used[node] += gpus;
                if at.len() > 1 {
                    spreading[node].0 += 1;
                    spreading[node].1 |= is_free;
                }
            }
            for &cap in table.group.map_or(&[][..], |group| &self.groups[group]) {
                let gpus = at.iter().filter(|&&(node, _)| self.nodes[node].pool == self.caps[cap].pool);
                let gpus: u32 = gpus.map(|&(_, gpus)| gpus).sum();
                held[cap].0 += gpus;
                held[cap].1 |= is_free && gpus > 0;
            }
        }
        if let Some(node) = (0..used.len()).find(|&node| used[node] > self.nodes[node].gpus) {
            return Err(Violation::Overfull(node));
        }
        if let Some(node) =
            spreading.iter().position(|&(jobs, free)| jobs > 1 && free && self.avoid_interference)
        {
            return Err(Violation::Interference(node));
        }
        if let Some(cap) = (0..held.len()).find(|&cap| held[cap].0 > self.caps[cap].limit && held[cap].1) {
            return Err(Violation::OverCap(cap));
        }
        Ok(score)
    }

    fn worth_of_place(&self, table: &Table, at: &[(usize, u32)]) -> Option<f64> {
        let &(first, _) = at.first()?;
        let pool = self.nodes.get(first)?.pool;
        let one_pool = at
            .iter()
            .all(|&(node, gpus)| gpus > 0 && self.nodes.get(node).is_some_and(|slot| slot.pool == pool));
        let ascending = at.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let gpus = at.iter().map(|&(_, gpus)| gpus).sum();
        let worth = table.options.get(pool)?.worth(gpus, at.len() > 1);
        (one_pool && ascending && worth.is_finite()).then_some(worth)
    }

    /// What a choice is worth to a job, if its table offers it.
    pub(crate) fn worth(&self, job: usize, choice: &Choice) -> Option<f64> {
        let table = &self.jobs[job];
        match choice {
            Choice::Nothing => table.nothing,
            Choice::Keep => table.keep.as_ref().map(|keep| keep.worth),
            Choice::Place(at) => self.worth_of_place(table, at),
        }
    }

    /// The GPUs of a choice, by node.
    pub(crate) fn places<'a>(&'a self, job: usize, choice: &'a Choice) -> &'a [(usize, u32)] {
        match choice {
            Choice::Nothing => &[],
            Choice::Keep => self.jobs[job].keep.as_ref().map_or(&[], |keep| &keep.at),
            Choice::Place(at) => at,
        }
    }
}
