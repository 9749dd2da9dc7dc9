//! What holds for every input: nothing panics or hangs, whatever the numbers, and the model keeps its laws.
//!
//! Inputs are drawn from a fixed seed, so that a failure repeats.

#[path = "../common/mod.rs"]
mod common;

mod best_batch;
mod fits;
mod strategies;
mod vocabulary;
