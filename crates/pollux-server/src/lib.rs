//! The live scheduler: the other shell around `pollux-core`, whose jobs really train (`docs/design/live.md`).
//!
//! | module | what |
//! | --- | --- |
//! | [`store`] | the journal and all else that outlives the service, in one file |
//! | [`engine`] | starts, stops and watches the processes of jobs |
//! | [`service`] | the scheduler's thread: journal first, then act |
//! | [`http`] | the API |

pub mod engine;
pub mod http;
pub mod service;
pub mod store;

mod log;
mod notify;
mod serve;
mod tls;

pub use log::LogForm;
pub use serve::{Cluster, ServeError, Settings, is_alive, serve, stop};
pub use service::KeepRuns;
pub use tls::{TlsError, TlsSettings};
