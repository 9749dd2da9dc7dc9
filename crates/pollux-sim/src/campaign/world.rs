//! Where the jobs of a campaign run.

use std::collections::BTreeMap;
use std::sync::Arc;

use pollux_policy::AnyPolicy;

use crate::cluster::ClusterShape;
use crate::faults::Faults;
use crate::log::Kept;
use crate::outcome::Run;
use crate::profile::{PackedOn, Profile};
use crate::traces::{Trace, Work, workload_of};
use crate::workload::{GenerateError, Known, Recipe, Runtimes, Workload, generate};
use crate::{osdi21, simulation};

/// A simulated world, but for its seed.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of it in a campaign")]
pub enum World {
    /// Jobs train as their applications' profiles say; nothing ticks.
    Profiles {
        /// The profiles by name.
        profiles: BTreeMap<String, Arc<Profile>>,
        /// All else.
        options: simulation::Options,
    },
    /// The authors' artifact, turn by turn.
    Osdi21 {
        /// Its applications by name.
        applications: BTreeMap<String, Arc<osdi21::Application>>,
        /// All else.
        options: osdi21::Options,
    },
}

/// A run that a world cannot have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorldError {
    /// Among profiles.
    #[error(transparent)]
    Profiles(#[from] simulation::SimulationError),
    /// In the artifact's world.
    #[error(transparent)]
    Osdi21(#[from] osdi21::SimulationError),
}

impl World {
    /// The nodes.
    pub fn cluster(&self) -> &ClusterShape {
        match self {
            Self::Profiles { options, .. } => &options.cluster,
            Self::Osdi21 { options, .. } => &options.cluster,
        }
    }

    /// What goes wrong; nothing ever does in the artifact's world.
    pub fn faults(&self) -> Faults {
        match self {
            Self::Profiles { options, .. } => options.faults.clone(),
            Self::Osdi21 { .. } => Faults::default(),
        }
    }

    /// Says what is to be kept of each run; everything unless it is said.
    pub fn keep(&mut self, kept: Kept) {
        match self {
            Self::Profiles { options, .. } => options.log = kept,
            Self::Osdi21 { options, .. } => options.log = kept,
        }
    }

    /// What is kept of each run.
    pub fn kept(&self) -> Kept {
        match self {
            Self::Profiles { options, .. } => options.log,
            Self::Osdi21 { options, .. } => options.log,
        }
    }

    /// What a reader of workloads must know of the applications.
    pub fn known(&self) -> Vec<Known<'_>> {
        match self {
            Self::Profiles { profiles, .. } => profiles.values().map(|profile| profile.known()).collect(),
            Self::Osdi21 { applications, .. } => {
                let known = osdi21::Limits::known().into_iter();
                known.filter(|known| applications.contains_key(known.name)).collect()
            }
        }
    }

    /// A workload after a recipe, of the applications of this world on its nodes.
    pub fn generate(&self, recipe: &Recipe, seed: u64) -> Result<Workload, GenerateError> {
        match self {
            Self::Profiles { profiles, options } => {
                generate_on(&options.cluster, profiles.values(), recipe, seed)
            }
            Self::Osdi21 { applications, .. } => {
                let named = applications.iter();
                let runtimes = named.map(|(name, known)| (name.clone(), known.as_ref() as &dyn Runtimes));
                generate(recipe, &runtimes.collect(), seed)
            }
        }
    }

    /// A workload made of a trace, of the applications of this world on its nodes.
    pub fn map_trace(&self, trace: &Trace, seed: u64) -> Result<Workload, GenerateError> {
        match self {
            Self::Profiles { profiles, options } => {
                let packed = profiles.values().filter_map(|known| PackedOn::cluster(known, &options.cluster));
                let packed: Vec<PackedOn<'_>> = packed.collect();
                let named = packed.iter().map(|on| (on.profile.name().to_owned(), on as &dyn Runtimes));
                workload_of(trace, &named.collect(), seed)
            }
            Self::Osdi21 { .. } if trace.spec.work == Work::Trace => Err(GenerateError::NoScale),
            Self::Osdi21 { applications, .. } => {
                let named = applications.iter();
                let runtimes = named.map(|(name, known)| (name.clone(), known.as_ref() as &dyn Runtimes));
                workload_of(trace, &runtimes.collect(), seed)
            }
        }
    }

    /// Runs a workload.
    pub fn simulate(&self, jobs: &Workload, policy: &dyn AnyPolicy, seed: u64) -> Result<Run, WorldError> {
        match self {
            Self::Profiles { profiles, options } => {
                let options = simulation::Options { seed, ..options.clone() };
                Ok(simulation::simulate(jobs, profiles, policy, &options)?)
            }
            Self::Osdi21 { applications, options } => {
                let options = osdi21::Options { seed, ..options.clone() };
                Ok(osdi21::simulate(jobs, applications, policy, &options)?)
            }
        }
    }
}

/// A workload after a recipe, of applications with these profiles on the nodes of a cluster.
pub(super) fn generate_on<'a>(
    cluster: &ClusterShape,
    profiles: impl Iterator<Item = &'a Arc<Profile>>,
    recipe: &Recipe,
    seed: u64,
) -> Result<Workload, GenerateError> {
    let packed: Vec<PackedOn<'_>> =
        profiles.filter_map(|profile| PackedOn::cluster(profile, cluster)).collect();
    let runtimes = packed.iter().map(|packed| (packed.profile.name().to_owned(), packed as &dyn Runtimes));
    generate(recipe, &runtimes.collect(), seed)
}
