//! The service: the scheduler, its journal, and what it asks for, done.

mod answers;
mod book;
mod clock;
mod events;
mod folders;
mod health;
mod live;
mod note;
mod perform;
mod planner;
pub mod records;
mod replay;
mod resume;
mod run;
pub mod show;
mod start;
mod submit;
mod tokens;
mod upkeep;
mod whatif;

pub use answers::Counts;
pub use book::{AttemptEntry, Book, Entry, NodeEntry};
pub use clock::{Clock, rfc3339};
pub use events::Event;
pub use live::{Facts, Live};
pub use note::Note;
pub use replay::{Replayed, replay};
pub use run::{Service, Unavailable};
pub use show::Detail;
pub use start::{Beginning, Begun, begin};
pub use submit::SubmitError;
pub use tokens::{Known, Tokens};
pub use upkeep::KeepRuns;
pub use whatif::Imagined;
