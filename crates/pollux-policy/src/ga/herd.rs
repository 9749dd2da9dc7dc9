//! Room for a population: members live in numbered slots that are used again.

/// Slots of one size, side by side.
#[derive(Debug)]
pub(super) struct Herd {
    cells: Vec<u16>,
    size: usize,
    free: Vec<usize>,
}

impl Herd {
    /// Room for `n_slots` members of `size` cells each.
    pub(super) fn new(n_slots: usize, size: usize) -> Self {
        Self { cells: vec![0; n_slots * size], size, free: (0..n_slots).rev().collect() }
    }

    /// Takes an empty slot, if there is one; its cells are whatever they were.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// Gives a slot back.
    pub(super) fn give_back(&mut self, slot: usize) {
        self.free.push(slot);
    }

    /// The cells of a member.
    pub(super) fn member(&self, slot: usize) -> &[u16] {
        &self.cells[slot * self.size..(slot + 1) * self.size]
    }

    /// The cells of a member, to change.
    pub(super) fn member_mut(&mut self, slot: usize) -> &mut [u16] {
        &mut self.cells[slot * self.size..(slot + 1) * self.size]
    }

    /// Copies some cells of one member to the same place in another.
    pub(super) fn copy(&mut self, from: usize, to: usize, cells: std::ops::Range<usize>) {
        let start = from * self.size;
        self.cells.copy_within(start + cells.start..start + cells.end, to * self.size + cells.start);
    }

    /// Cells of a member.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// A number that equal members share and others hardly ever do.
    pub(super) fn fingerprint(&self, slot: usize) -> u64 {
        self.member(slot).iter().fold(0x9e37_79b9_7f4a_7c15, |mixed: u64, &cell| {
            (mixed.rotate_left(5) ^ u64::from(cell)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
        })
    }
}
