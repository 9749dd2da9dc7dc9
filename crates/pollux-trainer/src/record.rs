//! What is told of training: a line about every second, and each step as a row of a file.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use pollux_model::{BatchPlan, Placement};

/// Between two lines.
const EVERY: Duration = Duration::from_secs(1);

/// One step, as it is told.
#[derive(Clone, Copy, Debug)]
pub struct StepRecord {
    /// Its number, from 1.
    pub step: u64,
    /// The position of its first sample.
    pub position: u64,
    /// Its batch.
    pub plan: BatchPlan,
    /// The replicas.
    pub placement: Placement,
    /// Mean loss of its samples.
    pub loss: f64,
    /// What the learning rate was multiplied by.
    pub factor: f64,
    /// Work done after it, in steps at the initial batch.
    pub progress: f64,
    /// Seconds it took.
    pub secs: f64,
    /// Seconds it had to take at least, on emulated GPUs.
    pub paced_secs: f64,
}

/// Lines on standard output. Nobody reading is no reason to stop training: failures are ignored.
#[derive(Debug)]
pub struct Lines {
    next: Instant,
    loss: f64,
    n_steps: u32,
}

impl Default for Lines {
    fn default() -> Self {
        Self { next: Instant::now() + EVERY, loss: 0.0, n_steps: 0 }
    }
}

impl Lines {
    /// Takes in a step, and writes a line if it is time.
    pub fn step(&mut self, record: &StepRecord, accuracy: impl Fn() -> f64) {
        self.loss += record.loss;
        self.n_steps += 1;
        let now = Instant::now();
        if now < self.next {
            return;
        }
        let loss = self.loss / f64::from(self.n_steps);
        *self = Self { next: now + EVERY, loss: 0.0, n_steps: 0 };
        let StepRecord { step, plan, placement, factor, progress, .. } = record;
        say(&format!(
            "step {step}: progress {progress:.1}, loss {loss:.4}, accuracy {:.4}, batch {} ({} x {}), lr x{factor:.2}, \
             replicas {}",
            accuracy(),
            plan.global().0,
            plan.accum_steps() + 1,
            plan.atomic_batch(),
            placement.n_replicas(),
        ));
    }
}

/// Writes one line to standard output.
pub fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Writes one line to standard error.
pub fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A CSV file with a row for each step.
#[derive(Debug)]
pub struct Curve(BufWriter<File>);

impl Curve {
    /// Begins the file, or goes on with it.
    pub fn open(file: &Path, goes_on: bool) -> io::Result<Self> {
        let goes_on = goes_on && file.exists();
        let mut options = OpenOptions::new();
        if goes_on {
            options.append(true);
        } else {
            options.write(true).create(true).truncate(true);
        }
        let mut writer = BufWriter::new(options.open(file)?);
        if !goes_on {
            writeln!(writer, "step,position,batch,passes,replicas,loss,factor,progress,secs,paced_secs")?;
        }
        Ok(Self(writer))
    }

    /// Adds a row.
    pub fn row(&mut self, record: &StepRecord) -> io::Result<()> {
        let StepRecord { step, position, plan, placement, loss, factor, progress, secs, paced_secs } = record;
        let (batch, passes, replicas) = (plan.global().0, plan.accum_steps() + 1, placement.n_replicas());
        writeln!(
            self.0,
            "{step},{position},{batch},{passes},{replicas},{loss},{factor},{progress},{secs},{paced_secs}"
        )
    }

    /// Brings all rows into the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
