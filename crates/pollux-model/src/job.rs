//! Jobs, as far as everybody needs to tell them apart.

/// One job. Names for people live at the rim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);
