//! Reads what the authors measured of an application.

use std::collections::BTreeMap;
use std::path::Path;

use super::application::Limits;
use super::file::{FileError, Problem, Row, Table};
use super::mesh::{Mesh, MeshTable, Point, TableError};
use super::progress::{self, Epoch, GradientStats, ProgressError, Validation};
use super::throughput::{self, StepTime, ThroughputError};

/// An application with all that is known of how it trains.
#[derive(Clone, Debug)]
pub struct Application {
    limits: Limits,
    /// By placement, in its smallest rotation; each by ascending batch.
    placements: BTreeMap<Vec<u32>, Vec<Measurement>>,
    /// By ascending batch.
    validation: Vec<Validation>,
    mesh: Mesh,
}

/// One row of `placements.csv`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measurement {
    pub(super) local_batch: u32,
    pub(super) time: StepTime,
}

/// Traces or a table that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// A file of the traces.
    #[error(transparent)]
    File(#[from] FileError),
    /// The table of simplices.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Application {
    /// Reads `traces/<name>/`: `placements.csv`, `scalability.csv` and every `validation-<batch>.csv`.
    pub fn load(traces: &Path, limits: &Limits, table: &MeshTable) -> Result<Self, LoadError> {
        let folder = traces.join(limits.name);
        let placements = read_placements(&folder.join("placements.csv"))?;
        let scalability = read_scalability(&folder.join("scalability.csv"))?;
        let validation = read_validation(&folder)?;
        check_limits(&folder, limits, &placements, &validation)?;
        let mesh = table.mesh(limits.name, &all_measurements(&placements, scalability))?;
        Ok(Self { limits: *limits, placements, validation, mesh })
    }

    /// An application with one placement, for tests that need no traces.
    #[cfg(test)]
    pub(super) fn on_one_placement(
        limits: Limits,
        placement: &[u32],
        measured: &[(u32, StepTime)],
        validation: Vec<Validation>,
    ) -> Self {
        let measured =
            measured.iter().map(|&(local_batch, time)| Measurement { local_batch, time }).collect();
        let placements = BTreeMap::from([(placement.to_vec(), measured)]);
        Self { limits, placements, validation, mesh: Mesh::default() }
    }

    /// Its batch sizes and length.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Its training runs, by ascending batch.
    pub fn validation(&self) -> &[Validation] {
        &self.validation
    }

    /// Step time on GPUs counted by node, with so many samples on each GPU.
    ///
    /// Measured placements (up to 4 nodes of up to 4 GPUs) are interpolated between batches alone, others between
    /// measurements of any number of nodes and replicas.
    pub fn step_time(&self, placement: &[u32], local_batch: u32) -> Result<StepTime, ThroughputError> {
        let placement = throughput::smallest_rotation(placement);
        match self.placements.get(&placement) {
            Some(measurements) => throughput::measured(&placement, measurements, local_batch),
            None => throughput::interpolated(&placement, &self.mesh, local_batch),
        }
    }

    /// The gradient at a batch size during an epoch, counted from 0.
    pub fn gradient_stats(&self, batch: u32, epoch: u32) -> Result<GradientStats, ProgressError> {
        progress::gradient_stats(&self.validation, batch, epoch)
    }

    /// Progress after so many epochs.
    pub fn progress_after(&self, n_epochs: u32) -> Result<f64, ProgressError> {
        progress::progress_after(&self.validation, n_epochs)
    }
}

/// All step times of a folder: `placements.csv` merged by nodes, replicas and batch, then `scalability.csv` if it is
/// there.
pub(crate) fn read_measurements(folder: &Path) -> Result<Vec<(Point, StepTime)>, FileError> {
    let placements = read_placements(&folder.join("placements.csv"))?;
    let scalability = folder.join("scalability.csv");
    let scalability = if scalability.exists() { read_scalability(&scalability)? } else { Vec::new() };
    Ok(all_measurements(&placements, scalability))
}

fn step_time(row: &Row<'_>) -> Result<StepTime, FileError> {
    let time = StepTime { step_secs: row.amount("step_time")?, sync_secs: row.amount("sync_time")? };
    if time.step_secs <= 0.0 {
        return Err(row.wrong("step_time", "a positive number of seconds"));
    }
    if time.sync_secs > time.step_secs {
        return Err(row.wrong("sync_time", "at most the step time"));
    }
    Ok(time)
}

fn read_placements(file: &Path) -> Result<BTreeMap<Vec<u32>, Vec<Measurement>>, FileError> {
    let table = Table::open(file, &["placement", "local_bsz", "step_time", "sync_time"])?;
    let mut placements: BTreeMap<Vec<u32>, Vec<Measurement>> = BTreeMap::new();
    for row in table.rows() {
        let digits: Option<Vec<u32>> =
            row.text("placement").chars().map(|digit| digit.to_digit(10)).collect();
        let digits = digits.filter(|digits| !digits.is_empty() && !digits.contains(&0));
        let placement = digits.ok_or_else(|| row.wrong("placement", "digits from 1 to 9, a node each"))?;
        if placement != throughput::smallest_rotation(&placement) {
            return Err(row.wrong("placement", "in its smallest rotation"));
        }
        let local_batch = row.count("local_bsz")?;
        let measurements = placements.entry(placement).or_default();
        if let Some(last) = measurements.last().filter(|last| last.local_batch >= local_batch) {
            return Err(row.error(Problem::NotAscending {
                column: "local_bsz",
                value: local_batch.to_string(),
                previous: last.local_batch.to_string(),
            }));
        }
        measurements.push(Measurement { local_batch, time: step_time(&row)? });
    }
    Ok(placements)
}

fn read_scalability(file: &Path) -> Result<Vec<(Point, StepTime)>, FileError> {
    let table = Table::open(file, &["num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time"])?;
    let mut rows = Vec::new();
    for row in table.rows() {
        let point = Point {
            n_nodes: row.count("num_nodes")?,
            n_replicas: row.count("num_replicas")?,
            local_batch: row.count("local_bsz")?,
        };
        if point.n_replicas < point.n_nodes {
            return Err(row.wrong("num_replicas", "a replica on each node"));
        }
        rows.push((point, step_time(&row)?));
    }
    Ok(rows)
}

/// Every `validation-<batch>.csv` of a folder, by ascending batch.
pub(crate) fn read_validation(folder: &Path) -> Result<Vec<Validation>, FileError> {
    let unreadable = |error: std::io::Error| FileError {
        file: folder.to_owned(),
        line: 0,
        problem: Problem::Unreadable(error.to_string()),
    };
    let mut runs = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let batch = name.strip_prefix("validation-").and_then(|name| name.strip_suffix(".csv"));
        if let Some(batch) = batch.and_then(|batch| batch.parse().ok()) {
            runs.push(Validation { batch, epochs: read_epochs(&file)? });
        }
    }
    runs.sort_by_key(|run| run.batch);
    Ok(runs)
}

fn read_epochs(file: &Path) -> Result<Vec<Epoch>, FileError> {
    let table = Table::open(file, &["progress", "iteration", "grad_sqr", "grad_var"])?;
    let mut epochs: Vec<Epoch> = Vec::new();
    for row in table.rows() {
        let epoch = Epoch {
            progress: row.amount("progress")?,
            iterations: row.amount("iteration")?,
            gradient: GradientStats { sqr: row.amount("grad_sqr")?, var: row.amount("grad_var")? },
        };
        if epoch.gradient.var <= 0.0 && epoch.gradient.sqr <= 0.0 {
            return Err(row.wrong("grad_var", "positive, as it must be beside a `grad_sqr` of 0"));
        }
        if let Some(last) = epochs.last().filter(|last| last.progress >= epoch.progress) {
            return Err(row.error(Problem::NotAscending {
                column: "progress",
                value: epoch.progress.to_string(),
                previous: last.progress.to_string(),
            }));
        }
        epochs.push(epoch);
    }
    Ok(epochs)
}

/// The traces say the same as the table of applications.
fn check_limits(
    folder: &Path,
    limits: &Limits,
    placements: &BTreeMap<Vec<u32>, Vec<Measurement>>,
    validation: &[Validation],
) -> Result<(), FileError> {
    let batches = || placements.values().flatten().map(|measurement| measurement.local_batch);
    let fewest = validation.iter().map(|run| run.epochs.len()).min().unwrap_or(0);
    let fewest = u32::try_from(fewest).unwrap_or(u32::MAX);
    let comparisons = [
        ("the smallest batch trained with", validation.first().map_or(0, |run| run.batch), limits.init_batch),
        ("the largest batch trained with", validation.last().map_or(0, |run| run.batch), limits.max_batch),
        ("the smallest local batch", batches().min().unwrap_or(0), limits.min_local),
        // Some were measured further than they may go.
        ("the largest local batch", batches().max().unwrap_or(0).min(limits.max_local), limits.max_local),
        ("the fewest epochs of a run", fewest.min(limits.n_epochs), limits.n_epochs),
    ];
    match comparisons.into_iter().find(|(_, found, expected)| found != expected) {
        None => Ok(()),
        Some((what, found, expected)) => Err(FileError {
            file: folder.to_owned(),
            line: 0,
            problem: Problem::Contradiction {
                what,
                application: limits.name,
                found: found.into(),
                expected: expected.into(),
            },
        }),
    }
}

/// What the mesh spans: placements merged by nodes, replicas and batch and sorted, then the larger jobs in their order.
fn all_measurements(
    placements: &BTreeMap<Vec<u32>, Vec<Measurement>>,
    scalability: Vec<(Point, StepTime)>,
) -> Vec<(Point, StepTime)> {
    let mut merged: BTreeMap<Point, Vec<StepTime>> = BTreeMap::new();
    for (placement, measurements) in placements {
        let n_nodes = u32::try_from(placement.len()).unwrap_or(u32::MAX);
        let n_replicas = placement.iter().sum();
        for &Measurement { local_batch, time } in measurements {
            merged.entry(Point { n_nodes, n_replicas, local_batch }).or_default().push(time);
        }
    }
    let mean = |times: &[StepTime], value: fn(&StepTime) -> f64| {
        times.iter().map(value).sum::<f64>() / times.len() as f64
    };
    let merged = merged.into_iter().map(|(point, times)| {
        let step_secs = mean(&times, |time| time.step_secs);
        (point, StepTime { step_secs, sync_secs: mean(&times, |time| time.sync_secs) })
    });
    merged.chain(scalability).collect()
}
