//! How replicas find each other: rank 0 listens, the others call until it answers.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pollux_model::Placement;

use super::frame::{Frame, Received};
use super::{ExchangeError, Leader, Members, Wire};
use crate::signals::Asked;

/// Says that a call is from a replica, and of which version: `PXTRAIN1`.
const GREETING: u64 = u64::from_le_bytes(*b"PXTRAIN1");

/// Between two looks whether someone called or answers.
const PAUSE: Duration = Duration::from_millis(10);

/// A caller that says nothing is let go after this.
const SILENCE: Duration = Duration::from_secs(2);

/// Who meets where.
#[derive(Clone, Debug)]
pub struct Meeting {
    /// `MASTER_ADDR:MASTER_PORT`.
    pub address: String,
    /// All replicas.
    pub placement: Placement,
    /// Which start of the job this is: a straggler of an earlier one is not let in.
    pub attempt: u64,
    /// Weights of the model: replicas of different models do not meet.
    pub n_weights: usize,
    /// How long to wait for each other.
    pub limit: Duration,
}

/// Rank 0: waits for all others. Comes back at once where there are none.
pub fn gather(meeting: &Meeting, asked: &Asked) -> Result<Members, ExchangeError> {
    let expected = meeting.placement.n_replicas() - 1;
    if expected == 0 {
        return Ok(Members::default());
    }
    let address = &meeting.address;
    let listen = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let listener = listen().map_err(|reason| ExchangeError::Listen { address: address.clone(), reason })?;
    let deadline = Instant::now() + meeting.limit;
    let mut wires: Vec<Wire> = Vec::new();
    while wires.len() < expected as usize {
        if asked.to_leave() {
            return Err(ExchangeError::Asked);
        }
        if let Ok((stream, _)) = listener.accept() {
            // Whoever does not greet as expected is nobody we wait for.
            if let Ok(wire) = greeted(meeting, stream)
                && wires.iter().all(|other| other.rank != wire.rank)
            {
                wires.push(wire);
            }
        } else if Instant::now() >= deadline {
            #[expect(clippy::cast_possible_truncation, reason = "fewer than expected, which is a u32")]
            let missing = expected - wires.len() as u32;
            let limit_secs = meeting.limit.as_secs_f64();
            return Err(ExchangeError::Missing { address: address.clone(), expected, missing, limit_secs });
        } else {
            sleep(PAUSE);
        }
    }
    wires.sort_by_key(|wire| wire.rank);
    Ok(Members(wires))
}

fn greeted(meeting: &Meeting, mut stream: TcpStream) -> io::Result<Wire> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(SILENCE))?;
    let mut hello = Received::from(&mut stream)?;
    let fits = hello.u64()? == GREETING
        && hello.u64()? == meeting.attempt
        && hello.u32()? == meeting.placement.n_replicas()
        && hello.u64()? == meeting.n_weights as u64;
    let rank = hello.u32()?;
    if !fits || !(1..meeting.placement.n_replicas()).contains(&rank) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Wire::new(rank, stream)
}

/// Any other rank: calls rank 0 until it answers.
pub fn call(meeting: &Meeting, rank: u32, asked: &Asked) -> Result<Leader, ExchangeError> {
    let deadline = Instant::now() + meeting.limit;
    loop {
        if asked.to_leave() {
            return Err(ExchangeError::Asked);
        }
        let reason = match connect(meeting, rank) {
            Ok(wire) => {
                return Ok(Leader { wire, placement: meeting.placement, n_weights: meeting.n_weights });
            }
            Err(reason) => reason.to_string(),
        };
        if Instant::now() >= deadline {
            let (address, limit_secs) = (meeting.address.clone(), meeting.limit.as_secs_f64());
            return Err(ExchangeError::NoAnswer { address, limit_secs, reason });
        }
        sleep(PAUSE);
    }
}

fn connect(meeting: &Meeting, rank: u32) -> io::Result<Wire> {
    let mut stream = TcpStream::connect(&meeting.address)?;
    // On one machine a call to a port where nobody listens may be given that very port, and reach itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let hello = Frame::default().u64(GREETING).u64(meeting.attempt);
    let hello = hello.u64(meeting.placement.n_replicas().into()).u64(meeting.n_weights as u64);
    hello.u64(rank.into()).send(&mut stream)?;
    // Rank 0 is the other end of this wire.
    Wire::new(0, stream)
}
