//! What a simulation is made of, read from files.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pollux_sim::campaign::{Contender, Source, World};
use pollux_sim::faults::Faults;
use pollux_sim::osdi21::{self, APPLICATIONS, Application, MeshTable};
use pollux_sim::profile::{Profile, builtin, read_profiles};
use pollux_sim::traces::{Trace, TraceSpec, parse_trace};
use pollux_sim::workload::{Checks, Workload, parse_workload};
use pollux_sim::{ClusterShape, simulation};

use super::args::{Compat, RunArgs};
use super::cluster::ClusterArg;
use super::failure::SimFailure;
use crate::cli::PlainOutput;
use crate::failure::Failure;
use crate::output;

/// Where `cargo xtask osdi21-table` leaves its table.
const TABLE: &str = "target/osdi21-table.json";

/// Arguments that contradict each other.
pub(super) fn check(args: &RunArgs) -> Result<(), SimFailure> {
    let compat = args.compat.is_some();
    let builtin = args.traces.as_deref().is_some_and(is_builtin);
    let odd_round = args.round.is_some_and(|secs| secs.fract() != 0.0);
    let senseless = [
        (
            compat && builtin,
            "`--compat` and `--traces builtin`",
            "the artifact's world runs on the authors' traces",
        ),
        (
            compat && args.restart.is_some(),
            "`--compat` and `--restart`",
            "in the artifact a restart takes 30 s",
        ),
        (
            compat && args.noise.is_some(),
            "`--compat` and `--noise`",
            "in the artifact measurements are exact",
        ),
        (compat && args.faults.is_some(), "`--compat` and `--faults`", "in the artifact nothing goes wrong"),
        (
            compat && args.report_every.is_some(),
            "`--compat` and `--report-every`",
            "in the artifact agents report every turn",
        ),
        (compat && odd_round, "`--compat` and `--round`", "in the artifact a round is whole seconds"),
        (
            !compat && args.repaired,
            "`--repaired`",
            "the mistake it repairs is the artifact's; add `--compat osdi21`",
        ),
        (
            args.scaler.is_some() && matches!(args.cluster, ClusterArg::Shape(_)),
            "`--scaler`",
            "only rented nodes can become more or fewer; give a file as `--cluster`",
        ),
        (
            compat && matches!(args.cluster, ClusterArg::File(_)),
            "`--compat` and a file as `--cluster`",
            "in the artifact nodes are not rented",
        ),
        (
            args.faults.as_ref().is_some_and(Faults::befalls_nodes)
                && matches!(args.cluster, ClusterArg::File(_)),
            "`--faults` and a file as `--cluster`",
            "rented nodes come and go as their file says, and no other faults befall them; set `spot` of a pool there, or \
             leave out `mtbf`, `reclaim` and `straggler` (`restart-failure` and `work-error` go with both)",
        ),
        (!compat && args.table.is_some(), "`--table`", "only `--compat osdi21` needs a table"),
        (
            args.show.is_some() && matches!(args.output, PlainOutput::Json),
            "`--show` and `-o json`",
            "a story is for people; `--out` keeps the timeline for programs",
        ),
    ];
    match senseless.into_iter().find(|(is_so, ..)| *is_so) {
        Some((_, flags, why)) => Err(SimFailure::Senseless { flags, why }),
        None => Ok(()),
    }
}

/// The world that arguments describe.
pub(super) fn world(args: &RunArgs) -> Result<World, Failure> {
    let (cluster, cloud) = args.cluster.read(args.scaler)?;
    let (interference, history) = (args.interference, args.history);
    match args.compat {
        Some(Compat::Osdi21) => {
            let mut options =
                osdi21::Options { cluster, interference, history, ..osdi21::Options::default() };
            options.repaired = args.repaired;
            if let Some(secs) = args.round {
                options.turn_secs = Duration::from_secs_f64(secs).as_secs();
            }
            let applications = applications(args.traces.clone(), args.table.clone())?;
            Ok(World::Osdi21 { applications, options })
        }
        None => {
            let mut profiles = profiles(args.traces.as_deref().unwrap_or(Path::new(BUILTIN)), &cluster)?;
            for journal in args.workload.iter().filter_map(|text| text.strip_prefix(JOURNAL)) {
                profiles.extend(journaled(Path::new(journal))?.1);
            }
            let mut options = simulation::Options { cluster, interference, history, ..Default::default() };
            options.round = args.round.map(Duration::from_secs_f64);
            options.report_every = args.report_every.map(Duration::from_secs_f64);
            options.restart = args.restart.unwrap_or_default();
            options.noise = args.noise.unwrap_or(0.0);
            options.faults = args.faults.clone().unwrap_or_default();
            options.cloud = cloud;
            Ok(World::Profiles { profiles, options })
        }
    }
}

const BUILTIN: &str = "builtin";
/// What a workload made of a journal begins with.
const JOURNAL: &str = "journal:";

/// The jobs of a journal, and their profiles.
fn journaled(file: &Path) -> Result<(Workload, BTreeMap<String, Arc<Profile>>), Failure> {
    let journal = crate::live::journal::read(file)?;
    Ok(super::journal::workload(&journal, super::journal::OVERHEAD_SECS)?)
}

fn is_builtin(traces: &Path) -> bool {
    traces == Path::new(BUILTIN)
}

/// Profiles by name, at least one of which knows a type of GPU that the cluster has.
pub(super) fn profiles(
    traces: &Path,
    cluster: &ClusterShape,
) -> Result<BTreeMap<String, Arc<Profile>>, SimFailure> {
    let profiles = if is_builtin(traces) {
        builtin()
    } else {
        exists(traces)?;
        read_profiles(traces)?
    };
    let types = cluster.gpu_types();
    let knows = |profile: &Arc<Profile>| types.iter().any(|gpu_type| profile.step_times(gpu_type).is_some());
    if !profiles.iter().any(knows) {
        let names = |types: &[pollux_model::GpuType]| types.iter().map(ToString::to_string).collect();
        let mut known: Vec<_> = profiles.iter().flat_map(|profile| profile.gpu_types().cloned()).collect();
        known.sort();
        known.dedup();
        return Err(SimFailure::NoGpuType(names(&types), names(&known)));
    }
    Ok(profiles.into_iter().map(|profile| (profile.name().to_owned(), profile)).collect())
}

/// The artifact's applications by name, from the authors' traces and the table made of them.
pub(super) fn applications(
    traces: Option<PathBuf>,
    table: Option<PathBuf>,
) -> Result<BTreeMap<String, Arc<Application>>, SimFailure> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || Some(variable("POLLUX_DATA")?.join("pollux-osdi21/traces"));
    let traces = traces.or_else(data).ok_or(SimFailure::NoTraces)?;
    exists(&traces)?;
    let table = table.or_else(|| variable("POLLUX_OSDI21_TABLE"));
    let table = MeshTable::load(&table.unwrap_or_else(|| PathBuf::from(TABLE)))?;
    let load = |limits: &'static osdi21::Limits| {
        Ok((limits.name.to_owned(), Arc::new(Application::load(&traces, limits, &table)?)))
    };
    APPLICATIONS.iter().map(load).collect()
}

/// So many threads as are asked for, or as there are cores.
pub(super) fn threads(asked: Option<u32>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    asked.map_or_else(cores, |threads| threads as usize)
}

pub(super) fn exists(folder: &Path) -> Result<(), SimFailure> {
    if folder.is_dir() { Ok(()) } else { Err(SimFailure::NoFolder { path: folder.to_owned() }) }
}

/// The workloads that arguments name, each by a label of its own.
pub(super) fn sources(
    texts: &[String],
    world: &World,
    contenders: &[Contender],
) -> Result<Vec<Source>, Failure> {
    let known = world.known();
    let heeded = contenders.iter().any(Contender::heeds_requests);
    let checks = Checks { known: &known, most_gpus: heeded.then(|| world.cluster().gpus()) };
    let mut found: Vec<Result<Source, PathBuf>> = Vec::new();
    for text in texts {
        let path = Path::new(text);
        if let Some(journal) = text.strip_prefix(JOURNAL) {
            found.push(Ok(Source::Fixed(journaled(Path::new(journal))?.0)));
        } else if TraceSpec::is_meant(text) {
            found.push(Ok(Source::Traced(trace(text)?)));
        } else if text == "generate" || text.starts_with("generate:") {
            found.push(Ok(Source::Generated(text.parse().map_err(SimFailure::from)?)));
        } else if path.is_dir() {
            found.extend(csv_files(path)?.into_iter().map(Err));
        } else {
            found.push(Err(path.to_owned()));
        }
    }
    let is_alone = |file: &Path| {
        let files = found.iter().filter_map(|found| found.as_ref().err());
        files.filter(|other| other.file_stem() == file.file_stem()).count() == 1
    };
    let source = |found: &Result<Source, PathBuf>| match found {
        Ok(source) => Ok(source.clone()),
        Err(file) => {
            let mut workload = read(file, checks)?;
            if !is_alone(file) {
                let folder = file.parent().and_then(Path::file_name).unwrap_or(OsStr::new("."));
                workload.name = format!("{}/{}", folder.to_string_lossy(), workload.name);
            }
            Ok(Source::Fixed(workload))
        }
    };
    found.iter().map(source).collect()
}

/// The part of a trace that is asked for.
pub(super) fn trace(text: &str) -> Result<Trace, Failure> {
    let spec: TraceSpec = text.parse().map_err(SimFailure::from)?;
    let bytes = output::read(&spec.file)?;
    Ok(parse_trace(&spec, &bytes).map_err(SimFailure::from)?)
}

fn read(file: &Path, checks: Checks<'_>) -> Result<Workload, Failure> {
    let bytes = output::read(file)?;
    Ok(parse_workload(file, &bytes, checks).map_err(SimFailure::from)?)
}

fn csv_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |source| Failure::Read { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        files.push(entry.map_err(unreadable)?.path());
    }
    files.retain(|file| file.extension().is_some_and(|ending| ending == "csv"));
    files.sort();
    if files.is_empty() {
        return Err(SimFailure::NoWorkloads { folder: folder.to_owned() }.into());
    }
    Ok(files)
}
