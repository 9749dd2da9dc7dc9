//! Choices for all jobs of a problem, close to the best, and how close.
//!
//! Prices suggest sizes (`dual`), jobs are placed at them and the result is improved by emptying a few
//! nodes and filling them anew (`search`), until the bound says that little can be left or the budget is spent.

mod dual;
mod hull;
pub(crate) mod lp;
mod patterns;
mod search;
mod settle;
pub(crate) mod simplex;
mod state;

pub(crate) use self::dual::Shadow;
pub(crate) use self::hull::Hulls;
pub(crate) use self::patterns::Sharp;

use self::dual::{CLASSES, Dual, Proof, Starving, class};
use self::search::Search;
use self::state::{Rank, State};
use crate::plan::{Starved, Stopped, Work};
use crate::policy::Terms;
use crate::problem::{Choice, Problem, Score};
use crate::settings::Effort;
use pollux_model::Random;

/// The answer.
#[derive(Clone, Debug)]
pub struct Solution {
    /// One for each job.
    pub choices: Vec<Choice>,
    /// How good they are.
    pub score: Score,
    /// No choices with as many starved jobs have a higher sum.
    pub bound: f64,
    /// No choices starve fewer.
    pub starved_bound: Starved,
    /// The bound that prices of GPUs alone prove.
    pub(crate) bound_by_gpus: f64,
    /// What it took.
    pub work: Work,
    /// The prices that prove it.
    pub(crate) shadow: Shadow,
    /// What proves it where that bound is the lower one.
    pub(crate) sharp: Option<Sharp>,
}

/// No choices that starve exactly so many jobs are worth more than this.
pub fn bound(problem: &Problem, starved: Starved) -> f64 {
    let starved = [starved.low, starved.normal, starved.high];
    let hulls = Hulls::new(problem);
    let bound = Dual::at(problem, &hulls, starved).least(None).bound;
    let sharp = patterns::bound(&State::new(problem, &hulls), starved, &|_| false);
    sharp.map_or(bound, |sharp| sharp.bound.min(bound)) + hulls.worth_of_hopeless()
}

/// Solves a problem.
pub fn solve(problem: &Problem, effort: &Effort, terms: &Terms<'_>) -> Solution {
    let outlook = Outlook::new(problem, None);
    outlook.solve(problem, effort, terms)
}

/// What prices say of a problem before anything is placed.
pub(crate) struct Outlook {
    pub(crate) hulls: Hulls,
    pub(crate) starved: [u32; CLASSES],
    pub(crate) proof: Proof,
}

impl Outlook {
    /// The search for prices starts from `guess`, one for each pool.
    pub(crate) fn new(problem: &Problem, guess: Option<&[f64]>) -> Self {
        let hulls = Hulls::new(problem);
        let starved =
            if must_starve(problem, &hulls) { least_starved(problem, &hulls) } else { hulls.hopeless };
        let proof = Dual::at(problem, &hulls, starved).least(guess);
        Self { hulls, starved, proof }
    }

    /// The prices and the bound if so many starve.
    pub(crate) fn proof_at(&self, problem: &Problem, starved: [u32; CLASSES]) -> Proof {
        Dual::at(problem, &self.hulls, starved).least(Some(&self.proof.shadow.pool))
    }

    /// Solves, from what jobs hold or from the prices.
    pub(crate) fn solve(&self, problem: &Problem, effort: &Effort, terms: &Terms<'_>) -> Solution {
        let budget = terms.work.unwrap_or_else(|| effort.budget(problem.jobs.len()));
        let is_held = problem.jobs.iter().any(|job| job.keep.is_some());
        let (units, sharp) = (0, None);
        let base = None;
        let mut climb = Climb { problem, outlook: self, effort, terms, budget, units, sharp, is_held, base };
        let (state, stopped) = climb.run();
        let work = Work { units: climb.units, budget, stopped };
        let hopeless = self.hulls.worth_of_hopeless();
        let (starved, sum, choices) = (state.starved(), state.rank().sum, state.choices());
        let mut bound = climb.bound();
        let mut sharp = climb.sharp.take();
        let mut shadow = self.proof.shadow.clone();
        let mut bound_by_gpus = self.proof.bound;
        if starved != self.starved {
            let proof = self.proof_at(problem, starved);
            sharp = patterns::bound(&state, starved, &|_| false);
            bound = sharp.as_ref().map_or(proof.bound, |sharp| sharp.bound.min(proof.bound));
            (shadow, bound_by_gpus) = (proof.shadow, proof.bound);
        }
        drop(state);
        let mut starved_bound = self.starved;
        if starved != starved_bound && starved_bound == self.hulls.hopeless {
            starved_bound = least_starved(problem, &self.hulls);
        }
        Solution {
            choices,
            score: Score { starved: by_priority(starved), sum: sum + hopeless },
            bound: bound.max(sum) + hopeless,
            bound_by_gpus: bound_by_gpus + hopeless,
            starved_bound: by_priority(starved_bound),
            work,
            shadow,
            sharp,
        }
    }

    /// The bound on an answer found before the tables grew.
    pub(crate) fn certify(&self, problem: &Problem, solution: Solution) -> Solution {
        let mut search = Search::new(State::new(problem, &self.hulls), &self.proof.shadow, Random::seeded(0));
        search.put_all(&solution.choices);
        let starved = search.state.starved();
        let proof =
            if starved == self.starved { self.proof.clone() } else { self.proof_at(problem, starved) };
        let sharp = solution.sharp.and_then(|_| patterns::bound(&search.state, starved, &|_| false));
        let sharp = sharp.filter(|sharp| sharp.bound < proof.bound);
        let hopeless = self.hulls.worth_of_hopeless();
        let bound = sharp.as_ref().map_or(proof.bound, |sharp| sharp.bound) + hopeless;
        let bound_by_gpus = proof.bound + hopeless;
        Solution {
            bound: bound.max(solution.score.sum),
            bound_by_gpus,
            shadow: proof.shadow,
            sharp,
            ..solution
        }
    }
}

/// Climbs in a row that end no higher, after which there are no more; with a budget above the default, as many times more.
const MOST_FRUITLESS: u64 = 3;

/// How things are.
struct Base {
    choices: Vec<Choice>,
    rank: Rank,
    running: f64,
}

struct Climb<'p, 'c> {
    problem: &'p Problem,
    outlook: &'p Outlook,
    effort: &'c Effort,
    terms: &'c Terms<'c>,
    budget: u64,
    units: u64,
    /// The second bound, once it was asked for.
    sharp: Option<Sharp>,
    /// Whether anybody holds anything now.
    is_held: bool,
    /// How things are, once it is known that staying is not good enough.
    base: Option<Base>,
}

impl<'p> Climb<'p, '_> {
    /// The best of several climbs, each from a start of its own, and why the last one ended.
    fn run(&mut self) -> (State<'p>, Stopped) {
        let mut in_place = self.start_in_place(0);
        in_place.state.recount();
        if self.problem.nodes.is_empty() || self.problem.jobs.is_empty() {
            return (in_place.state, Stopped::Done);
        }
        let enough = if self.is_held { self.effort.in_place } else { self.effort.good_enough };
        if self.is_within(&in_place.state, self.bound(), enough) {
            self.units = in_place.units;
            return (in_place.state, Stopped::GoodEnough);
        }
        self.base = self.is_held.then(|| Base {
            choices: in_place.state.choices(),
            rank: in_place.state.rank(),
            running: in_place.state.running,
        });
        let (mut next, mut best) =
            if self.is_held { (Some(in_place), None) } else { (None, Some(in_place.state)) };
        let mut start = u64::from(!self.is_held);
        let mut is_sharp = false;
        let mut stopped = None;
        let mut n_fruitless = 0;
        let default_budget = Effort::DEFAULT.budget(self.problem.jobs.len());
        let most_fruitless = MOST_FRUITLESS * (self.budget / default_budget).max(1);
        while stopped.is_none() {
            start += 1;
            let fresh = |start: u64| {
                if start % 2 == 1 { self.start_in_place(start) } else { self.start_at_prices(start) }
            };
            let mut search = next.take().unwrap_or_else(|| fresh(start));
            let slice =
                if is_sharp { self.budget } else { self.budget.min(self.units + self.usual_budget() / 4) };
            stopped = self.climb(&mut search, slice);
            if !is_sharp && stopped.is_none() {
                // Prices of GPUs alone do not show it to be good: ask for more.
                is_sharp = true;
                self.sharpen(&search.state);
                stopped = self.climb(&mut search, self.budget);
            }
            self.units += search.units;
            settle::settle(&mut search.state);
            search.state.recount();
            if best.as_ref().is_none_or(|best| search.state.rank().beats(best.rank(), 0.0)) {
                best = Some(search.state);
                n_fruitless = 0;
            } else {
                n_fruitless += 1;
            }
            // Climbs from that many places end no higher: this is the top, or as good as.
            if stopped.is_none() && n_fruitless >= most_fruitless {
                stopped = Some(Stopped::Budget);
            }
        }
        // Who moves must gain by it.
        let best = best.filter(|best| self.is_worth_moving(best));
        let best = best.unwrap_or_else(|| {
            let mut search = self.search(0);
            search.put_all(self.base.as_ref().map_or(&[], |base| &base.choices));
            search.state.recount();
            search.state
        });
        (best, stopped.unwrap_or(Stopped::Done))
    }

    /// Whether a plan is better than leaving things as they are by more than may be ignored.
    fn is_worth_moving(&self, best: &State<'_>) -> bool {
        let Some(base) = &self.base else { return true };
        let (before, after) = (base.rank, best.rank());
        let gain = relative(self.problem, base.running, best.weight, after.sum - before.sum);
        after.starves_fewer(before) || (!before.starves_fewer(after) && gain > self.effort.epsilon)
    }

    fn search(&self, stream: u64) -> Search<'p> {
        let random = Random::stream(self.terms.seed.0, stream);
        Search::new(State::new(self.problem, &self.outlook.hulls), &self.outlook.proof.shadow, random)
    }

    /// As things are, newcomers placed.
    fn start_in_place(&self, stream: u64) -> Search<'p> {
        let mut search = self.search(stream);
        search.keep_all();
        search
    }

    /// As the prices would have it.
    fn start_at_prices(&self, stream: u64) -> Search<'p> {
        let mut search = self.search(stream);
        search.place_all(&self.outlook.proof.shadow);
        search
    }

    /// Improves until nothing has improved for long. Says why the whole search should end, if it should.
    fn climb(&self, search: &mut Search<'p>, slice: u64) -> Option<Stopped> {
        let patience = (500 + 40 * self.problem.jobs.len() as u64).min(4_000);
        let mut last_gain = search.units;
        let mut round = 0_u32;
        if self.is_good(&search.state) {
            return Some(Stopped::GoodEnough);
        }
        loop {
            if self.units + search.units >= slice {
                return (slice >= self.budget).then_some(Stopped::Budget);
            }
            if round.is_multiple_of(64) && self.terms.is_late() {
                return Some(Stopped::Deadline);
            }
            round = round.wrapping_add(1);
            if search.ruin_and_recreate() {
                last_gain = search.units;
                if self.is_good(&search.state) {
                    return Some(Stopped::GoodEnough);
                }
            } else if search.units - last_gain > patience {
                return None;
            }
        }
    }

    /// What is spent without other terms. The way of the search depends on this, not on where it is cut.
    fn usual_budget(&self) -> u64 {
        self.effort.budget(self.problem.jobs.len())
    }

    /// Lowers the bound by what nodes cannot hold.
    fn sharpen(&mut self, state: &State<'_>) {
        let sharp = patterns::bound(state, self.outlook.starved, &|bound| {
            self.is_within(state, bound, self.effort.good_enough)
        });
        self.sharp = sharp.filter(|sharp| sharp.bound < self.outlook.proof.bound);
    }

    /// No plan that starves as few as the outlook is worth more.
    fn bound(&self) -> f64 {
        self.sharp.as_ref().map_or(self.outlook.proof.bound, |sharp| sharp.bound)
    }

    /// Whether the bound leaves little to gain: with jobs in place, no more than would have let them stay, if they
    /// need not stay for lack of gain.
    fn is_good(&self, state: &State<'_>) -> bool {
        self.is_within(state, self.bound(), self.effort.good_enough)
            || (self.is_held
                && self.is_within(state, self.bound(), self.effort.in_place)
                && self.is_worth_moving(state))
    }

    fn is_within(&self, state: &State<'_>, bound: f64, enough: f64) -> bool {
        let rank = state.rank();
        let missing = bound - rank.sum;
        rank.starved <= state.weight_of_starved(self.outlook.starved)
            && relative(self.problem, state.running, state.weight, missing) <= enough
    }
}

/// How much higher the mean would be, as a fraction of the higher one, if the sum were higher by `missing`.
fn relative(problem: &Problem, running: f64, weight: f64, missing: f64) -> f64 {
    if missing <= 0.0 || weight <= 0.0 {
        return 0.0;
    }
    let utility = problem.utility;
    let (now, then) = (utility.mean(running / weight), utility.mean((running + missing) / weight));
    if now > 0.0 && then.is_finite() {
        (then - now) / then
    } else {
        missing / running.abs().max(f64::MIN_POSITIVE)
    }
}

fn by_priority(starved: [u32; CLASSES]) -> Starved {
    Starved { low: starved[0], normal: starved[1], high: starved[2] }
}

/// Whether there are plainly too few GPUs for all, or caps that might not leave enough.
fn must_starve(problem: &Problem, hulls: &Hulls) -> bool {
    let open: f64 = problem.nodes.iter().filter(|slot| slot.open).map(|slot| f64::from(slot.gpus)).sum();
    !problem.caps.is_empty() || problem.n_pools > 1 || hulls.fewest_gpus() > open
}

/// A bound on the starved jobs of each class, the highest first.
fn least_starved(problem: &Problem, hulls: &Hulls) -> [u32; CLASSES] {
    let mut counts = [0_u32; CLASSES];
    for table in &problem.jobs {
        counts[class(table)] += 1;
    }
    let mut least = hulls.hopeless;
    let mut starving = [Starving::Freely; CLASSES];
    for class in (0..CLASSES).rev() {
        if counts[class] > least[class] {
            let counting = Hulls::counting(problem, class);
            let running = Dual::new(problem, &counting, starving).least(None).bound;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and the jobs"
            )]
            let running = (running + 1e-6).floor().clamp(0.0, f64::from(counts[class])) as u32;
            least[class] = least[class].max(counts[class] - running);
        }
        starving[class] = match least[class] - hulls.hopeless[class] {
            0 => Starving::Never,
            n => Starving::Exactly(n),
        };
    }
    least
}
