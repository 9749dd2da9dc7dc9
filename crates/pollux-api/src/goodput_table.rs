//! Goodput by number of GPUs, as JSON (version 1) or CSV: written, not read.

use pollux_model::{BatchPlan, Efficiency, Goodput, Placement, Speedup, Throughput};
use serde::Serialize;

/// The version of the JSON.
pub const VERSION: u64 = 1;

/// Columns of the CSV, and keys of a row of the JSON.
const COLUMNS: [&str; 9] = [
    "gpus",
    "nodes",
    "micro_batch",
    "accum_steps",
    "global_batch",
    "throughput",
    "efficiency",
    "goodput",
    "speedup",
];

/// The goodput of one placement, with the best batch there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GoodputRow {
    /// The GPUs.
    pub placement: Placement,
    /// The best batch and what it is worth; nothing where no batch keeps the limits.
    pub best: Option<BestBatch>,
}

/// The best batch of one placement, and what it is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestBatch {
    /// The batch.
    pub plan: BatchPlan,
    /// Samples per second.
    pub throughput: Throughput,
    /// Progress per sample, relative to the initial batch.
    pub efficiency: Efficiency,
    /// Useful samples per second.
    pub goodput: Goodput,
    /// Goodput over that of the table's reference placement.
    pub speedup: Speedup,
}

/// Goodput by number of GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct GoodputTable {
    /// The placement that speed-ups are relative to; nothing where no row has a batch.
    pub reference: Option<Placement>,
    /// One row per number of GPUs.
    pub rows: Vec<GoodputRow>,
}

impl GoodputTable {
    /// The table as JSON, with a newline at its end. Rows without a batch have nulls.
    pub fn to_json(&self) -> String {
        let file = File {
            version: VERSION,
            reference_gpus: self.reference.map(Placement::n_replicas),
            rows: self.rows.iter().map(Row::from).collect(),
        };
        crate::json::pretty(&file)
    }

    /// The table as CSV with a header. Rows without a batch have empty fields.
    pub fn to_csv(&self) -> String {
        let mut csv = COLUMNS.join(",") + "\n";
        for row in &self.rows {
            let row = Row::from(row);
            let fields = [
                row.gpus.to_string(),
                row.nodes.to_string(),
                or_empty(row.micro_batch),
                or_empty(row.accum_steps),
                or_empty(row.global_batch),
                or_empty(row.throughput),
                or_empty(row.efficiency),
                or_empty(row.goodput),
                or_empty(row.speedup),
            ];
            csv += &(fields.join(",") + "\n");
        }
        csv
    }
}

fn or_empty(value: Option<impl ToString>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

#[derive(Serialize)]
struct File {
    version: u64,
    reference_gpus: Option<u32>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    gpus: u32,
    nodes: u32,
    micro_batch: Option<u32>,
    accum_steps: Option<u32>,
    global_batch: Option<u64>,
    throughput: Option<f64>,
    efficiency: Option<f64>,
    goodput: Option<f64>,
    speedup: Option<f64>,
}

impl From<&GoodputRow> for Row {
    fn from(row: &GoodputRow) -> Self {
        Self {
            gpus: row.placement.n_replicas(),
            nodes: row.placement.n_nodes(),
            micro_batch: row.best.map(|best| best.plan.atomic_batch()),
            accum_steps: row.best.map(|best| best.plan.accum_steps()),
            global_batch: row.best.map(|best| best.plan.global().0),
            throughput: row.best.map(|best| best.throughput.samples_per_sec()),
            efficiency: row.best.map(|best| best.efficiency.ratio()),
            goodput: row.best.map(|best| best.goodput.useful_samples_per_sec()),
            speedup: row.best.map(|best| best.speedup.ratio()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row with a batch of 2 x 64 samples a second, one without any.
    fn table() -> GoodputTable {
        let pair = Placement::new(1, 2).unwrap();
        let best = BestBatch {
            plan: BatchPlan::even(pair, 64, 0).unwrap(),
            throughput: Throughput::new(128.0),
            efficiency: Efficiency::new(0.75),
            goodput: Throughput::new(128.0) * Efficiency::new(0.75),
            speedup: Speedup::new(1.0),
        };
        let rows = vec![
            GoodputRow { placement: Placement::ALONE, best: None },
            GoodputRow { placement: pair, best: Some(best) },
        ];
        GoodputTable { reference: Some(pair), rows }
    }

    #[test]
    fn csv_leaves_fields_empty_where_there_is_no_batch() {
        assert_eq!(
            table().to_csv(),
            "gpus,nodes,micro_batch,accum_steps,global_batch,throughput,efficiency,goodput,speedup\n\
             1,1,,,,,,,\n\
             2,1,64,0,128,128,0.75,96,1\n"
        );
    }

    #[test]
    fn json_has_nulls_where_there_is_no_batch() {
        let json: serde_json::Value = serde_json::from_str(&table().to_json()).unwrap();
        let none = serde_json::Value::Null;
        assert_eq!(
            json,
            serde_json::json!({"version": 1, "reference_gpus": 2, "rows": [
                {"gpus": 1, "nodes": 1, "micro_batch": none, "accum_steps": none, "global_batch": none,
                 "throughput": none, "efficiency": none, "goodput": none, "speedup": none},
                {"gpus": 2, "nodes": 1, "micro_batch": 64, "accum_steps": 0, "global_batch": 128,
                 "throughput": 128.0, "efficiency": 0.75, "goodput": 96.0, "speedup": 1.0},
            ]})
        );
    }

    #[test]
    fn rows_of_json_have_the_columns_of_csv() {
        let json: serde_json::Value = serde_json::from_str(&table().to_json()).unwrap();
        let keys = json["rows"][1].as_object().unwrap().keys();
        assert!(keys.eq({
            let mut columns = COLUMNS;
            columns.sort_unstable();
            columns
        }));
    }
}
