//! What is watched while it happens: logs, events, ends.

use std::io::{BufRead, Write as _};
use std::time::{Duration, Instant};

use pollux_api::rest::{EventShown, JobList, JobShown, JobState};

use super::args::{EventsArgs, Form, LogsArgs, WaitArgs};
use super::failure::LiveFailure;
use super::place::{client, part};
use super::show;
use crate::output::Output;

/// How often a job is looked at that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(crate) fn logs(args: &LogsArgs) -> Result<Output, LiveFailure> {
    let client = client(&args.at)?;
    let path = format!("/v1/jobs/{}/logs?rank={}", part(&args.job), args.rank);
    let tail = args.tail.map_or_else(String::new, |lines| format!("&tail={lines}"));
    if args.all_attempts {
        let job: JobShown = client.get(&format!("/v1/jobs/{}", part(&args.job)))?;
        for attempt in &job.attempts {
            crate::output::say(&format!("attempt {}:\n", attempt.attempt));
            copy(client.watch(&format!("{path}&attempt={}{tail}", attempt.attempt))?)?;
        }
        return Ok(Output::default());
    }
    let attempt = args.attempt.map_or_else(String::new, |attempt| format!("&attempt={attempt}"));
    copy(client.watch(&format!("{path}{attempt}{tail}&follow={}", args.follow))?)?;
    Ok(Output::default())
}

fn copy(mut from: impl BufRead) -> Result<(), LiveFailure> {
    let mut stdout = std::io::stdout().lock();
    loop {
        let bytes =
            from.fill_buf().map_err(|error| LiveFailure::failed(format!("the log broke off: {error}")))?;
        if bytes.is_empty() {
            return Ok(());
        }
        let n_bytes = bytes.len();
        // Whoever reads has seen enough, as in `| head`.
        if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
            return Ok(());
        }
        from.consume(n_bytes);
    }
}

pub(crate) fn events(args: &EventsArgs) -> Result<Output, LiveFailure> {
    let client = client(&args.shown.at)?;
    let job = args.job.as_ref().map_or_else(String::new, |job| format!("&job={}", part(job)));
    let form = args.shown.output;
    let past: Vec<EventShown> = client.get(&format!("/v1/events?limit={}{job}", args.limit))?;
    let row = |event: &EventShown| vec![event.at.clone(), event.actor.clone(), event.text.clone()];
    if !args.follow {
        return show::rows(form, &past, &["AT", "BY", "WHAT"], row, |event| event.seq.to_string());
    }
    let line = |event: &EventShown| match form {
        Form::Json => serde_json::to_string(event).unwrap_or_default(),
        _ => format!("{}  {}", event.at, event.text),
    };
    let mut stdout = std::io::stdout().lock();
    for event in &past {
        let _ = writeln!(stdout, "{}", line(event));
    }
    let after = past.last().map_or(0, |event| event.seq);
    for text in client.watch(&format!("/v1/events/watch?after={after}{job}"))?.lines() {
        let text = text.map_err(|error| LiveFailure::failed(format!("the scheduler is gone: {error}")))?;
        let event =
            text.strip_prefix("data:").and_then(|data| serde_json::from_str::<EventShown>(data.trim()).ok());
        if let Some(event) = event
            && writeln!(stdout, "{}", line(&event)).and_then(|()| stdout.flush()).is_err()
        {
            break;
        }
    }
    Ok(Output::default())
}

pub(crate) fn wait(args: &WaitArgs) -> Result<Output, LiveFailure> {
    let client = client(&args.at)?;
    let mut jobs = args.jobs.clone();
    if jobs.is_empty() {
        let all: JobList = client.get("/v1/jobs?state=active")?;
        jobs = all.jobs.into_iter().map(|job| job.name).collect();
    }
    let began = Instant::now();
    let mut ended = Vec::new();
    for job in &jobs {
        loop {
            let shown: JobShown = client.get(&format!("/v1/jobs/{}", part(job)))?;
            if shown.state.has_ended() {
                ended.push(shown);
                break;
            }
            if args.timeout.is_some_and(|secs| began.elapsed().as_secs_f64() > secs) {
                return Err(LiveFailure::TimedOut);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
    let lines = ended.iter().map(|job| format!("{}: {}\n", job.name, job.state.word()));
    let data: String = lines.collect();
    let lost: Vec<&str> =
        ended.iter().filter(|job| job.state != JobState::Finished).map(|job| job.name.as_str()).collect();
    if lost.is_empty() {
        return Ok(Output { data, ..Output::default() });
    }
    Err(LiveFailure::Jobs(format!("not all jobs finished: {}", lost.join(", "))))
}
