//! `pollux model`: fitting step-time models, and reading goodput off them.

pub(crate) mod fit;
pub(crate) mod goodput;

mod beyond;
mod describe;
mod plot;
