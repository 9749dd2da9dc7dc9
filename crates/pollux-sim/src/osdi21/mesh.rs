//! Step times where nothing was measured: SciPy's linear interpolation over a Delaunay triangulation.
//!
//! The artifact triangulates (nodes, replicas, local batch) in raw units. Its points lie on a grid, so that the
//! triangulation is one of many, and on faces where two of its simplices do not match the value depends on which of
//! them the search ends in. To agree to the digit we take both from SciPy: a tool in Python
//! (`python/osdi21_table.py`, run by `cargo xtask osdi21-table`) writes down, for every whole batch, the simplex that
//! SciPy 1.10.1 uses. The table holds no step times; those come from the traces.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::throughput::StepTime;

/// The format this reader knows.
const VERSION: u32 = 1;

/// The simplices SciPy uses, of all applications.
#[derive(Clone, Debug)]
pub struct MeshTable {
    file: PathBuf,
    applications: BTreeMap<String, WireMesh>,
}

/// A table that cannot be used, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It has not been made.
    #[error(
        "{} does not exist; `cargo xtask osdi21-table` makes it of the traces (a minute; needs Python 3.9 to 3.11)",
        .file.display()
    )]
    Absent {
        /// Where it was looked for.
        file: PathBuf,
    },
    /// It cannot be read, or is something else.
    #[error("{}: {reason}; `cargo xtask osdi21-table` makes it anew", .file.display())]
    Unusable {
        /// The table.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

#[derive(Deserialize)]
struct WireTable {
    version: u32,
    applications: BTreeMap<String, WireMesh>,
}

#[derive(Clone, Debug, Deserialize)]
struct WireMesh {
    points: Vec<[u32; 3]>,
    simplices: Vec<[usize; 4]>,
    transforms: Vec<[f64; 12]>,
    lines: Vec<WireLine>,
}

#[derive(Clone, Debug, Deserialize)]
struct WireLine {
    nodes: u32,
    replicas: u32,
    /// First batch and simplex, in turns.
    runs: Vec<i64>,
}

/// What step times are interpolated over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) n_nodes: u32,
    pub(crate) n_replicas: u32,
    pub(crate) local_batch: u32,
}

/// The triangulation of one application, with the step times at its corners.
#[derive(Clone, Debug, Default)]
pub(super) struct Mesh {
    /// By nodes and replicas, each ascending.
    lines: BTreeMap<(u32, u32), Vec<Run>>,
    simplices: Vec<Simplex>,
}

/// From a batch up to that of the next run.
#[derive(Clone, Copy, Debug)]
struct Run {
    first_batch: u32,
    /// None outside the hull.
    simplex: Option<usize>,
}

#[derive(Clone, Debug)]
struct Simplex {
    corners: [StepTime; 4],
    /// From a point relative to `origin` to the first three barycentric coordinates.
    matrix: [[f64; 3]; 3],
    origin: [f64; 3],
}

impl MeshTable {
    /// Reads the table that `cargo xtask osdi21-table` left.
    pub fn load(file: &Path) -> Result<Self, TableError> {
        match std::fs::read(file) {
            Ok(bytes) => Self::parse(file, &bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(TableError::Absent { file: file.to_owned() })
            }
            Err(error) => Err(unusable(file, format!("cannot be read: {error}"))),
        }
    }

    fn parse(file: &Path, bytes: &[u8]) -> Result<Self, TableError> {
        let table: WireTable =
            serde_json::from_slice(bytes).map_err(|error| unusable(file, error.to_string()))?;
        if table.version != VERSION {
            return Err(unusable(file, format!("version {} is not {VERSION}", table.version)));
        }
        Ok(Self { file: file.to_owned(), applications: table.applications })
    }

    /// The mesh of an application over its measurements, which must be those the table was made of.
    pub(super) fn mesh(&self, application: &str, measured: &[(Point, StepTime)]) -> Result<Mesh, TableError> {
        let fail = |reason: &str| unusable(&self.file, format!("`{application}`: {reason}"));
        let wire = self.applications.get(application).ok_or_else(|| fail("is not in the table"))?;
        let points = measured.iter().map(|(point, _)| [point.n_nodes, point.n_replicas, point.local_batch]);
        if !points.eq(wire.points.iter().copied()) {
            return Err(fail("the table was made of other traces"));
        }
        if wire.simplices.len() != wire.transforms.len() {
            return Err(fail("not every simplex has its transform"));
        }
        let mut mesh = Mesh::default();
        for (corners, transform) in wire.simplices.iter().zip(&wire.transforms) {
            if corners.iter().any(|&corner| corner >= measured.len()) {
                return Err(fail("a simplex has a corner that is no point"));
            }
            let row = |index: usize| std::array::from_fn(|column| transform[3 * index + column]);
            mesh.simplices.push(Simplex {
                corners: corners.map(|corner| measured[corner].1),
                matrix: [row(0), row(1), row(2)],
                origin: row(3),
            });
        }
        for line in &wire.lines {
            let runs = runs(&line.runs, mesh.simplices.len()).ok_or_else(|| {
                fail(&format!("the runs of {} replicas on {} nodes make no sense", line.replicas, line.nodes))
            })?;
            mesh.lines.insert((line.nodes, line.replicas), runs);
        }
        Ok(mesh)
    }
}

fn unusable(file: &Path, reason: String) -> TableError {
    TableError::Unusable { file: file.to_owned(), reason }
}

/// Pairs of first batch and simplex, if they are such.
fn runs(wire: &[i64], n_simplices: usize) -> Option<Vec<Run>> {
    let (pairs, rest) = wire.as_chunks::<2>();
    let mut runs = Vec::with_capacity(pairs.len());
    for &[first, simplex] in pairs {
        let simplex = match simplex {
            -1 => None,
            simplex => Some(usize::try_from(simplex).ok().filter(|&simplex| simplex < n_simplices)?),
        };
        runs.push(Run { first_batch: u32::try_from(first).ok()?, simplex });
    }
    (rest.is_empty() && runs.is_sorted_by(|one, next| one.first_batch < next.first_batch)).then_some(runs)
}

impl Mesh {
    /// The step time at a point, or nothing outside the hull of the measurements.
    pub(super) fn step_time(&self, point: Point) -> Option<StepTime> {
        let runs = self.lines.get(&(point.n_nodes, point.n_replicas))?;
        let begun = runs.partition_point(|run| run.first_batch <= point.local_batch);
        let simplex = runs.get(begun.checked_sub(1)?)?.simplex?;
        let at = [point.n_nodes, point.n_replicas, point.local_batch].map(f64::from);
        Some(self.simplices[simplex].step_time(at))
    }
}

impl Simplex {
    /// The corners' values, weighted by barycentric coordinates; terms are added in SciPy's order.
    fn step_time(&self, at: [f64; 3]) -> StepTime {
        let mut weights = [0.0; 4];
        weights[3] = 1.0;
        for (index, row) in self.matrix.iter().enumerate() {
            for axis in 0..3 {
                weights[index] += row[axis] * (at[axis] - self.origin[axis]);
            }
            weights[3] -= weights[index];
        }
        let mut time = StepTime { step_secs: 0.0, sync_secs: 0.0 };
        for (weight, corner) in weights.iter().zip(&self.corners) {
            time.step_secs += weight * corner.step_secs;
            time.sync_secs += weight * corner.sync_secs;
        }
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One simplex with corners 1 away from (1, 1, 1) along each axis.
    const TABLE: &str = r#"{ "version": 1, "scipy": "1.10.1", "applications": { "toy": {
        "points": [[2, 1, 1], [1, 2, 1], [1, 1, 2], [1, 1, 1]],
        "simplices": [[0, 1, 2, 3]],
        "transforms": [[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0]],
        "lines": [{ "nodes": 1, "replicas": 1, "runs": [1, 0, 3, -1] },
                  { "nodes": 2, "replicas": 1, "runs": [1, 0, 2, -1] }] } } }"#;

    fn measured() -> Vec<(Point, StepTime)> {
        [([2, 1, 1], 2.0), ([1, 2, 1], 3.0), ([1, 1, 2], 5.0), ([1, 1, 1], 1.0)]
            .map(|([n_nodes, n_replicas, local_batch], step_secs)| {
                let time = StepTime { step_secs, sync_secs: step_secs / 4.0 };
                (Point { n_nodes, n_replicas, local_batch }, time)
            })
            .to_vec()
    }

    fn mesh(table: &str) -> Result<Mesh, TableError> {
        MeshTable::parse(Path::new("table.json"), table.as_bytes())?.mesh("toy", &measured())
    }

    #[test]
    fn corners_have_their_own_time_and_the_middle_the_mean() {
        let mesh = mesh(TABLE).unwrap();
        for (point, time) in measured().into_iter().filter(|(point, _)| point.n_replicas == 1) {
            assert_eq!(mesh.step_time(point), Some(time));
        }
        let mean = StepTime { step_secs: 2.75, sync_secs: 0.6875 };
        assert_eq!(mesh.simplices[0].step_time([1.25, 1.25, 1.25]), mean);
    }

    #[test]
    fn outside_the_runs_there_is_nothing() {
        let mesh = mesh(TABLE).unwrap();
        for (n_nodes, n_replicas, local_batch) in [(1, 1, 0), (1, 1, 3), (2, 1, 2), (1, 3, 1)] {
            assert_eq!(mesh.step_time(Point { n_nodes, n_replicas, local_batch }), None);
        }
    }

    #[test]
    fn what_is_wrong_with_a_table_is_said() {
        let check = |from: &str, to: &str, expected: &str| {
            assert!(TABLE.contains(from));
            let message = mesh(&TABLE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(message.starts_with("table.json: ") && message.contains(expected), "{message}");
        };
        check(
            "\"version\": 1",
            "\"version\": 2",
            "version 2 is not 1; `cargo xtask osdi21-table` makes it anew",
        );
        check("[2, 1, 1]", "[2, 1, 9]", "`toy`: the table was made of other traces");
        check("toy", "bert", "`toy`: is not in the table");
        check("[0, 1, 2, 3]", "[0, 1, 2, 4]", "a corner that is no point");
        check("[[0, 1, 2, 3]]", "[]", "not every simplex has its transform");
        for runs in ["[1, 0, 1, -1]", "[1, 1]", "[1, -2]", "[1]", "[-1, 0]"] {
            check("[1, 0, 3, -1]", runs, "the runs of 1 replicas on 1 nodes make no sense");
        }
        check("\"lines\"", "\"line\"", "missing field `lines`");
    }

    #[test]
    fn a_missing_table_says_how_to_make_it() {
        let error = MeshTable::load(Path::new("nowhere/table.json")).unwrap_err();
        let message = "nowhere/table.json does not exist; `cargo xtask osdi21-table` makes it of the traces";
        assert!(error.to_string().starts_with(message), "{error}");
    }
}
