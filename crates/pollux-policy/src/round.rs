//! One round of a policy with an objective: valued, solved, explained.

use pollux_model::Allocation;

use crate::groups::{self, Bond};
use crate::plan::{Against, Certificate, Decision, JobPlan, Plan};
use crate::policy::Terms;
use crate::problem::Choice;
use crate::reason::Reasons;
use crate::settings::{FairShare, Settings};
use crate::snapshot::{Carried, Learned, Snapshot};
use crate::solve::{Hulls, Solution};
use crate::tables::Tables;
use crate::valuation::{Stake, Valuation};

/// The plan for a snapshot whose jobs have these stakes.
pub(crate) fn plan<K: AsRef<Learned>>(
    snapshot: &Snapshot<K>,
    settings: &Settings,
    stakes: &[Stake],
    terms: &Terms<'_>,
) -> Plan {
    let valuation = Valuation::new(snapshot, settings, stakes);
    let pools = valuation.pools();
    let carried = &snapshot.carried().prices;
    let guess: Option<Vec<f64>> = pools.iter().map(|pool| carried.get(&pool.gpu_type).copied()).collect();
    let guess = guess.filter(|guess| guess.iter().any(|&price| price > 0.0));
    let mut tables = Tables::new(snapshot, &valuation, settings, guess.as_deref());
    let bonds = groups::constrain(snapshot, &valuation, &mut tables.problem);
    let solved = solve(&mut tables, bonds, settings, terms, guess.as_deref());
    let solution = &solved.solution;

    let problem = &tables.problem;
    let (mut sum, mut weight, mut n_running) = (0.0, 0.0, 0_u32);
    for (job, choice) in solution.choices.iter().enumerate() {
        if *choice != Choice::Nothing {
            sum += problem.worth(job, choice).unwrap_or(0.0);
            weight += valuation.jobs()[job].weight;
            n_running += 1;
        }
    }
    let missing = (solution.bound - solution.score.sum).max(0.0);
    let certificate = Certificate {
        value: valuation.mean(sum, weight),
        bound: valuation.mean(sum + missing, weight),
        starved: solution.score.starved,
        starved_bound: solution.starved_bound,
        n_running,
    };

    let mut reasons = Reasons::new(snapshot, &valuation, problem, &solved, (sum, weight, missing));
    if settings.fair_share == FairShare::OneGpu {
        reasons.against = Against::OneGpu;
    }
    let jobs = snapshot.jobs().iter().zip(&solution.choices).enumerate().map(|(index, (job, choice))| {
        let allocation = match choice {
            Choice::Nothing => Allocation::none(),
            Choice::Keep => job.holds.clone(),
            Choice::Place(at) => Allocation::whole(at.iter().map(|&(node, gpus)| (tables.nodes[node], gpus))),
        };
        let decision = match choice {
            Choice::Nothing => Decision::Wait,
            Choice::Keep => Decision::Keep,
            Choice::Place(_) => Decision::Place,
        };
        JobPlan { job: job.id, decision, allocation, reason: reasons.of(index, choice) }
    });
    let jobs = jobs.collect();
    let prices = pools.iter().map(|pool| pool.gpu_type.clone()).zip(solution.shadow.pool.iter().copied());
    let carried = Carried { prices: prices.collect(), ..Carried::default() };
    Plan { jobs, certificate: Some(certificate), work: solution.work, carried }
}

/// A solution, what proves it, and what the problem's caps stand for.
pub(crate) struct Solved {
    pub(crate) solution: Solution,
    pub(crate) hulls: Hulls,
    pub(crate) bonds: Vec<Bond>,
}

fn solve(
    tables: &mut Tables<'_, '_>,
    bonds: Vec<Bond>,
    settings: &Settings,
    terms: &Terms<'_>,
    guess: Option<&[f64]>,
) -> Solved {
    let mut outlook = tables.outlook(guess);
    let mut solution = outlook.solve(&tables.problem, &settings.effort, terms);
    // The final prices may ask for options that were left out at the first ones.
    for _ in 0..4 {
        let by_gpus = tables.lengthen(&solution.shadow.pool);
        let by_pieces = solution.sharp.as_ref().is_some_and(|sharp| tables.lengthen_for(sharp));
        if !by_gpus && !by_pieces {
            break;
        }
        outlook = tables.outlook(Some(&solution.shadow.pool));
        solution = outlook.certify(&tables.problem, solution);
    }
    solution.bound += tables.unlisted(&solution);
    Solved { solution, hulls: outlook.hulls, bonds }
}
