//! Gavel's linear programs: which part of the time each job should spend on each GPU type.

use crate::solve::lp::Lp;

use super::Objective;

/// Jobs, GPU types, and how fast the ones are on the others.
#[derive(Debug, Default)]
pub(super) struct Market {
    pub(super) jobs: Vec<Bidder>,
    /// GPUs of each type.
    pub(super) gpus: Vec<u32>,
}

/// A job in Gavel's eyes.
#[derive(Debug)]
pub(super) struct Bidder {
    /// GPUs it runs on, whatever their type.
    pub(super) gpus: u32,
    pub(super) weight: f64,
    /// Its throughput on each type, in any unit of its own; 0 where it cannot run.
    pub(super) rates: Vec<f64>,
    /// Its throughput on one GPU of its slowest type, in that unit.
    pub(super) alone: f64,
}

/// How much what is not asked for counts against what is: time that the fairest shares leave open goes where it adds most.
const SPARE: f64 = 1e-6;

impl Market {
    /// Fractions of time by job and type.
    ///
    /// At most all of its time for each job, at most all GPUs of each type. Max-min: the least
    /// `gpus · rate / (weight · rate at an equal share)` is as large as it can be. Throughput: the sum of all rates, each in
    /// that of one GPU of the job's slowest type.
    pub(super) fn shares(&self, objective: Objective) -> Vec<Vec<f64>> {
        let (n_jobs, n_types) = (self.jobs.len(), self.gpus.len());
        let is_fair = objective == Objective::Fairness;
        let gains: Vec<Vec<f64>> = self.jobs.iter().map(|job| self.gains(job, objective)).collect();
        // Rows: the time of each job, the GPUs of each type, and for max-min the level that each job must reach.
        let mut room = vec![1.0; n_jobs];
        room.extend(self.gpus.iter().map(|&gpus| f64::from(gpus)));
        let can_run = |job: usize| gains[job].iter().any(|gain| *gain > 0.0);
        let first_level = room.len();
        room.extend((0..n_jobs).filter(|_| is_fair).map(|_| 0.0));
        let mut lp = Lp::new(&room, room.iter().map(|_| (1.0, 0.0)));
        let total: f64 = gains.iter().flatten().sum::<f64>().max(1.0);
        let mut columns = vec![vec![None; n_types]; n_jobs];
        for (job, bidder) in self.jobs.iter().enumerate() {
            for (on, &gain) in gains[job].iter().enumerate().filter(|(_, gain)| **gain > 0.0) {
                let mut entries = vec![(row(job), 1.0), (row(n_jobs + on), f64::from(bidder.gpus))];
                let cost = if is_fair { SPARE * gain / total } else { gain };
                if is_fair {
                    entries.push((row(first_level + job), -gain));
                }
                columns[job][on] = Some(lp.add(cost, entries));
            }
        }
        if is_fair {
            // Who can run nowhere holds nobody down.
            let levels = (0..n_jobs).filter(|&job| can_run(job)).map(|job| (row(first_level + job), 1.0));
            let levels: Vec<_> = levels.collect();
            if !levels.is_empty() {
                lp.add(1.0, levels);
            }
        }
        lp.maximise();
        let values = lp.values();
        let share = |column: &Option<usize>| column.map_or(0.0, |column| values[column].clamp(0.0, 1.0));
        columns.iter().map(|columns| columns.iter().map(share).collect()).collect()
    }

    /// What a unit of a job's time on each type adds to the objective.
    fn gains(&self, job: &Bidder, objective: Objective) -> Vec<f64> {
        let unit = match objective {
            Objective::Fairness => job.weight * self.equal_share(job) / f64::from(job.gpus),
            Objective::Throughput => job.alone,
        };
        let gain = |rate: &f64| if *rate > 0.0 && unit > 0.0 { rate / unit } else { 0.0 };
        job.rates.iter().map(gain).collect()
    }

    /// A job's rate, had each job the same part of each type.
    fn equal_share(&self, job: &Bidder) -> f64 {
        let n_jobs = self.jobs.len().max(1) as f64;
        let parts: Vec<f64> = self.gpus.iter().map(|&gpus| f64::from(gpus) / n_jobs).collect();
        let all: f64 = parts.iter().sum::<f64>().max(1.0);
        job.rates.iter().zip(&parts).map(|(rate, part)| rate * part / all).sum()
    }
}

fn row(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rates: &[[f64; 2]], objective: Objective, expected: &[[f64; 2]]) {
        let jobs =
            rates.iter().map(|rates| Bidder { gpus: 1, weight: 1.0, rates: rates.to_vec(), alone: 1.0 });
        let shares = Market { jobs: jobs.collect(), gpus: vec![1, 1] }.shares(objective);
        let is_close =
            shares.iter().flatten().zip(expected.iter().flatten()).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(is_close, "{shares:?}, not {expected:?}");
    }

    #[test] // Equal shares are half of each type: 2.5 and 1.5. Of the fast type the first gains 4 - 1, the second 2 - 1.
    fn shares_of_two_types() {
        check(&[[1.0, 4.0], [1.0, 2.0]], Objective::Throughput, &[[0.0, 1.0], [1.0, 0.0]]);
        // The first x on the fast: (1 + 3 x) / 2.5 = (1 + (1 - x)) / 1.5, so 1.5 + 4.5 x = 5 - 2.5 x, and x = 1/2.
        check(&[[1.0, 4.0], [1.0, 2.0]], Objective::Fairness, &[[0.5, 0.5], [0.5, 0.5]]);
        // Only the second can use the first type.
        check(&[[0.0, 2.0], [1.0, 2.0]], Objective::Throughput, &[[0.0, 1.0], [1.0, 0.0]]);
        // Who can run nowhere holds nobody down.
        check(&[[0.0, 0.0], [1.0, 2.0]], Objective::Fairness, &[[0.0, 0.0], [0.0, 1.0]]);
    }
}
