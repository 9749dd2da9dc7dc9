//! Replicas at work together: rank 0 tells each step, sums what all computed, and hands the mean back.
//!
//! A star, not a ring: rank 0 adds up in the order of ranks, so that a run is the same whenever messages arrive.

mod frame;
mod meet;

use std::io::{self, BufReader};
use std::net::TcpStream;

use frame::{Frame, Received};
pub use meet::{Meeting, call, gather};
use pollux_model::{BatchPlan, GlobalBatch, Placement};

/// Replicas that did not find or lost each other.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// Rank 0 cannot listen.
    #[error("cannot listen on {address} for the other replicas: {reason}")]
    Listen {
        /// `MASTER_ADDR:MASTER_PORT`.
        address: String,
        /// What the system says.
        reason: io::Error,
    },
    /// Some replicas did not come.
    #[error(
        "{missing} of {expected} replicas did not call at {address} within {limit_secs} s; look at their logs"
    )]
    Missing {
        /// `MASTER_ADDR:MASTER_PORT`.
        address: String,
        /// Replicas in all, but for rank 0.
        expected: u32,
        /// Those that did not come.
        missing: u32,
        /// How long was waited.
        limit_secs: f64,
    },
    /// Rank 0 did not answer.
    #[error("rank 0 did not answer at {address} within {limit_secs} s ({reason}); look at its log")]
    NoAnswer {
        /// `MASTER_ADDR:MASTER_PORT`.
        address: String,
        /// How long was tried.
        limit_secs: f64,
        /// What the system said last.
        reason: String,
    },
    /// A replica went away.
    #[error("lost rank {rank}: {reason}")]
    Lost {
        /// Which.
        rank: u32,
        /// What the system says.
        reason: io::Error,
    },
    /// Asked to leave while waiting for the others.
    #[error("asked to leave before all replicas had met")]
    Asked,
}

/// What rank 0 tells everyone to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// One optimizer step.
    Step {
        /// Its batch.
        plan: BatchPlan,
        /// The first of its samples.
        position: u64,
    },
    /// Training is done.
    Finish,
    /// Everyone was asked to leave.
    Leave,
}

/// What a replica computed in one step, before the optimizer's part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Sum of the losses of its samples.
    pub loss: f64,
    /// What its micro-batches reveal of the noise.
    pub moments: Moments,
    /// Sum of the gradients of its samples.
    pub gradient: Vec<f64>,
    /// Whether this replica was asked to leave.
    pub asked: bool,
}

/// Sums over micro-batches, for the noise scale: squared norms of their mean gradients, and one over their sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// Micro-batches, or halves of one.
    pub count: u64,
    /// Sum of squared norms.
    pub sqr_norm: f64,
    /// Sum of `1 / samples`.
    pub inverse_batch: f64,
}

impl Moments {
    /// Adds those of another.
    pub fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sqr_norm += other.sqr_norm;
        self.inverse_batch += other.inverse_batch;
    }
}

/// A connection to one other replica.
#[derive(Debug)]
struct Wire {
    rank: u32,
    read: BufReader<TcpStream>,
    write: TcpStream,
}

impl Wire {
    fn new(rank: u32, stream: TcpStream) -> io::Result<Self> {
        // Steps are milliseconds: waiting to fill a packet would cost more than the packet.
        stream.set_nodelay(true)?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(None)?;
        Ok(Self { rank, read: BufReader::new(stream.try_clone()?), write: stream })
    }

    fn send(&mut self, frame: &Frame) -> Result<(), ExchangeError> {
        frame.send(&mut self.write).map_err(|reason| self.lost(reason))
    }

    fn receive<T>(&mut self, read: impl Fn(&mut Received) -> io::Result<T>) -> Result<T, ExchangeError> {
        let message = Received::from(&mut self.read).and_then(|mut received| read(&mut received));
        message.map_err(|reason| self.lost(reason))
    }

    fn lost(&self, reason: io::Error) -> ExchangeError {
        ExchangeError::Lost { rank: self.rank, reason }
    }
}

/// Rank 0's side: the other replicas, by rank. Empty for a replica alone.
#[derive(Debug, Default)]
pub struct Members(Vec<Wire>);

impl Members {
    /// Hands everyone the weights and momentum to begin with.
    pub fn welcome(&mut self, weights: &[f64], momentum: &[f64]) -> Result<(), ExchangeError> {
        self.send_all(&Frame::default().f64s(weights).f64s(momentum))
    }

    /// Tells everyone what to do next.
    pub fn order(&mut self, order: Order) -> Result<(), ExchangeError> {
        let frame = Frame::default();
        self.send_all(&match order {
            Order::Finish => frame.u64(0),
            Order::Leave => frame.u64(1),
            Order::Step { plan, position } => {
                frame.u64(2).u64(plan.global().0).u64(plan.accum_steps().into()).u64(position)
            }
        })
    }

    /// Adds everyone's part to `own`, in the order of ranks.
    pub fn sum(&mut self, own: &mut Part) -> Result<(), ExchangeError> {
        let n_weights = own.gradient.len();
        for wire in &mut self.0 {
            let part = wire.receive(|received| {
                Ok(Part {
                    asked: received.u64()? != 0,
                    loss: received.f64()?,
                    moments: Moments {
                        count: received.u64()?,
                        sqr_norm: received.f64()?,
                        inverse_batch: received.f64()?,
                    },
                    gradient: received.f64s(n_weights)?,
                })
            })?;
            own.asked |= part.asked;
            own.loss += part.loss;
            own.moments.add(part.moments);
            for (sum, value) in own.gradient.iter_mut().zip(&part.gradient) {
                *sum += value;
            }
        }
        Ok(())
    }

    /// Hands everyone the mean gradient and the learning rate to apply it with.
    pub fn update(&mut self, rate: f64, gradient: &[f64]) -> Result<(), ExchangeError> {
        self.send_all(&Frame::default().f64(rate).f64s(gradient))
    }

    fn send_all(&mut self, frame: &Frame) -> Result<(), ExchangeError> {
        self.0.iter_mut().try_for_each(|wire| wire.send(frame))
    }
}

/// The side of every other rank: its connection to rank 0.
#[derive(Debug)]
pub struct Leader {
    wire: Wire,
    placement: Placement,
    n_weights: usize,
}

impl Leader {
    /// The weights and momentum to begin with.
    pub fn welcome(&mut self) -> Result<(Vec<f64>, Vec<f64>), ExchangeError> {
        let n_weights = self.n_weights;
        self.wire.receive(|received| Ok((received.f64s(n_weights)?, received.f64s(n_weights)?)))
    }

    /// What to do next.
    pub fn order(&mut self) -> Result<Order, ExchangeError> {
        let placement = self.placement;
        self.wire.receive(|received| match received.u64()? {
            0 => Ok(Order::Finish),
            1 => Ok(Order::Leave),
            _ => {
                let (global, accum_steps) = (GlobalBatch(received.u64()?), received.u32()?);
                let plan = BatchPlan::split(global, placement, accum_steps);
                let plan = plan.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
                Ok(Order::Step { plan, position: received.u64()? })
            }
        })
    }

    /// Gives rank 0 what this replica computed.
    pub fn part(&mut self, part: &Part) -> Result<(), ExchangeError> {
        let Part { asked, loss, moments, gradient } = part;
        let frame = Frame::default().u64((*asked).into()).f64(*loss).u64(moments.count);
        self.wire.send(&frame.f64(moments.sqr_norm).f64(moments.inverse_batch).f64s(gradient))
    }

    /// The mean gradient of all replicas and the learning rate to apply it with.
    pub fn update(&mut self) -> Result<(f64, Vec<f64>), ExchangeError> {
        let n_weights = self.n_weights;
        self.wire.receive(|received| Ok((received.f64()?, received.f64s(n_weights)?)))
    }
}
