//! The `pollux-trainer` command: exit 0 when done, 143 when it left as asked, 1 on failure, 2 for wrong arguments.

use std::process::ExitCode;

use clap::Parser;
use pollux_trainer::environment::Environment;
use pollux_trainer::options::Options;
use pollux_trainer::record::warn;
use pollux_trainer::signals::{Asked, LEFT_EXIT_CODE};
use pollux_trainer::{Ended, TrainError, run};

fn main() -> ExitCode {
    let options = Options::parse();
    let asked = match Asked::by_sigterm() {
        Ok(asked) => asked,
        Err(error) => {
            warn(&format!("error: SIGTERM cannot be caught: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let environment = Environment::read(|name| std::env::var(name).ok()).map_err(TrainError::from);
    match environment.and_then(|environment| run(&options, &environment, &asked)) {
        Ok(Ended::Done { .. } | Ended::Followed) => ExitCode::SUCCESS,
        Ok(Ended::Left) => ExitCode::from(LEFT_EXIT_CODE),
        Err(error) => {
            warn(&format!("error: {error}"));
            match error {
                TrainError::Options(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}
