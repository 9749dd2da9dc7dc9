//! `pollux sim workload`.

use pollux_sim::campaign::World;
use pollux_sim::simulation::Options;
use pollux_sim::traces::TraceSpec;
use pollux_sim::workload::{Recipe, write_workload};

use super::args::WorkloadArgs;
use super::failure::SimFailure;
use super::inputs;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(args: &WorkloadArgs) -> Result<Output, Failure> {
    if TraceSpec::is_meant(&args.recipe) {
        return traced(args);
    }
    Ok(Output { data: generate(args)?, ..Output::default() })
}

fn generate(args: &WorkloadArgs) -> Result<String, SimFailure> {
    let recipe: Recipe = args.recipe.parse()?;
    let workload = world(args)?.generate(&recipe, args.seed)?;
    Ok(write_workload(&workload))
}

fn traced(args: &WorkloadArgs) -> Result<Output, Failure> {
    let trace = inputs::trace(&args.recipe)?;
    let workload = world(args)?.map_trace(&trace, args.seed).map_err(SimFailure::from)?;
    Ok(Output {
        data: write_workload(&workload),
        notes: trace.note().into_iter().collect(),
        ..Output::default()
    })
}

fn world(args: &WorkloadArgs) -> Result<World, SimFailure> {
    let profiles = inputs::profiles(&args.profiles, &args.cluster)?;
    let options = Options { cluster: args.cluster.clone(), ..Options::default() };
    Ok(World::Profiles { profiles, options })
}
