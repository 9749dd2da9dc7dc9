//! Where the scheduler is, and as whom to speak to it.

use std::path::{Path, PathBuf};

use pollux_api::client::Client;
use serde::{Deserialize, Serialize};

use super::args::At;
use super::failure::LiveFailure;

/// What a running scheduler writes into its state folder.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Running {
    /// Its address.
    pub(crate) url: String,
    /// Its process.
    pub(crate) pid: u32,
}

/// The state folder.
pub(crate) fn state_folder(at: &At) -> PathBuf {
    if let Some(state) = &at.state {
        return state.clone();
    }
    let home = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")));
    home.unwrap_or_else(|| PathBuf::from(".")).join("pollux")
}

/// The scheduler that runs with this state folder, if one does.
pub(crate) fn running(state: &Path) -> Option<Running> {
    let text = std::fs::read_to_string(state.join("server.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// A way to the scheduler.
pub(crate) fn client(at: &At) -> Result<Client, LiveFailure> {
    let state = state_folder(at);
    let server = match &at.server {
        Some(server) => server.clone(),
        None => running(&state).ok_or_else(|| LiveFailure::NotRunning { state: state.clone() })?.url,
    };
    let from_variable = std::env::var("POLLUX_TOKEN").ok();
    let token = match (&at.token_file, from_variable) {
        (Some(file), _) => read_token(file)?,
        (None, Some(token)) => token,
        (None, None) => read_token(&state.join("admin.token"))?,
    };
    let client = Client::new(&server, &token);
    match &at.ca_file {
        None => Ok(client),
        Some(file) => {
            let pem = std::fs::read(file).map_err(|error| LiveFailure::Failed {
                text: format!("cannot read the certificates {}: {error}", file.display()),
                hint: None,
            })?;
            let trusting = client.trusting(&pem);
            trusting.ok_or_else(|| LiveFailure::failed(format!("{} holds no certificate", file.display())))
        }
    }
}

fn read_token(file: &Path) -> Result<String, LiveFailure> {
    std::fs::read_to_string(file).map(|text| text.trim().to_owned()).map_err(|error| LiveFailure::Failed {
        text: format!("cannot read the token file {}: {error}", file.display()),
        hint: Some(
            "ask an administrator for one (`pollux token create`), and name it with --token-file".to_owned(),
        ),
    })
}

/// A part of a path, with what may not stand there written otherwise.
pub(crate) fn part(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths_are_escaped() {
        assert_eq!(part("bert-2"), "bert-2");
        assert_eq!(part("a b/ü?"), "a%20b%2F%C3%BC%3F");
    }
}
