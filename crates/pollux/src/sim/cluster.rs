//! `--cluster` and `--scaler`: a shape, or a file that describes rented nodes.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;
use pollux_sim::cloud::{Cloud, Scaler, read_cloud};
use pollux_sim::{ClusterShape, ShapeError};

use super::failure::SimFailure;

/// What `--cluster` says.
#[derive(Clone, Debug)]
pub(crate) enum ClusterArg {
    /// Nodes that stay.
    Shape(ClusterShape),
    /// A JSON file.
    File(PathBuf),
}

impl FromStr for ClusterArg {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let path = Path::new(text);
        let is_file = path.extension().is_some_and(|extension| extension == "json");
        if is_file { Ok(Self::File(path.to_owned())) } else { text.parse().map(Self::Shape) }
    }
}

/// Another rule than the file's.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScalerArg {
    /// Hold the utility of GPUs, by goodput, in a band
    Goodput,
    /// Add nodes while throughput grows, after Or et al.
    Throughput,
    /// Leave sizes as they are
    None,
}

impl ClusterArg {
    /// The nodes there may be, and where they are rented if they are.
    pub(super) fn read(
        &self,
        scaler: Option<ScalerArg>,
    ) -> Result<(ClusterShape, Option<Cloud>), SimFailure> {
        let file = match self {
            Self::Shape(shape) => return Ok((shape.clone(), None)),
            Self::File(file) => file,
        };
        let mut cloud = read_cloud(file)?;
        let patience = |of: Scaler| cloud.scaler.map_or(of.patience, |own| own.patience);
        let is_same =
            |of: Scaler, own: Scaler| std::mem::discriminant(&of.rule) == std::mem::discriminant(&own.rule);
        let other = |of: Scaler| match cloud.scaler {
            Some(own) if is_same(of, own) => own,
            _ => Scaler { patience: patience(of), ..of },
        };
        match scaler {
            None => {}
            Some(ScalerArg::None) => cloud.scaler = None,
            Some(ScalerArg::Goodput) => cloud.scaler = Some(other(Scaler::GOODPUT)),
            Some(ScalerArg::Throughput) => cloud.scaler = Some(other(Scaler::THROUGHPUT)),
        }
        Ok((cloud.shape(), Some(cloud)))
    }
}
