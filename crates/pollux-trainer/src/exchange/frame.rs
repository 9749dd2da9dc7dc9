//! Messages between replicas as bytes: a length, then numbers in little-endian order.

use std::io::{self, Read, Write};

/// No message is longer: a larger length is noise from someone else.
const LONGEST: u32 = 1 << 28;

/// A message being written.
#[derive(Debug, Default)]
pub(super) struct Frame(Vec<u8>);

impl Frame {
    pub(super) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn f64(self, value: f64) -> Self {
        self.u64(value.to_bits())
    }

    /// A list, with its length before it.
    pub(super) fn f64s(mut self, values: &[f64]) -> Self {
        self.0.reserve(8 * values.len() + 8);
        self = self.u64(values.len() as u64);
        for value in values {
            self.0.extend(value.to_bits().to_le_bytes());
        }
        self
    }

    /// Sends it in one piece.
    pub(super) fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let length = u32::try_from(self.0.len()).ok().filter(|&length| length <= LONGEST);
        let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut bytes = Vec::with_capacity(self.0.len() + 4);
        bytes.extend(length.to_le_bytes());
        bytes.extend(&self.0);
        to.write_all(&bytes)?;
        to.flush()
    }
}

/// A message being read.
#[derive(Debug)]
pub(super) struct Received {
    bytes: Vec<u8>,
    at: usize,
}

impl Received {
    /// Waits for the next message.
    pub(super) fn from(wire: &mut impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        wire.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > LONGEST {
            return Err(malformed());
        }
        let mut bytes = Vec::new();
        // Grows with what arrives, not with what a length claims.
        wire.take(length.into()).read_to_end(&mut bytes)?;
        if bytes.len() < length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { bytes, at: 0 })
    }

    pub(super) fn u64(&mut self) -> io::Result<u64> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let (bytes, _) = rest.split_first_chunk().ok_or_else(malformed)?;
        self.at += 8;
        Ok(u64::from_le_bytes(*bytes))
    }

    pub(super) fn u32(&mut self) -> io::Result<u32> {
        u32::try_from(self.u64()?).map_err(|_| malformed())
    }

    pub(super) fn f64(&mut self) -> io::Result<f64> {
        Ok(f64::from_bits(self.u64()?))
    }

    /// A list of exactly so many.
    pub(super) fn f64s(&mut self, expected: usize) -> io::Result<Vec<f64>> {
        if self.u64()? != expected as u64 {
            return Err(malformed());
        }
        (0..expected).map(|_| self.f64()).collect()
    }
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a message that is none of ours; do all replicas run alike?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let mut wire = Vec::new();
        Frame::default().u64(7).f64(0.1).f64s(&[1.5, f64::MIN]).send(&mut wire).unwrap();
        Frame::default().u64(8).send(&mut wire).unwrap();
        let mut read = &wire[..];
        let mut first = Received::from(&mut read).unwrap();
        assert_eq!((first.u32().unwrap(), first.f64().unwrap().to_bits()), (7, 0.1_f64.to_bits()));
        assert_eq!(first.f64s(2).unwrap(), [1.5, f64::MIN]);
        assert!(first.u64().is_err(), "there is no more");
        assert_eq!(Received::from(&mut read).unwrap().u64().unwrap(), 8);
    }

    #[test]
    fn noise_is_refused() {
        assert!(Received::from(&mut &b"GET / HTTP/1.1"[..]).is_err());
        assert!(Received::from(&mut &[9, 0, 0, 0, 1][..]).is_err());
        let mut wire = Vec::new();
        Frame::default().f64s(&[1.0]).send(&mut wire).unwrap();
        assert!(Received::from(&mut &wire[..]).unwrap().f64s(2).is_err(), "another model");
    }
}
