//! `pollux sim workload`.

use pollux_sim::campaign::World;
use pollux_sim::simulation::Options;
use pollux_sim::workload::{Recipe, write_workload};

use super::args::WorkloadArgs;
use super::failure::SimFailure;
use super::inputs;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(args: &WorkloadArgs) -> Result<Output, Failure> {
    Ok(Output { data: generate(args)?, ..Output::default() })
}

fn generate(args: &WorkloadArgs) -> Result<String, SimFailure> {
    let recipe: Recipe = args.recipe.parse()?;
    let profiles = inputs::profiles(&args.profiles, &args.cluster)?;
    let options = Options { cluster: args.cluster.clone(), ..Options::default() };
    let workload = World::Profiles { profiles, options }.generate(&recipe, args.seed)?;
    Ok(write_workload(&workload))
}
