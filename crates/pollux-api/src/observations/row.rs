//! One row of observations, by the columns its header names.

use std::fmt;

use csv::StringRecord;
use pollux_model::fit::Observation;
use pollux_model::{GpuType, Placement};

use super::error::{Expected, Problem};
use crate::near::nearest;

/// A column of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Nodes the job ran on.
    Nodes,
    /// Replicas in all, one per GPU.
    Replicas,
    /// Samples of one micro-batch on one GPU.
    LocalBsz,
    /// Seconds of a pass that does not synchronise.
    AccumTime,
    /// Seconds of the pass that does, with the optimizer's step.
    OptimTime,
    /// The kind of GPU; optional.
    GpuType,
    /// How much the row counts; optional.
    Weight,
}

impl Column {
    /// All of them, the required ones first.
    pub const ALL: [Self; 7] = [
        Self::Nodes,
        Self::Replicas,
        Self::LocalBsz,
        Self::AccumTime,
        Self::OptimTime,
        Self::GpuType,
        Self::Weight,
    ];

    /// Those that every file has.
    pub const REQUIRED: &[Self] = Self::ALL.split_at(5).0;

    /// Its name in the header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Replicas => "replicas",
            Self::LocalBsz => "local_bsz",
            Self::AccumTime => "accum_time_s",
            Self::OptimTime => "optim_time_s",
            Self::GpuType => "gpu_type",
            Self::Weight => "weight",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which column each field of a row belongs to.
pub(super) struct Header(Vec<Column>);

impl Header {
    pub(super) fn parse(record: &StringRecord) -> Result<Self, Problem> {
        if record.iter().all(|field| field.parse::<f64>().is_ok()) {
            return Err(Problem::NoHeader);
        }
        if record.len() == 1
            && let Some(separator) = record[0].chars().find(|c| matches!(c, ';' | '\t' | '|'))
        {
            return Err(Problem::Separator { separator });
        }
        let mut columns = Vec::with_capacity(record.len());
        for name in record {
            let column = Column::named(name).ok_or_else(|| Problem::UnknownColumn {
                column: name.to_owned(),
                near: nearest(name, Column::ALL.map(Column::name)).and_then(Column::named),
            })?;
            if columns.contains(&column) {
                return Err(Problem::DuplicateColumn { column });
            }
            columns.push(column);
        }
        match Column::REQUIRED.iter().find(|column| !columns.contains(column)) {
            Some(&column) => Err(Problem::MissingColumn { column }),
            None => Ok(Self(columns)),
        }
    }

    pub(super) fn row(&self, record: &StringRecord) -> Result<(GpuType, Observation), Problem> {
        if record.len() != self.0.len() {
            return Err(Problem::FieldCount { expected: self.0.len(), found: record.len() });
        }
        let row = Row { header: self, record };
        let (nodes, replicas) = (row.count(Column::Nodes)?, row.count(Column::Replicas)?);
        let micro_batch = row.count(Column::LocalBsz)?;
        let accum_secs = row.positive(Column::AccumTime, Expected::Seconds)?;
        let optim_secs = row.positive(Column::OptimTime, Expected::Seconds)?;
        let placement =
            Placement::new(nodes, replicas).ok_or(Problem::MoreNodesThanReplicas { nodes, replicas })?;
        let mut observation = Observation::new(placement, micro_batch, accum_secs, optim_secs)?;
        if self.0.contains(&Column::Weight) {
            observation = observation.with_weight(row.positive(Column::Weight, Expected::Weight)?)?;
        }
        let has_type = self.0.contains(&Column::GpuType);
        let gpu_type = if has_type { GpuType::new(row.name(Column::GpuType)?) } else { GpuType::default() };
        Ok((gpu_type, observation))
    }
}

/// The fields of one row, as many as the header has columns.
struct Row<'a> {
    header: &'a Header,
    record: &'a StringRecord,
}

impl<'a> Row<'a> {
    fn field(&self, column: Column) -> Result<&'a str, Problem> {
        let place = self.header.0.iter().position(|other| *other == column);
        let field = place.and_then(|place| self.record.get(place));
        field.filter(|field| !field.is_empty()).ok_or(Problem::EmptyField { column })
    }

    fn count(&self, column: Column) -> Result<u32, Problem> {
        let field = self.field(column)?;
        let count = field.parse().ok().filter(|count| *count > 0);
        count.ok_or_else(|| wrong(column, field, Expected::Count))
    }

    fn positive(&self, column: Column, expected: Expected) -> Result<f64, Problem> {
        let field = self.field(column)?;
        let number = field.parse().ok().filter(|number: &f64| *number > 0.0 && number.is_finite());
        number.ok_or_else(|| wrong(column, field, expected))
    }

    fn name(&self, column: Column) -> Result<&'a str, Problem> {
        let field = self.field(column)?;
        let plain = !field.chars().any(char::is_control);
        plain.then_some(field).ok_or_else(|| wrong(column, field, Expected::Name))
    }
}

fn wrong(column: Column, value: &str, expected: Expected) -> Problem {
    Problem::Value { column, value: value.to_owned(), expected }
}
