//! The demo's jobs: shipped with the command, so that it needs no checkout.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pollux_api::job_file::{BatchMode, JobFile};

use super::course::Contender;
use crate::live::LiveFailure;

/// What the job files tell their workers: seconds between reports.
pub(super) const REPORT_EVERY_SECS: f64 = 1.0;

/// Which jobs arrive when, on which cluster.
pub(super) struct Scenario {
    /// Its shape.
    pub(super) cluster: &'static str,
    /// All its GPUs.
    pub(super) gpus: u32,
    /// In the order of arrival.
    pub(super) jobs: &'static [Arrival],
    /// Where jobs are cut short: their steps at the initial batch.
    pub(super) steps: Option<u32>,
    /// How long one policy may take.
    pub(super) limit: Duration,
}

/// A job and when it comes.
pub(super) struct Arrival {
    pub(super) at_secs: u64,
    application: &'static Application,
}

struct Application {
    /// The job file's name and text.
    file: (&'static str, &'static str),
    /// The profile's name and text.
    profile: (&'static str, &'static str),
}

macro_rules! application {
    ($name:literal) => {
        Application {
            file: (
                concat!("examples/demo/", $name, ".yaml"),
                include_str!(concat!("../../../../examples/demo/", $name, ".yaml")),
            ),
            profile: (
                concat!("demo-", $name, ".json"),
                include_str!(concat!("../../../../examples/profiles/demo-", $name, ".json")),
            ),
        }
    };
}

static VISION: Application = application!("vision");
static LANGUAGE: Application = application!("language");
static SPEECH: Application = application!("speech");
static RANKING: Application = application!("ranking");

const fn arrival(at_secs: u64, application: &'static Application) -> Arrival {
    Arrival { at_secs, application }
}

/// Eight jobs that queue for 8 GPUs under FIFO, as on a shared cluster by day.
pub(super) static FULL: Scenario = Scenario {
    cluster: "2x4:t4",
    gpus: 8,
    jobs: &[
        arrival(0, &LANGUAGE),
        arrival(0, &VISION),
        arrival(2, &LANGUAGE),
        arrival(4, &RANKING),
        arrival(6, &SPEECH),
        arrival(9, &VISION),
        arrival(12, &RANKING),
        arrival(15, &SPEECH),
    ],
    steps: None,
    limit: Duration::from_mins(6),
};

/// Three of them, cut short.
pub(super) static QUICK: Scenario = Scenario {
    cluster: "1x4:t4",
    gpus: 4,
    jobs: &[arrival(0, &VISION), arrival(1, &SPEECH), arrival(2, &RANKING)],
    steps: Some(120),
    limit: Duration::from_mins(4),
};

/// The worker: the one that is named, that beside this command, or that of the PATH.
pub(super) fn trainer(named: Option<&Path>) -> Result<PathBuf, LiveFailure> {
    const NAME: &str = "pollux-trainer";
    let beside = || std::env::current_exe().ok().map(|command| command.with_file_name(NAME));
    let on_path = || {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders).map(|folder| folder.join(NAME)).find(|file| file.is_file())
    };
    let found = match named {
        Some(file) => Some(file.to_owned()),
        None => beside().filter(|file| file.is_file()).or_else(on_path),
    };
    let found = found.and_then(|file| std::fs::canonicalize(file).ok()).filter(|file| file.is_file());
    found.ok_or_else(|| LiveFailure::Failed {
        text: "the demo's jobs need `pollux-trainer`, which is neither beside this command nor on the PATH"
            .to_owned(),
        hint: Some(
            "`cargo build --release -p pollux-trainer` makes it; `--trainer FILE` names another".to_owned(),
        ),
    })
}

/// Writes the profiles that pace the jobs.
pub(super) fn write_profiles(folder: &Path) -> Result<(), LiveFailure> {
    for application in [&VISION, &LANGUAGE, &SPEECH, &RANKING] {
        let (name, text) = application.profile;
        std::fs::write(folder.join(name), text).map_err(|error| {
            LiveFailure::failed(format!("cannot write {}: {error}", folder.join(name).display()))
        })?;
    }
    Ok(())
}

/// The job file as it is submitted: with this worker, whose steps go to the file `curve`. Under FIFO it trains with the batch its user
/// tuned for.
pub(super) fn prepared(
    arrival: &Arrival,
    steps: Option<u32>,
    contender: Contender,
    trainer: &Path,
    folder: &Path,
    curve: &Path,
) -> Result<JobFile, LiveFailure> {
    let Application { file: (name, text), profile: (profile, _) } = arrival.application;
    let mut file = JobFile::read(text.as_bytes(), name)?;
    if let Some(command) = file.command.first_mut() {
        *command = trainer.display().to_string();
    }
    file.command.extend(["--curve".to_owned(), curve.display().to_string()]);
    file.workdir = Some(folder.display().to_string());
    if let Some(emulate) = &mut file.emulate {
        emulate.profile = folder.join(profile).display().to_string();
    }
    if let (Some(steps), Some(at)) =
        (steps, file.command.iter().position(|word| word == "--steps-at-initial"))
    {
        file.command[at + 1] = steps.to_string();
    }
    if let Some(training) = &mut file.training {
        if let (Some(steps), Some(initial)) = (steps, training.batch.initial) {
            training.work = Some(f64::from(steps) * initial as f64);
        }
        if contender == Contender::Fifo {
            (training.batch.mode, training.batch.max) = (BatchMode::Fixed, None);
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(application: &'static Application, contender: Contender) -> JobFile {
        let arrival = Arrival { at_secs: 0, application };
        let (trainer, folder) = (Path::new("/bin/trainer"), Path::new("/demo"));
        prepared(&arrival, None, contender, trainer, folder, Path::new("/demo/0.csv")).unwrap()
    }

    #[test]
    fn fifo_gets_what_users_ask_for_and_a_fixed_batch() {
        let file = prepare(&VISION, Contender::Fifo);
        let batch = file.training.as_ref().unwrap().batch;
        assert_eq!((file.resources.gpus.request, batch.mode), (Some(2), BatchMode::Fixed));
        assert!(JobFile::from_json(&file.to_json()).is_ok());
        assert_eq!(
            (file.command[0].as_str(), file.emulate.unwrap().profile.as_str()),
            ("/bin/trainer", "/demo/demo-vision.json")
        );
    }

    #[test] // What the files declare is what their arguments make the worker do.
    fn declared_work_is_what_is_done() {
        for application in [&VISION, &LANGUAGE, &SPEECH, &RANKING] {
            let file = prepare(application, Contender::Pollux);
            let at = file.command.iter().position(|word| word == "--steps-at-initial").unwrap();
            let steps: f64 = file.command[at + 1].parse().unwrap();
            let training = file.training.unwrap();
            assert_eq!(training.work, Some(steps * training.batch.initial.unwrap() as f64), "{}", file.name);
        }
    }
}
