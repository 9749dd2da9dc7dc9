//! A look at the surroundings.

use std::path::Path;

use pollux_api::rest::ServiceShown;
use pollux_server::engine::gpus::Gpus;
use serde::Serialize;

use super::args::{At, Shown};
use super::failure::LiveFailure;
use super::place::{client, running, state_folder};
use super::show;
use crate::output::Output;

/// One thing that was looked at.
#[derive(Serialize)]
struct Finding {
    what: &'static str,
    is_good: bool,
    found: String,
    advice: Option<String>,
}

pub(crate) fn run(args: &Shown) -> Result<Output, LiveFailure> {
    let state = state_folder(&args.at);
    let findings = [gpus(), folder(&state), limits(), service(&args.at, &state)];
    let row = |finding: &Finding| {
        let mark = if finding.is_good { "ok" } else { "look" };
        let advice = finding.advice.clone().unwrap_or_default();
        vec![finding.what.to_owned(), mark.to_owned(), finding.found.clone(), advice]
    };
    show::rows(args.output, &findings, &["WHAT", "STATE", "FOUND", "WHAT TO DO"], row, |finding| {
        finding.what.to_owned()
    })
}

fn gpus() -> Finding {
    let what = "GPUs";
    let gpus = Gpus::discover("this machine");
    if let Gpus::Absent(why) = &gpus {
        return missing(what, why);
    }
    let found = gpus.nodes().iter().map(|node| format!("{} {}", node.gpus.len(), node.gpu_type));
    Finding { what, is_good: true, found: found.collect::<Vec<_>>().join(", "), advice: None }
}

fn missing(what: &'static str, found: &str) -> Finding {
    let advice = "install the NVIDIA driver, or try things out with `pollux up --emulate 4x4:t4`".to_owned();
    Finding { what, is_good: false, found: found.to_owned(), advice: Some(advice) }
}

fn folder(state: &Path) -> Finding {
    let what = "state folder";
    let probe = state.join(format!(".probe-{}", std::process::id()));
    let tried = std::fs::create_dir_all(state).and_then(|()| std::fs::write(&probe, b"x"));
    let _ = std::fs::remove_file(&probe);
    match tried {
        Ok(()) => Finding {
            what,
            is_good: true,
            found: format!("{} can be written", state.display()),
            advice: None,
        },
        Err(error) => Finding {
            what,
            is_good: false,
            found: format!("{}: {error}", state.display()),
            advice: Some("choose another with --state, or mend its rights".to_owned()),
        },
    }
}

fn limits() -> Finding {
    let what = "memory and CPU limits";
    let is_there = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
    let probe = Path::new("/sys/fs/cgroup").join(format!("pollux-probe-{}", std::process::id()));
    let can_make = is_there && std::fs::create_dir(&probe).is_ok();
    let _ = std::fs::remove_dir(&probe);
    if can_make {
        return Finding { what, is_good: true, found: "control groups can be made".to_owned(), advice: None };
    }
    Finding {
        what,
        is_good: false,
        found: "control groups cannot be made".to_owned(),
        advice: Some("jobs run without limits; run as a service with Delegate=yes to have them".to_owned()),
    }
}

fn service(at: &At, state: &Path) -> Finding {
    let what = "scheduler";
    let asked = client(at).and_then(|client| Ok(client.get::<ServiceShown>("/v1/service")?));
    match asked {
        Ok(service) => {
            let found = format!(
                "version {} with {} GPUs, up since {}",
                service.version, service.gpus, service.up_since
            );
            let advice = service.warnings.first().cloned();
            Finding { what, is_good: advice.is_none(), found, advice }
        }
        Err(_) if running(state).is_none() => Finding {
            what,
            is_good: false,
            found: "none runs with this state folder".to_owned(),
            advice: Some("`pollux up` starts one".to_owned()),
        },
        Err(failure) => Finding { what, is_good: false, found: failure.to_string(), advice: failure.hint() },
    }
}
