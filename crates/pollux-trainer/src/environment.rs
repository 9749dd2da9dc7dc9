//! What the environment tells a worker: torchrun's variables, and those of Pollux.

use std::path::PathBuf;

use pollux_api::client::{LinkOptions, LinkOptionsError};
use pollux_model::{GpuType, Placement};

/// Who this worker is and what it was given. Without any variable: alone, on no particular GPU, saving nothing.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Which replica this is.
    pub rank: u32,
    /// All replicas, and their nodes.
    pub placement: Placement,
    /// Where rank 0 listens.
    pub master: String,
    /// The type of its GPU.
    pub gpu_type: GpuType,
    /// Which start of the job this is.
    pub attempt: u64,
    /// The scheduler, where there is one.
    pub link: Option<LinkOptions>,
    /// The folder for checkpoints.
    pub checkpoints: Option<PathBuf>,
    /// What the job's file says of its batch, as JSON.
    pub batch: Option<String>,
    /// The profile to pace steps by, on an emulated cluster.
    pub profile: Option<PathBuf>,
}

/// Variables that make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// Not a number, or not one that fits.
    #[error("{name} is `{value}`; it must be {range}")]
    Number {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        range: String,
    },
    /// Several replicas, but no place to meet.
    #[error("WORLD_SIZE is {n_replicas}, but MASTER_PORT is not set: replicas need a place to meet")]
    NoPort {
        /// Replicas.
        n_replicas: u32,
    },
    /// The variables of the link.
    #[error(transparent)]
    Link(#[from] LinkOptionsError),
}

impl Environment {
    /// Reads it through `variable`.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, EnvironmentError> {
        let number = |name: &'static str, default: u32, range: &str| match variable(name) {
            None => Ok(default),
            Some(value) => value.parse().map_err(|_| out_of(name, &value, range)),
        };
        let n_replicas = number("WORLD_SIZE", 1, "a whole number from 1")?;
        if n_replicas == 0 {
            return Err(out_of("WORLD_SIZE", "0", "a whole number from 1"));
        }
        let n_nodes = number("NUM_NODES", 1, "a whole number from 1")?;
        let placement = Placement::new(n_nodes, n_replicas).ok_or_else(|| {
            let range = format!("from 1 to WORLD_SIZE, which is {n_replicas}");
            out_of("NUM_NODES", &n_nodes.to_string(), &range)
        })?;
        let range = format!("a whole number from 0 to {}", n_replicas - 1);
        let rank = number("RANK", 0, &range)?;
        if rank >= n_replicas {
            return Err(out_of("RANK", &rank.to_string(), &range));
        }
        let host = variable("MASTER_ADDR").unwrap_or_else(|| "127.0.0.1".to_owned());
        let port = match variable("MASTER_PORT") {
            None if n_replicas > 1 => return Err(EnvironmentError::NoPort { n_replicas }),
            None => 0,
            Some(value) => value.parse::<u16>().map_err(|_| out_of("MASTER_PORT", &value, "a port"))?,
        };
        let attempt = match variable("POLLUX_ATTEMPT") {
            None => 0,
            Some(value) => value.parse().map_err(|_| out_of("POLLUX_ATTEMPT", &value, "a whole number"))?,
        };
        let emulated = variable("POLLUX_EMULATED").is_some_and(|value| value == "1");
        let gpu_type = variable("POLLUX_GPU_TYPE").filter(|name| !name.is_empty());
        Ok(Self {
            rank,
            placement,
            // A bare IPv6 address needs brackets before its port.
            master: if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") },
            gpu_type: GpuType::new(gpu_type.as_deref().unwrap_or("cpu")),
            attempt,
            link: LinkOptions::from_env(&variable)?,
            checkpoints: variable("POLLUX_CHECKPOINT_PATH")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            batch: variable("POLLUX_BATCH").filter(|text| !text.is_empty()),
            profile: variable("POLLUX_EMULATED_PROFILE")
                .filter(|path| emulated && !path.is_empty())
                .map(PathBuf::from),
        })
    }
}

fn out_of(name: &'static str, value: &str, range: &str) -> EnvironmentError {
    EnvironmentError::Number { name, value: value.to_owned(), range: range.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
        let value = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Environment::read(value)
    }

    fn check_error(variables: &[(&str, &str)], expected: &str) {
        assert_eq!(read(variables).unwrap_err().to_string(), expected);
    }

    #[test]
    fn without_variables_it_is_alone() {
        let environment = read(&[]).unwrap();
        assert_eq!((environment.rank, environment.placement), (0, Placement::ALONE));
        assert!(environment.link.is_none() && environment.checkpoints.is_none());
    }

    #[test]
    fn a_profile_counts_on_emulated_clusters_alone() {
        let profile = ("POLLUX_EMULATED_PROFILE", "bert.json");
        assert!(read(&[profile]).unwrap().profile.is_none());
        assert!(read(&[profile, ("POLLUX_EMULATED", "1")]).unwrap().profile.is_some());
    }

    #[test]
    fn what_is_wrong_is_said() {
        check_error(
            &[("WORLD_SIZE", "2"), ("RANK", "2"), ("MASTER_PORT", "1")],
            "RANK is `2`; it must be a whole number from 0 to 1",
        );
        check_error(
            &[("WORLD_SIZE", "2")],
            "WORLD_SIZE is 2, but MASTER_PORT is not set: replicas need a place to meet",
        );
        check_error(&[("NUM_NODES", "2")], "NUM_NODES is `2`; it must be from 1 to WORLD_SIZE, which is 1");
        check_error(&[("WORLD_SIZE", "none")], "WORLD_SIZE is `none`; it must be a whole number from 1");
    }
}
