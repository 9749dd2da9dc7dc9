//! Each job's options as concave curves: all that prices can see of a table.

use super::dual::{CLASSES, Shadow, class};
use crate::problem::{Options, Problem, Table};

/// The upper hulls of all tables.
#[derive(Debug, Default)]
pub(crate) struct Hulls {
    n_pools: usize,
    jobs: Vec<JobHull>,
    points: Vec<Point>,
    /// For each job and pool, where its points begin and end.
    spans: Vec<(u32, u32)>,
    /// Jobs, by class, that can hold nothing anywhere.
    pub(crate) hopeless: [u32; CLASSES],
    /// Which caps lie over a group's GPUs of a pool.
    caps: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug)]
struct Point {
    gpus: f64,
    worth: f64,
}

#[derive(Clone, Copy, Debug)]
struct JobHull {
    nothing: f64,
    class: usize,
    /// Row of prices and caps: the group, or the last for jobs of none.
    group: usize,
    keep: Option<KeepPoint>,
    /// Whether it has any option but nothing.
    has_hope: bool,
}

#[derive(Clone, Copy, Debug)]
struct KeepPoint {
    pool: usize,
    worth: f64,
    /// GPUs on open nodes, which others could have.
    gpus: f64,
    /// GPUs that count for caps.
    all: f64,
}

/// A job's best option at given prices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    /// Worth less what it pays.
    pub(crate) net: f64,
    pub(crate) pool: usize,
    pub(crate) gpus: f64,
    pub(crate) capped: f64,
    pub(crate) starves: bool,
    pub(crate) keeps: bool,
}

impl Hulls {
    pub(crate) fn new(problem: &Problem) -> Self {
        let n_pools = problem.n_pools;
        let mut hulls = Self { n_pools, ..Self::default() };
        for group in problem.groups.iter().map(Vec::as_slice).chain([&[][..]]) {
            for pool in 0..n_pools {
                let over = group.iter().copied().filter(|&cap| problem.caps[cap].pool == pool);
                hulls.caps.push(over.collect());
            }
        }
        for table in &problem.jobs {
            hulls.push(problem, table);
        }
        hulls
    }

    /// Curves that count running jobs of one priority instead of valuing them.
    pub(crate) fn counting(problem: &Problem, class: usize) -> Self {
        let mut hulls = Self::new(problem);
        for (job, hull) in hulls.jobs.iter_mut().enumerate() {
            let worth = f64::from(hull.class == class);
            hull.nothing = if hull.nothing.is_finite() { 0.0 } else { hull.nothing };
            if let Some(keep) = &mut hull.keep {
                keep.worth = worth;
            }
            for pool in 0..hulls.n_pools {
                let least = problem.jobs[job].options.get(pool).and_then(Options::fewest);
                let (from, to) = &mut hulls.spans[job * hulls.n_pools + pool];
                if let Some(least) = least {
                    hulls.points[*from as usize] = Point { gpus: f64::from(least), worth };
                    *to = *from + 1;
                }
            }
        }
        hulls
    }

    fn push(&mut self, problem: &Problem, table: &Table) {
        let class = class(table);
        let first = self.points.len();
        for pool in 0..self.n_pools {
            let from = self.points.len();
            if let Some(options) = table.options.get(pool) {
                push_hull(&mut self.points, from, options);
            }
            self.spans.push((index(from), index(self.points.len())));
        }
        let keep = table.keep.as_ref().map(|keep| {
            let all = keep.at.iter().map(|&(_, gpus)| f64::from(gpus)).sum();
            let open = keep.at.iter().filter(|&&(node, _)| problem.nodes[node].open);
            let gpus = open.map(|&(_, gpus)| f64::from(gpus)).sum();
            let pool = keep.at.first().map_or(0, |&(node, _)| problem.nodes[node].pool);
            KeepPoint { pool, worth: keep.worth, gpus, all }
        });
        let has_hope = keep.is_some() || self.points.len() > first;
        if !has_hope {
            self.hopeless[class] += 1;
        }
        let group = table.group.unwrap_or(problem.groups.len());
        let nothing = table.nothing.unwrap_or(f64::NEG_INFINITY);
        self.jobs.push(JobHull { nothing, class, group, keep, has_hope });
    }

    pub(crate) fn has_hope(&self, job: usize) -> bool {
        self.jobs[job].has_hope
    }

    pub(crate) fn class(&self, job: usize) -> usize {
        self.jobs[job].class
    }

    /// The caps over a job's GPUs of a pool.
    pub(crate) fn caps(&self, job: usize, pool: usize) -> &[usize] {
        &self.caps[self.jobs[job].group * self.n_pools + pool]
    }

    /// The price of a GPU for each group and pool.
    pub(crate) fn priced(&self, shadow: &Shadow) -> Vec<f64> {
        let price = |(index, caps): (usize, &Vec<usize>)| {
            shadow.pool[index % self.n_pools.max(1)] + caps.iter().map(|&cap| shadow.cap[cap]).sum::<f64>()
        };
        self.caps.iter().enumerate().map(price).collect()
    }

    /// What it is worth to those that can hold nothing anywhere: no choice changes it, so no sum includes it.
    pub(crate) fn worth_of_hopeless(&self) -> f64 {
        self.jobs.iter().filter(|job| !job.has_hope && job.nothing.is_finite()).map(|job| job.nothing).sum()
    }

    /// A job's best option; of one without any, nothing.
    pub(crate) fn best(&self, job: usize, priced: &[f64], shadow: &Shadow) -> Best {
        let hull = &self.jobs[job];
        let mut best =
            Best { net: f64::NEG_INFINITY, pool: 0, gpus: 0.0, capped: 0.0, starves: false, keeps: false };
        if !hull.has_hope {
            best.net = 0.0;
            return best;
        }
        let starved = hull.nothing + shadow.starved[hull.class];
        if starved > f64::NEG_INFINITY {
            best.net = starved;
            best.starves = true;
        }
        for pool in 0..self.n_pools {
            let price = priced[hull.group * self.n_pools + pool];
            let (from, to) = self.spans[job * self.n_pools + pool];
            let mut net = f64::NEG_INFINITY;
            let mut gpus = 0.0;
            for point in &self.points[from as usize..to as usize] {
                let here = point.worth - price * point.gpus;
                if here <= net {
                    break;
                }
                (net, gpus) = (here, point.gpus);
            }
            if net > best.net {
                best = Best { net, pool, gpus, capped: gpus, starves: false, keeps: false };
            }
        }
        if let Some(keep) = hull.keep {
            let price = priced[hull.group * self.n_pools + keep.pool];
            let for_caps = price - shadow.pool[keep.pool];
            let net = keep.worth - shadow.pool[keep.pool] * keep.gpus - for_caps * keep.all;
            if net >= best.net {
                let (pool, gpus, capped) = (keep.pool, keep.gpus, keep.all);
                best = Best { net, pool, gpus, capped, starves: false, keeps: true };
            }
        }
        best
    }

    /// GPUs that all jobs with hope hold at least.
    pub(crate) fn fewest_gpus(&self) -> f64 {
        let fewest = |(job, hull): (usize, &JobHull)| {
            let pools = (0..self.n_pools).map(|pool| self.spans[job * self.n_pools + pool]);
            let new = pools.filter(|(from, to)| from < to).map(|(from, _)| self.points[from as usize].gpus);
            let least = new.chain(hull.keep.map(|keep| keep.gpus)).fold(f64::INFINITY, f64::min);
            if least.is_finite() { least } else { 0.0 }
        };
        self.jobs.iter().enumerate().map(fewest).sum()
    }

    /// Most GPUs in any table.
    pub(crate) fn most_gpus(&self) -> f64 {
        self.points.iter().map(|point| point.gpus).fold(1.0, f64::max)
    }

    /// The steepest that any job's worth grows with a GPU.
    pub(crate) fn steepest(&self) -> f64 {
        let inside =
            self.spans.iter().flat_map(|&(from, to)| self.points[from as usize..to as usize].windows(2));
        let inside = inside.map(|pair| (pair[1].worth - pair[0].worth) / (pair[1].gpus - pair[0].gpus));
        let start = self.spans.iter().enumerate().filter(|(_, span)| span.0 < span.1).map(|(index, span)| {
            let (point, nothing) = (self.points[span.0 as usize], self.jobs[index / self.n_pools].nothing);
            if nothing.is_finite() { (point.worth - nothing) / point.gpus } else { 0.0 }
        });
        inside.chain(start).filter(|slope| slope.is_finite()).fold(0.0, f64::max)
    }

    /// A price of the right order: what a second GPU is worth to the average job.
    pub(crate) fn typical(&self) -> f64 {
        let slopes = self.spans.iter().filter(|(from, to)| to - from >= 2).map(|&(from, _)| {
            let pair = &self.points[from as usize..][..2];
            (pair[1].worth - pair[0].worth) / (pair[1].gpus - pair[0].gpus)
        });
        let (sum, n) = slopes.fold((0.0, 0.0), |(sum, n), slope| (sum + slope, n + 1.0));
        if n > 0.0 { sum / n } else { 1.0 }
    }

    /// The lowest and the highest worth of a job's options, nothing among them where it may starve.
    fn range_of_worth(&self, job: usize, may_starve: [bool; CLASSES]) -> (f64, f64) {
        let hull = &self.jobs[job];
        let spans = &self.spans[job * self.n_pools..][..self.n_pools];
        let points = spans.iter().flat_map(|&(from, to)| &self.points[from as usize..to as usize]);
        let nothing = may_starve[hull.class].then_some(hull.nothing).filter(|nothing| nothing.is_finite());
        let worths = points.map(|point| point.worth).chain(hull.keep.map(|keep| keep.worth)).chain(nothing);
        worths
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), worth| (low.min(worth), high.max(worth)))
    }

    /// The lowest worth of a job's options; 0 if it has none.
    pub(crate) fn lowest_worth(&self, job: usize, may_starve: [bool; CLASSES]) -> f64 {
        let (low, _) = self.range_of_worth(job, may_starve);
        if low.is_finite() { low } else { 0.0 }
    }

    /// The largest difference that any job's options make.
    pub(crate) fn spread_of_worth(&self, may_starve: [bool; CLASSES]) -> f64 {
        let ranges = (0..self.jobs.len()).map(|job| self.range_of_worth(job, may_starve));
        ranges.map(|(low, high)| high - low).fold(0.0, f64::max)
    }
}

/// Appends the upper concave hull, in ascending order, of what `k` GPUs are worth at best.
fn push_hull(points: &mut Vec<Point>, from: usize, options: &Options) {
    let longest = options.one_node.len().max(options.spread.len() + 1);
    for gpus in 1..=u32::try_from(longest).unwrap_or(u32::MAX) {
        let worth = options.worth(gpus, false).max(options.worth(gpus, true));
        if worth == f64::NEG_INFINITY {
            continue;
        }
        let point = Point { gpus: f64::from(gpus), worth };
        if points.len() > from && points[points.len() - 1].worth >= worth {
            continue;
        }
        while points.len() >= from + 2 {
            let [a, b] = [points[points.len() - 2], points[points.len() - 1]];
            let falls =
                (b.worth - a.worth) * (point.gpus - b.gpus) > (point.worth - b.worth) * (b.gpus - a.gpus);
            if falls {
                break;
            }
            points.pop();
        }
        points.push(point);
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
