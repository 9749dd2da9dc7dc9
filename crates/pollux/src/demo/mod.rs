//! `pollux demo`: real jobs on an emulated cluster, under Pollux and then under FIFO.
//!
//! | question | module |
//! | --- | --- |
//! | which jobs, and when? | `jobs` |
//! | who starts the scheduler, and who cleans up? | `scheduler` |
//! | what happens while jobs train? | `course` |
//! | how is it shown? | `screen` |
//! | what is told at the end? | `story` |

mod course;
mod jobs;
mod scheduler;
mod screen;
mod story;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;

use crate::failure::Failure;
use crate::live::LiveFailure;
use crate::output::Output;
use course::Contender;
use jobs::Scenario;

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Three small jobs instead of eight: about half a minute
    #[arg(long)]
    quick: bool,

    /// Keep journals, logs and every training step in this folder [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// The worker [default: `pollux-trainer` beside this command, else that of the PATH]
    #[arg(long, value_name = "FILE")]
    trainer: Option<PathBuf>,
}

/// Tells the whole story on standard output, as it happens.
pub(crate) fn run(args: &DemoArgs) -> Result<Output, Failure> {
    Ok(show(args)?)
}

fn show(args: &DemoArgs) -> Result<Output, LiveFailure> {
    let interrupted = Interrupted::by_signals()?;
    let scenario = if args.quick { &jobs::QUICK } else { &jobs::FULL };
    let trainer = jobs::trainer(args.trainer.as_deref())?;
    let folder = Folder::new(args.out.as_deref())?;
    jobs::write_profiles(&folder.path)?;
    tell(&introduction(scenario));
    let stage =
        course::Stage { scenario, trainer: &trainer, folder: &folder.path, interrupted: &interrupted };
    let pollux = stage.run(Contender::Pollux)?;
    let fifo = stage.run(Contender::Fifo)?;
    tell(&story::end(&pollux, &fifo));
    for contender in Contender::ALL {
        tell(&story::simulated(&folder.path.join(contender.policy()).join("pollux.db"))?);
    }
    let notes = folder.kept.then(|| {
        let shown = folder.path.display();
        format!("{shown} has what happened: `pollux replay {shown}/pollux/pollux.db` goes through it again")
    });
    Ok(Output { notes: notes.into_iter().collect(), ..Output::default() })
}

fn introduction(scenario: &Scenario) -> String {
    format!(
        "{} jobs arrive within {} s on {} EMULATED GPUs ({}): processes, gradients, checkpoints, signals and the scheduler\n\
         are real, but each training step is stretched to what a profile of a made-up GPU says.\n",
        scenario.jobs.len(),
        scenario.jobs.last().map_or(0, |job| job.at_secs),
        scenario.gpus,
        scenario.cluster,
    )
}

/// Writes to standard output at once. Whoever reads may have seen enough, as in `| head`.
fn tell(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Whether someone wants it to end.
struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Remembers ctrl-C, SIGTERM and a terminal that is gone; a second one ends the process there and then.
    fn by_signals() -> Result<Self, LiveFailure> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let flag = Arc::<AtomicBool>::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal finds the flag down, and raises it.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
                .map_err(|error| LiveFailure::failed(format!("ctrl-C cannot be caught: {error}")))?;
        }
        Ok(Self(flag))
    }

    fn check(&self) -> Result<(), LiveFailure> {
        if self.0.load(Ordering::SeqCst) { Err(LiveFailure::Interrupted) } else { Ok(()) }
    }
}

/// Where everything lies while it runs; gone afterwards unless someone wants to keep it.
struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    fn new(out: Option<&Path>) -> Result<Self, LiveFailure> {
        let temporary = || std::env::temp_dir().join(format!("pollux-demo-{}", std::process::id()));
        let path = out.map_or_else(temporary, Path::to_owned);
        let failed = |error: std::io::Error| {
            LiveFailure::failed(format!("cannot make the folder {}: {error}", path.display()))
        };
        std::fs::create_dir_all(&path).map_err(failed)?;
        let path = std::fs::canonicalize(&path).map_err(failed)?;
        if Contender::ALL.iter().any(|contender| path.join(contender.policy()).exists()) {
            return Err(LiveFailure::usage(format!(
                "{} already has a demo; name another folder with --out",
                path.display()
            )));
        }
        Ok(Self { path, kept: out.is_some() })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed is in a temporary folder all the same.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
