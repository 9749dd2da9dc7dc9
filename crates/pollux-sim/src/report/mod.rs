//! What became of a campaign, as a page: tables, charts, and the numbers behind them.
//!
//! Pure functions from runs to a [`Page`](pollux_report::Page); who calls them writes the files. Nothing in a page depends on how long
//! the runs took or on how many threads made them.
//!
//! | question | file |
//! | --- | --- |
//! | what is kept of a run until the page is made? | `digest.rs` |
//! | which sections, in which order? | `page.rs` |
//! | completion times, fairness | `times.rs` |
//! | GPUs held and useful over time | `usage.rs` |
//! | who held which GPU when | `held.rs` |
//! | the life of one job | `one_job.rs` |
//! | the tables of figures | `tables.rs` |

mod digest;
mod held;
mod one_job;
mod page;
mod tables;
mod times;
mod usage;

pub use digest::Digest;
pub use held::gantt;
pub use one_job::{job_figure, longest_job};
pub use page::{About, page};
pub(crate) use tables::significant;
pub use tables::{costs_table, faults_table, summary_figure, times_table, uses_table};
pub use times::{distribution, fairness_figure, jct_figure};
pub use usage::{Usage, usage_figure};

use pollux_model::{JobId, Timestamp};

/// Seconds of an hour.
const HOUR: f64 = 3_600.0;

fn hours(at: Timestamp) -> f64 {
    at.as_secs_f64() / HOUR
}

/// The place of a job in its workload.
fn index(job: JobId) -> usize {
    usize::try_from(job.0).unwrap_or(usize::MAX)
}
