//! Where the artifact's data lies, for tests that compare with it, and the built-in profiles for those that do not.
#![allow(clippy::print_stderr, reason = "what was not compared is said")]
#![allow(dead_code, reason = "each test uses a part")]
#![allow(unreachable_pub, reason = "shared by tests, not a library")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pollux_policy::{AnyPolicy, Genetic, policies};
use pollux_sim::osdi21::{APPLICATIONS, Application, Limits, MeshTable, TableError};
use pollux_sim::profile::{Profile, builtin};
use pollux_sim::workload::Submission;

/// The built-in profiles by name.
pub fn profiles() -> BTreeMap<String, Arc<Profile>> {
    builtin().into_iter().map(|profile| (profile.name().to_owned(), profile)).collect()
}

/// Every policy; those that breed their plans breed few, as the laws hold for bad plans too.
pub fn quick_policies() -> Vec<Box<dyn AnyPolicy>> {
    let quick = |policy: Box<dyn AnyPolicy>| -> Box<dyn AnyPolicy> {
        let few = |genetic| Genetic { population: 10, generations: 10, ..genetic };
        let [paper, osdi21] = [Genetic::paper(), Genetic::osdi21()];
        match policy.about() {
            about if about == AnyPolicy::about(&paper) => Box::new(few(paper)),
            about if about == AnyPolicy::about(&osdi21) => Box::new(few(osdi21)),
            _ => policy,
        }
    };
    policies().into_iter().map(quick).collect()
}

/// A job that asks for so many GPUs and the initial batch on each, as far as it may grow.
pub fn submission(index: usize, at_secs: u64, application: &str, gpus: u32) -> Submission {
    let limits = *profiles()[application].limits();
    let batch = (limits.initial().0 * u64::from(gpus)).min(limits.max().0);
    Submission {
        name: format!("{application}-{index}"),
        at_secs,
        application: application.to_owned(),
        gpus,
        batch,
        work: None,
        group: None,
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of reference data: `POLLUX_DATA`, or `../shared/data` beside the repository.
pub fn data() -> Option<PathBuf> {
    let path = std::env::var_os("POLLUX_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("NOT COMPARED WITH REFERENCE DATA: {} does not exist; set POLLUX_DATA", path.display());
    None
}

/// The table of simplices: `POLLUX_OSDI21_TABLE`, or where `cargo xtask osdi21-table` leaves it.
fn table() -> Option<MeshTable> {
    let named = std::env::var_os("POLLUX_OSDI21_TABLE").map(PathBuf::from);
    let may_be_absent = named.is_none();
    match MeshTable::load(&named.unwrap_or_else(|| root().join("target/osdi21-table.json"))) {
        Ok(table) => Some(table),
        Err(error @ TableError::Absent { .. }) if may_be_absent => {
            eprintln!("NOT COMPARED WITH THE ARTIFACT'S STEP TIMES: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The data folder and what its traces tell.
pub struct Reference {
    pub data: PathBuf,
    pub applications: Vec<Arc<Application>>,
}

/// All of it, if it is there.
pub fn reference() -> Option<Reference> {
    let (data, table) = (data()?, table()?);
    let traces = data.join("pollux-osdi21/traces");
    let load = |limits| {
        Arc::new(Application::load(&traces, limits, &table).unwrap_or_else(|error| panic!("{error}")))
    };
    Some(Reference { applications: APPLICATIONS.iter().map(load).collect(), data })
}

impl Reference {
    /// The applications by name.
    pub fn by_name(&self) -> BTreeMap<String, Arc<Application>> {
        let named = self.applications.iter();
        named.map(|application| (application.limits().name.to_owned(), application.clone())).collect()
    }

    /// The application with these limits.
    pub fn application(&self, limits: &Limits) -> &Arc<Application> {
        let found = self.applications.iter().find(|application| application.limits() == limits);
        found.expect("all are loaded")
    }
}

/// GPUs of a job that is alone: whole nodes, then the rest.
pub fn packed(n_replicas: u32) -> Vec<u32> {
    (0..n_replicas).step_by(4).map(|placed| (n_replicas - placed).min(4)).collect()
}
