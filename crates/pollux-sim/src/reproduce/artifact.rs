//! The authors' own data, where they are given: their workloads in their world.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::lab::{Lab, LabError, Series};
use crate::campaign::World;
use crate::osdi21::{Application, Limits, Options};
use crate::workload::{Checks, Workload, read_workload};

/// The artifact's applications, and where its workloads are.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// Its applications by name.
    pub applications: BTreeMap<String, Arc<Application>>,
    /// The folder with `workloads`, `workloads-0.5`, `workloads-1.5` and `workloads-2.0`.
    pub folder: PathBuf,
}

/// The workloads there are of each load.
const WORKLOADS: [u32; 3] = [1, 2, 4];

impl Artifact {
    fn workloads(&self, load: f64) -> Result<Vec<Workload>, LabError> {
        let folder =
            if (load - 1.0).abs() < 1e-9 { "workloads".to_owned() } else { format!("workloads-{load:.1}") };
        let folder = self.folder.join(folder);
        let read = |number: u32| {
            let file = folder.join(format!("workload-{number}.csv"));
            let known = Limits::known();
            let read = read_workload(&file, Checks::known(&known));
            read.map_err(|error| LabError::Data(error.to_string()))
        };
        WORKLOADS.into_iter().map(read).collect()
    }
}

impl Lab {
    /// A policy on workloads 1, 2 and 4 of a load in the artifact's world; none if its data are not given.
    pub(super) fn artifact_runs(
        &self,
        policy: &str,
        load: f64,
        change: impl FnOnce(&mut Options),
    ) -> Result<Option<Series>, LabError> {
        let Some(artifact) = self.artifact() else { return Ok(None) };
        let mut options = Options::default();
        change(&mut options);
        let world = World::Osdi21 { applications: artifact.applications.clone(), options };
        let mut workloads = artifact.workloads(load)?;
        for workload in &mut workloads {
            // Workloads of one name are not the same at other loads.
            workload.name = format!("{} at {load}", workload.name);
        }
        Ok(self.runs_of(&[policy], workloads, &world)?.pop())
    }
}
