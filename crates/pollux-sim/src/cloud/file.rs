//! Rented clusters as JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pollux_core::{NodeSpec, Pool, PoolId, ScaleRule, Scaler};
use pollux_model::GpuType;
use serde::Deserialize;

use super::{Cloud, CloudPool, Reclaims};

/// The version of the format.
const VERSION: u64 = 1;
/// The shortest warning: a job must have saved its state by then.
const LEAST_WARNING_SECS: f64 = 60.0;

/// A file that describes no cluster.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// It cannot be read.
    #[error("{}: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is not of the form that is expected.
    #[error("{}: `{field}`: {problem}", .file.display())]
    Field {
        /// The file.
        file: PathBuf,
        /// Where.
        field: String,
        /// What is wrong.
        problem: String,
    },
}

/// Reads a cluster from a file.
pub fn read_cloud(file: &Path) -> Result<Cloud, CloudError> {
    let unreadable = |source| CloudError::Unreadable { file: file.to_owned(), source };
    parse_cloud(file, &std::fs::read_to_string(file).map_err(unreadable)?)
}

/// Reads a cluster from the text of a file, whose name is for messages alone.
///
/// ```
/// use std::path::Path;
/// use pollux_sim::cloud::parse_cloud;
///
/// let text = r#"{"version": 1, "pools": [
///     {"name": "t4", "gpu_type": "t4", "gpus": 4, "nodes": {"min": 1, "max": 16}, "price_per_hour": 3.9}
/// ]}"#;
/// let cloud = parse_cloud(Path::new("cloud.json"), text).unwrap();
/// assert_eq!(cloud.shape().to_string(), "16x4:t4");
/// let error = parse_cloud(Path::new("cloud.json"), &text.replace("3.9", "-1")).unwrap_err();
/// assert_eq!(error.to_string(), "cloud.json: `pools[0].price_per_hour`: must be a number from 0 on, not -1");
/// ```
pub fn parse_cloud(file: &Path, text: &str) -> Result<Cloud, CloudError> {
    let fail = |field: String, problem: String| CloudError::Field { file: file.to_owned(), field, problem };
    let mut json = serde_json::Deserializer::from_str(text);
    let read: File = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| fail(error.path().to_string(), error.inner().to_string()))?;
    json.end().map_err(|error| fail(".".to_owned(), error.to_string()))?;
    if read.version != VERSION {
        return Err(fail("version".into(), format!("must be {VERSION}, not {}", read.version)));
    }
    if read.pools.is_empty() {
        return Err(fail("pools".into(), "must not be empty".into()));
    }
    let mut pools: Vec<CloudPool> = Vec::new();
    for (index, line) in read.pools.into_iter().enumerate() {
        let at = |(field, problem): (&str, String)| fail(format!("pools[{index}].{field}"), problem);
        let pool = line.pool(index).map_err(at)?;
        if pools.iter().any(|other| other.name == pool.name) {
            return Err(at(("name", format!("`{}` is the name of an earlier pool", pool.name))));
        }
        pools.push(pool);
    }
    let scaler = read.scaler.map(ScalerLine::scaler).transpose();
    let scaler = scaler.map_err(|(field, problem)| fail(format!("scaler.{field}"), problem))?;
    let network = positive("network", read.network).map_err(|(field, why)| fail(field.into(), why))?;
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let name = read.name.or(stem).unwrap_or_default();
    Ok(Cloud { name, pools, scaler, network })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u64,
    name: Option<String>,
    #[serde(default, rename = "source")]
    _source: Option<String>,
    pools: Vec<PoolLine>,
    #[serde(default)]
    scaler: Option<ScalerLine>,
    #[serde(default = "one")]
    network: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PoolLine {
    name: String,
    gpu_type: String,
    gpus: u32,
    nodes: Nodes,
    #[serde(default)]
    price_per_hour: f64,
    #[serde(default)]
    ready_s: f64,
    #[serde(default)]
    min_hold_s: f64,
    #[serde(default)]
    spot: Option<Spot>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nodes {
    min: u32,
    max: u32,
    start: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spot {
    reclaims_per_hour: f64,
    #[serde(default = "two_minutes")]
    warning_s: f64,
}

#[derive(Deserialize)]
#[serde(tag = "rule", rename_all = "lowercase", deny_unknown_fields)]
enum ScalerLine {
    Goodput { low: Option<f64>, high: Option<f64>, patience_s: Option<f64> },
    Cost { job_hour: f64, patience_s: Option<f64> },
    Throughput { worth: Option<f64>, patience_s: Option<f64> },
}

fn one() -> f64 {
    1.0
}

fn two_minutes() -> f64 {
    120.0
}

/// The field, and what is wrong with it.
type Wrong = (&'static str, String);

fn positive(field: &'static str, value: f64) -> Result<f64, Wrong> {
    let is_fine = value > 0.0 && value.is_finite();
    if is_fine { Ok(value) } else { Err((field, format!("must be a positive number, not {value}"))) }
}

fn from_zero(field: &'static str, value: f64) -> Result<f64, Wrong> {
    let is_fine = value >= 0.0 && value.is_finite();
    if is_fine { Ok(value) } else { Err((field, format!("must be a number from 0 on, not {value}"))) }
}

/// At most a year.
fn secs(field: &'static str, value: f64) -> Result<Duration, Wrong> {
    Ok(Duration::from_secs_f64(from_zero(field, value)?.min(365.0 * 86_400.0)))
}

impl PoolLine {
    fn pool(self, index: usize) -> Result<CloudPool, Wrong> {
        let Nodes { min: least, max: most, start } = self.nodes;
        if most == 0 || most > 10_000 || least > most {
            return Err(("nodes", format!("must be from 0 <= min <= max to 10000, not {least} to {most}")));
        }
        let start = start.unwrap_or(least);
        if !(least..=most).contains(&start) {
            return Err(("nodes.start", format!("must be from {least} to {most}, not {start}")));
        }
        if !(1..=64).contains(&self.gpus) {
            return Err(("gpus", format!("must be from 1 to 64, not {}", self.gpus)));
        }
        let reclaims = self.spot.map(|spot| {
            if spot.warning_s < LEAST_WARNING_SECS {
                let why = format!("must be at least {LEAST_WARNING_SECS}, so that jobs can save their state");
                return Err(("spot.warning_s", why));
            }
            let per_hour = from_zero("spot.reclaims_per_hour", spot.reclaims_per_hour)?;
            Ok(Reclaims { per_hour, warning: secs("spot.warning_s", spot.warning_s)? })
        });
        let reclaims = reclaims.transpose()?;
        let pool = Pool {
            id: PoolId(u32::try_from(index).unwrap_or(u32::MAX)),
            node: NodeSpec { gpu_type: GpuType::new(&self.gpu_type), gpus: self.gpus },
            price: from_zero("price_per_hour", self.price_per_hour)?,
            ready_after: secs("ready_s", self.ready_s)?,
            min_hold: secs("min_hold_s", self.min_hold_s)?,
            least,
            most,
            spot: reclaims.is_some(),
        };
        Ok(CloudPool { name: self.name, pool, start, reclaims })
    }
}

impl ScalerLine {
    fn scaler(self) -> Result<Scaler, Wrong> {
        let patience = |of: Scaler, given: Option<f64>| {
            given.map_or(Ok(of.patience), |given| secs("patience_s", positive("patience_s", given)?))
        };
        match self {
            Self::Goodput { low, high, patience_s } => {
                let (low, high) = (low.unwrap_or(0.35), high.unwrap_or(0.65));
                if !(0.0 <= low && low < high && high <= 1.0) {
                    let why = format!("must be 0 <= low < high <= 1, not {low} and {high}");
                    return Err(("low", why));
                }
                let patience = patience(Scaler::GOODPUT, patience_s)?;
                Ok(Scaler { rule: ScaleRule::Goodput { low, high }, patience })
            }
            Self::Cost { job_hour, patience_s } => {
                let job_hour = positive("job_hour", job_hour)?;
                let patience = patience(Scaler::GOODPUT, patience_s)?;
                Ok(Scaler { rule: ScaleRule::Cost { job_hour }, patience })
            }
            Self::Throughput { worth, patience_s } => {
                let worth = positive("worth", worth.unwrap_or(0.1))?;
                let patience = patience(Scaler::THROUGHPUT, patience_s)?;
                Ok(Scaler { rule: ScaleRule::Throughput { worth }, patience })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pool: &str, rest: &str) -> String {
        format!(
            r#"{{"version": 1, "pools": [{{"name": "a", "gpu_type": "t4", "gpus": 4,
            "nodes": {{"min": 1, "max": 8}}{pool}}}]{rest}}}"#
        )
    }

    fn check_error(pool: &str, rest: &str, expected: &str) {
        let error = parse_cloud(Path::new("c.json"), &text(pool, rest)).unwrap_err().to_string();
        assert!(error.starts_with("c.json: ") && error.contains(expected), "{error}");
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let cloud = parse_cloud(Path::new("c.json"), &text("", "")).unwrap();
        assert_eq!((cloud.name.as_str(), cloud.scaler, cloud.network), ("c", None, 1.0));
        assert_eq!((cloud.pools[0].start, cloud.pools[0].reclaims), (1, None));
        let rest = r#", "scaler": {"rule": "goodput"}"#;
        let cloud = parse_cloud(Path::new("c.json"), &text("", rest)).unwrap();
        assert_eq!(cloud.scaler, Some(Scaler::GOODPUT));
    }

    #[test]
    fn what_is_wrong_is_named() {
        check_error(r#", "ready_s": -1"#, "", "`pools[0].ready_s`: must be a number from 0 on");
        check_error(r#", "color": 1"#, "", "unknown field `color`");
        check_error(r#", "spot": {"reclaims_per_hour": 1, "warning_s": 5}"#, "", "at least 60");
        check_error("", r#", "network": 0"#, "`network`: must be a positive number");
        check_error("", r#", "scaler": {"rule": "goodput", "low": 0.9}"#, "0 <= low < high <= 1");
        check_error("", r#", "scaler": {"rule": "magic"}"#, "unknown variant `magic`");
    }
}
