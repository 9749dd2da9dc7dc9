//! What happens, line by line, for whoever keeps the logs of services.

use pollux_api::rest::EventShown;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogForm {
    /// For people: when, and what.
    #[default]
    Text,
    /// For programs: an object a line.
    Json,
}

impl LogForm {
    /// An event on one line.
    pub(crate) fn line(self, event: &EventShown) -> String {
        match self {
            Self::Json => serde_json::to_string(event).unwrap_or_default(),
            Self::Text if event.actor == "scheduler" => format!("{} {}", event.at, event.text),
            Self::Text => format!("{} {} (by {})", event.at, event.text, event.actor),
        }
    }
}

/// Says all events until there are no more. Blocks, so on a thread of its own: nobody waits for whoever reads.
pub(crate) fn keep_saying(mut events: Receiver<EventShown>, form: LogForm, say: fn(&str)) {
    loop {
        match events.blocking_recv() {
            Ok(event) => say(&form.line(&event)),
            // Whoever reads was too slow; `pollux events` has them.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = EventShown {
            seq: 3,
            at: "2026-01-01T00:00:00Z".to_owned(),
            actor: "ada".to_owned(),
            job: Some("bert".to_owned()),
            kind: "paused".to_owned(),
            text: "bert was paused".to_owned(),
        };
        assert_eq!(LogForm::Text.line(&event), "2026-01-01T00:00:00Z bert was paused (by ada)");
        let read: serde_json::Value = serde_json::from_str(&LogForm::Json.line(&event)).expect("JSON");
        assert_eq!((&read["kind"], &read["job"]), (&"paused".into(), &"bert".into()));
    }
}
