//! `pollux sim profile`.

use pollux_model::GpuType;
use pollux_sim::profile::{MakeRequest, make_profile, write_profile};

use super::args::ProfileArgs;
use super::failure::SimFailure;
use super::inputs;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(args: &ProfileArgs) -> Result<Output, Failure> {
    Ok(Output { data: make(args)?, ..Output::default() })
}

fn make(args: &ProfileArgs) -> Result<String, SimFailure> {
    inputs::exists(&args.traces)?;
    let folder = args.traces.file_name().unwrap_or_default().to_string_lossy();
    let source = args.source.clone().unwrap_or_else(|| format!("measurements in a folder `{folder}`"));
    let request = MakeRequest {
        restart_secs: args.restart,
        micro_max: args.micro_max,
        max_epochs: args.epochs.map(|epochs| epochs as usize),
        ..MakeRequest::new(&args.name, &source, GpuType::new(&args.gpu_type))
    };
    Ok(write_profile(&make_profile(&args.traces, &request)?))
}
