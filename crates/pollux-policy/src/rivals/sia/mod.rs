//! Sia: configurations of several GPU types, chosen by a binary program.

mod layers;
mod menu;
mod program;
mod rows;
mod seats;

pub use program::{Chosen, Column, Program, TOLERANCE};

use std::collections::BTreeSet;

use pollux_model::{Allocation, NodeId};

use super::place::Room;
use super::{Standing, by_arrival, held, limits, written};
use crate::plan::{Certificate, Limit, Plan, Starved};
use crate::policy::{About, Policy, Terms};
use crate::snapshot::{Job, Learned, Snapshot};
use menu::{Offer, Stock, offers};
use rows::Rows;
use seats::{Seat, assign};

/// Sia: for each job a GPU type and a number of GPUs, the whole cluster at once.
///
/// A job may have 1, 2, 4, .. GPUs of one node, or whole nodes, of one type; at most twice as many as it has been seen on. A
/// configuration is worth its goodput `G` against the least of the job's, times `max(T - N S, 0) / (T + S)` if the
/// job holds another (age `T`, restarts `N` of `S` seconds each; not in its first `S` seconds). Chosen is what
/// minimises `Σ G^p + λ · (jobs that wait)`, which is solved to optimality.
///
/// [`Certificate::value`] of its plans is the power mean of `G` over all jobs, a waiting one counted as `λ^(1/p)`.
///
/// ```
/// use pollux_policy::{Policy, Sia};
///
/// assert_eq!((Sia::default().fairness, Sia::default().waiting), (-0.5, 1.1));
/// assert!(Sia::default().about().adapts_batch);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sia {
    /// The exponent `p`; below 0.
    pub fairness: f64,
    /// What a waiting job costs, `λ`; one on its least configuration costs 1.
    pub waiting: f64,
    /// Whether costs are rounded to two decimals and cut at 3000, as in the artifact; else they are exact.
    pub is_rounded: bool,
}

impl Default for Sia {
    /// The paper's own.
    fn default() -> Self {
        Self { fairness: -0.5, waiting: 1.1, is_rounded: false }
    }
}

/// Costs above this the artifact cuts.
const MOST_COST: f64 = 3_000.0;

/// One round.
struct Round<'a> {
    snapshot: &'a Snapshot<Learned>,
    room: Room,
    stocks: Vec<Stock>,
    /// Who stays where it is, whatever others do.
    settled: Vec<bool>,
    offers: Vec<Vec<Offer>>,
    program: Program,
}

impl Sia {
    /// The binary program of a round, without those jobs that stay in any case: theirs are rows without columns. For whoever wants
    /// to check it with another solver.
    pub fn program(&self, snapshot: &Snapshot<Learned>) -> Program {
        self.round(snapshot).program
    }

    fn round<'a>(&self, snapshot: &'a Snapshot<Learned>) -> Round<'a> {
        let mut room = Room::new(snapshot);
        let jobs = snapshot.jobs();
        let mut settled: Vec<bool> = jobs.iter().map(Job::is_pinned).collect();
        let nodes = |job: &Job<Learned>| job.holds.iter().map(|(node, _)| node).collect::<Vec<_>>();
        let pinned = jobs.iter().filter(|job| job.is_pinned()).map(nodes).filter(|on| on.len() > 1);
        let mut spread: BTreeSet<NodeId> = pinned.flatten().collect();
        for index in by_arrival(jobs).into_iter().filter(|&index| !jobs[index].is_pinned()) {
            let (job, on) = (&jobs[index], nodes(&jobs[index]));
            let is_apart = on.len() < 2 || !on.iter().any(|node| spread.contains(node));
            settled[index] = is_apart && stays_put(job, &room) && room.keep(job);
            if settled[index] && on.len() > 1 {
                spread.extend(on);
            }
        }
        let stocks = Stock::all(snapshot, &room, &settled);
        let unsettled = jobs.iter().zip(&settled);
        let offers: Vec<Vec<Offer>> = unsettled
            .map(|(job, settled)| if *settled { Vec::new() } else { offers(job, &room, &stocks) })
            .collect();
        let rows = Rows::new(&room, &stocks, &offers);
        let columns = jobs.iter().zip(&offers).map(|(job, offers)| {
            let cost =
                |offer: &Offer| self.cost(offer.value * if offer.is_held { 1.0 } else { discount(job) });
            offers.iter().map(|offer| rows.column(&room, &stocks, job, offer, cost(offer))).collect()
        });
        let program = Program { jobs: columns.collect(), waiting: self.waiting, room: rows.room.clone() };
        Round { snapshot, room, stocks, settled, offers, program }
    }

    /// What a configuration of this value costs; more than waiting where it is worth nothing.
    fn cost(&self, value: f64) -> f64 {
        let cost = if value > 0.0 { libm::pow(value, self.fairness) } else { f64::INFINITY };
        if self.is_rounded { ((cost * 100.0).round_ties_even() / 100.0).min(MOST_COST) } else { cost }
    }

    fn certificate(&self, round: &Round<'_>, chosen: &Chosen) -> Certificate {
        // Jobs that stay in any case cost nothing here, and are not counted.
        let open = round.settled.iter().filter(|settled| !**settled).count();
        let idle = self.waiting * (round.settled.len() - open) as f64;
        let mean = |cost: f64| {
            let mean = (cost - idle) / open.max(1) as f64;
            if open > 0 && mean > 0.0 { libm::pow(mean, 1.0 / self.fairness) } else { 0.0 }
        };
        let mut starved = Starved::default();
        let mut n_running = 0;
        for (index, job) in round.snapshot.jobs().iter().enumerate() {
            if round.settled[index] || chosen.columns[index].is_some() {
                n_running += 1;
            } else if !round.offers[index].is_empty() {
                *starved.of(job.priority) += 1;
            }
        }
        let (value, bound) = (mean(chosen.cost), mean(chosen.bound));
        Certificate { value, bound, starved, starved_bound: Starved::default(), n_running }
    }
}

/// Who cannot come back, or of whom nothing is known yet, is left where it is.
fn stays_put(job: &Job<Learned>, room: &Room) -> bool {
    let (least, most) = limits(job);
    let is_unknown = job.knows.curves.iter().next().is_none();
    let may = is_unknown || (room.is_on_closed(job) && (least..=most).contains(&held(job)));
    !job.holds.is_empty() && may
}

/// The factor on what a job would have to restart for.
fn discount(job: &Job<Learned>) -> f64 {
    let (age, cost) = (job.age.as_secs_f64(), job.restart_cost.as_secs_f64());
    if job.holds.is_empty() || age < cost || age + cost <= 0.0 {
        return 1.0;
    }
    (age - f64::from(job.restarts) * cost).max(0.0) / (age + cost)
}

impl Round<'_> {
    /// Picks nodes for what was chosen.
    fn carry_out(&self, chosen: &Chosen) -> Plan {
        let jobs = self.snapshot.jobs();
        let mut standings: Vec<Standing> = vec![Standing::Stays; jobs.len()];
        let mut allocations = vec![Allocation::none(); jobs.len()];
        let mut seats: Vec<Vec<Seat>> = vec![Vec::new(); self.stocks.len()];
        for index in by_arrival(jobs).into_iter().filter(|&index| !self.settled[index]) {
            let (job, offers) = (&jobs[index], &self.offers[index]);
            let Some(Offer { pool, n_nodes, gpus, is_held, .. }) = chosen.columns[index].map(|at| offers[at])
            else {
                let least = offers.iter().map(|offer| offer.gpus).min().unwrap_or(limits(job).0);
                standings[index] = Standing::Waits(self.room.why_not(job, least));
                continue;
            };
            standings[index] = Standing::Comes { pool, gpus };
            let holds = is_held.then(|| job.holds.clone());
            seats[pool].push(Seat { job: index, n_nodes, gpus, holds });
        }
        for (stock, seats) in self.stocks.iter().zip(&seats) {
            for (seat, given) in seats.iter().zip(assign(stock, seats)) {
                match given {
                    Some(given) => allocations[seat.job] = given,
                    None => standings[seat.job] = Standing::Waits(Limit::Packing),
                }
            }
        }
        written(self.snapshot, &standings, allocations)
    }
}

impl Policy for Sia {
    type Knows = Learned;

    fn about(&self) -> About {
        About {
            name: "sia",
            summary: "a GPU type and a power of two or whole nodes for each job, by a binary program solved to optimality",
            source: "Jayaram Subramanya et al., SOSP 2023; solver: this project",
            adapts_batch: true,
        }
    }

    fn plan(&self, snapshot: &Snapshot<Learned>, terms: &Terms<'_>) -> Plan {
        let round = self.round(snapshot);
        let chosen = round.program.solve(terms);
        let plan = round.carry_out(&chosen);
        Plan { certificate: Some(self.certificate(&round, &chosen)), work: chosen.work, ..plan }
    }
}
