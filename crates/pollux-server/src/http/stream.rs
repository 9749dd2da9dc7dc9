//! What is watched while it happens: events, and logs of jobs.

use std::convert::Infallible;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, Stream, StreamExt as _};
use pollux_api::rest::Problem;
use serde::Deserialize;
use tokio::sync::broadcast::error::RecvError;

use super::App;
use super::access::Caller;
use super::body::{Path, Query};
use super::cluster::{Page, past_events};
use super::error::ApiError;
use super::jobs::seen;

/// How often a log that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Most that is read of a log at once.
const CHUNK: u64 = 64 * 1024;

/// Watches events as server-sent ones: those after `after` first, then each as it happens.
#[utoipa::path(get, path = "/v1/events/watch", tag = "cluster", params(Page), responses(
    (status = 200, description = "server-sent events, each with an event as JSON", content_type = "text/event-stream"),
    (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn events(
    State(app): State<App>,
    caller: Caller,
    Query(page): Query<Page>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    caller.may_look()?;
    // Watch first, then read what was before: nothing falls in between, and what comes twice is told by its number.
    let watched = app.service.watch();
    let (after, job) = (page.after, page.job.clone());
    let before = if after.is_some() { past_events(&app, page).await? } else { Vec::new() };
    let last = before.last().map_or(after.unwrap_or(0), |event| event.seq);
    let later = stream::unfold(watched, |mut watched| async move {
        loop {
            match watched.recv().await {
                Ok(event) => return Some((event, watched)),
                // Too slow: what was missed can be read by `after`.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    let later = later.filter(move |event| {
        let is_asked_for = event.seq > last && job.as_ref().is_none_or(|job| event.job.as_ref() == Some(job));
        std::future::ready(is_asked_for)
    });
    let all = stream::iter(before).chain(later).map(|event| {
        let data = serde_json::to_string(&event).unwrap_or_default();
        Ok(Event::default().id(event.seq.to_string()).event(event.kind.replace(' ', "_")).data(data))
    });
    Ok(Sse::new(all).keep_alive(KeepAlive::default()))
}

/// Which part of a log.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Which replica; the first if absent.
    pub rank: Option<u32>,
    /// Which start of the job; the latest if absent.
    pub attempt: Option<u32>,
    /// Only so many of the last lines.
    pub tail: Option<u32>,
    /// Go on until the attempt ends.
    #[serde(default)]
    pub follow: bool,
}

/// Shows what a replica printed.
#[utoipa::path(get, path = "/v1/jobs/{job}/logs", tag = "jobs", params(("job" = String, Path, description = "name or number"), Which),
    responses((status = 200, body = String, content_type = "text/plain"), (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(super) async fn logs(
    State(app): State<App>,
    caller: Caller,
    Path(job): Path<String>,
    Query(which): Query<Which>,
) -> Result<Response, ApiError> {
    let rank = which.rank.unwrap_or(0);
    let wanted = which.attempt;
    let name = job.clone();
    let (id, attempt, folder) = app
        .service
        .ask(move |live| {
            let id = seen(live, &caller, &name)?;
            let hint = "; the job has not started yet".to_owned();
            let none = || ApiError::NotFound { what: "log of", name: name.clone(), hint };
            let attempt = wanted.or_else(|| live.latest_attempt(id)).ok_or_else(none)?;
            Ok::<_, ApiError>((id, attempt, live.run_folder(id, attempt)))
        })
        .await??;
    let path = folder.join(format!("{rank}.log"));
    if !path.exists() {
        let hint = format!("; attempt {attempt} has no rank {rank}, or its log was removed");
        return Err(ApiError::NotFound { what: "log of", name: job, hint });
    }
    let older = if which.tail.is_none() { older_logs(&path) } else { Vec::new() };
    let mut text = Vec::new();
    for file in older.iter().chain([&path]) {
        text.extend(tokio::fs::read(file).await.unwrap_or_default());
    }
    let position = text.len() as u64 - older_len(&older);
    if let Some(lines) = which.tail {
        text = last_lines(&text, lines as usize).to_vec();
    }
    let first = stream::once(std::future::ready(Ok::<_, std::io::Error>(Bytes::from(text))));
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    if !which.follow {
        return Ok((headers, Body::from_stream(first)).into_response());
    }
    let service = app.service.clone();
    let rest = stream::unfold((path, service, position), move |(path, service, position)| async move {
        loop {
            let is_over = service.ask(move |live| live.is_over(id, attempt)).await.unwrap_or(true);
            let (bytes, position) = read_from(path.clone(), position).await;
            if !bytes.is_empty() {
                return Some((Ok(Bytes::from(bytes)), (path, service, position)));
            }
            if is_over {
                return None;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    });
    Ok((headers, Body::from_stream(first.chain(rest))).into_response())
}

fn older_logs(path: &std::path::Path) -> Vec<PathBuf> {
    let numbered = (1..).map(|number| PathBuf::from(format!("{}.{number}", path.display())));
    let mut older: Vec<PathBuf> = numbered.take_while(|path| path.exists()).collect();
    older.reverse();
    older
}

fn older_len(older: &[PathBuf]) -> u64 {
    older.iter().filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum()
}

fn last_lines(text: &[u8], lines: usize) -> &[u8] {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let mut breaks = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let start = match lines {
        0 => text.len(),
        _ => breaks.nth(lines - 1).map_or(0, |(place, _)| place + 1),
    };
    &text[start..]
}

/// What a file holds beyond a position, and the position after it. A file that was rotated is read from its beginning.
async fn read_from(path: PathBuf, position: u64) -> (Vec<u8>, u64) {
    let read = move || -> std::io::Result<(Vec<u8>, u64)> {
        let mut file = std::fs::File::open(path)?;
        let from = if file.metadata()?.len() < position { 0 } else { position };
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        let n_read = file.take(CHUNK).read_to_end(&mut bytes)?;
        Ok((bytes, from + n_read as u64))
    };
    let found = tokio::task::spawn_blocking(read).await.ok().and_then(Result::ok);
    found.unwrap_or((Vec::new(), position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole() {
        let text = b"a\nbb\nccc\n";
        assert_eq!(last_lines(text, 0), b"");
        assert_eq!(last_lines(text, 1), b"ccc\n");
        assert_eq!(last_lines(text, 2), b"bb\nccc\n");
        assert_eq!(last_lines(text, 9), text);
        assert_eq!(last_lines(b"", 3), b"");
    }
}
