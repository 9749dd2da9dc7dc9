//! Linear programs that grow: `max cost . x` over `A x = b`, `x >= 0`, columns added as they are found.
//!
//! A revised simplex with a dense inverse of the basis. The programs here have tens to a few hundred rows. Our own, since the
//! solvers of the field are compiled from other languages or start anew with each column, and none promises the same bits.

/// A program and its present basis.
#[derive(Debug)]
pub(crate) struct Lp {
    n_rows: usize,
    columns: Vec<Column>,
    is_basic: Vec<bool>,
    /// Which column each row's basic variable is.
    basis: Vec<usize>,
    /// Inverse of the basis, row after row.
    inverse: Vec<f64>,
    /// Values of the basic variables.
    level: Vec<f64>,
    /// Multipliers of the rows.
    prices: Vec<f64>,
}

#[derive(Debug)]
struct Column {
    cost: f64,
    entries: Vec<(u32, f64)>,
}

/// Pivots, for each row, before a rule is used that cannot cycle, and before giving up.
const STEEP_PIVOTS: usize = 60;
const MOST_PIVOTS: usize = 200;

impl Lp {
    /// With a first basis of one column `sign * e_i` for each row `i`, at these costs; `sign * b_i` must not be
    /// negative.
    pub(crate) fn new(b: &[f64], unit: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let n_rows = b.len();
        let mut lp = Self {
            n_rows,
            columns: Vec::new(),
            is_basic: Vec::new(),
            basis: Vec::new(),
            inverse: vec![0.0; n_rows * n_rows],
            level: Vec::new(),
            prices: vec![0.0; n_rows],
        };
        for (row, (sign, cost)) in unit.into_iter().enumerate() {
            let entry = u32::try_from(row).unwrap_or(u32::MAX);
            let column = lp.add(cost, vec![(entry, sign)]);
            lp.is_basic[column] = true;
            lp.basis.push(column);
            lp.inverse[row * n_rows + row] = sign;
            lp.level.push(sign * b[row]);
        }
        lp
    }

    /// Adds a column; returns its number.
    pub(crate) fn add(&mut self, cost: f64, entries: Vec<(u32, f64)>) -> usize {
        self.columns.push(Column { cost, entries });
        self.is_basic.push(false);
        self.columns.len() - 1
    }

    pub(super) fn n_columns(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn set_cost(&mut self, column: usize, cost: f64) {
        self.columns[column].cost = cost;
    }

    /// The multipliers of the rows as of the last solution.
    pub(super) fn prices(&self) -> &[f64] {
        &self.prices
    }

    /// The variables, column by column, as of the last solution.
    pub(crate) fn values(&self) -> Vec<f64> {
        let mut values = vec![0.0; self.columns.len()];
        for (&column, &level) in self.basis.iter().zip(&self.level) {
            values[column] = level.max(0.0);
        }
        values
    }

    /// Goes to the best basis; returns how many pivots that took.
    pub(crate) fn maximise(&mut self) -> usize {
        let mut direction = vec![0.0; self.n_rows];
        self.refresh_prices();
        for pivot in 0..MOST_PIVOTS * (self.n_rows + 1) {
            let first = pivot >= STEEP_PIVOTS * (self.n_rows + 1);
            let Some((entering, gain)) = self.entering(first) else { return pivot };
            self.fill_direction(entering, &mut direction);
            let Some(leaving) = self.leaving(&direction) else { return pivot };
            self.pivot(entering, leaving, &direction, gain);
            if pivot % 64 == 63 {
                self.refresh_prices();
            }
        }
        self.refresh_prices();
        MOST_PIVOTS
    }

    fn refresh_prices(&mut self) {
        self.prices.fill(0.0);
        for (row, &column) in self.basis.iter().enumerate() {
            let cost = self.columns[column].cost;
            if cost != 0.0 {
                let inverse = &self.inverse[row * self.n_rows..][..self.n_rows];
                for (price, part) in self.prices.iter_mut().zip(inverse) {
                    *price += cost * part;
                }
            }
        }
    }

    /// What a unit of a column gains, if that is more than rounding.
    fn gain(&self, column: &Column) -> Option<f64> {
        let (mut gain, mut size) = (column.cost, column.cost.abs());
        for &(row, part) in &column.entries {
            let pays = part * self.prices[row as usize];
            gain -= pays;
            size += pays.abs();
        }
        (gain > 1e-13 * size).then_some(gain)
    }

    /// The column that gains most, or the first that gains.
    fn entering(&self, first: bool) -> Option<(usize, f64)> {
        let mut best: Option<(usize, f64)> = None;
        for (index, column) in self.columns.iter().enumerate() {
            if !self.is_basic[index]
                && let Some(gain) = self.gain(column)
                && best.is_none_or(|(_, most)| gain > most)
            {
                best = Some((index, gain));
                if first {
                    break;
                }
            }
        }
        best
    }

    fn fill_direction(&self, column: usize, direction: &mut [f64]) {
        let entries = &self.columns[column].entries;
        for (row, part) in direction.iter_mut().enumerate() {
            let inverse = &self.inverse[row * self.n_rows..][..self.n_rows];
            *part = entries.iter().map(|&(at, entry)| entry * inverse[at as usize]).sum();
        }
    }

    fn leaving(&self, direction: &[f64]) -> Option<usize> {
        let mut best: Option<(usize, f64)> = None;
        for (row, &part) in direction.iter().enumerate() {
            if part > 1e-10 {
                let ratio = self.level[row].max(0.0) / part;
                let better = best.is_none_or(|(other, least)| {
                    ratio < least - 1e-14 || (ratio <= least + 1e-14 && direction[other] < part)
                });
                if better {
                    best = Some((row, ratio));
                }
            }
        }
        best.map(|(row, _)| row)
    }

    fn pivot(&mut self, entering: usize, leaving: usize, direction: &[f64], gain: f64) {
        let n = self.n_rows;
        let step = self.level[leaving].max(0.0) / direction[leaving];
        let (before, rest) = self.inverse.split_at_mut(leaving * n);
        let (pivot_row, after) = rest.split_at_mut(n);
        for part in pivot_row.iter_mut() {
            *part /= direction[leaving];
        }
        for (price, part) in self.prices.iter_mut().zip(&*pivot_row) {
            *price += gain * part;
        }
        let others = before.chunks_mut(n).chain(after.chunks_mut(n));
        let rows = (0..leaving).chain(leaving + 1..n);
        for (row, values) in rows.zip(others) {
            let part = direction[row];
            if part != 0.0 {
                for (value, pivot) in values.iter_mut().zip(&*pivot_row) {
                    *value -= part * pivot;
                }
                self.level[row] -= part * step;
            }
        }
        self.level[leaving] = step;
        self.is_basic[self.basis[leaving]] = false;
        self.is_basic[entering] = true;
        self.basis[leaving] = entering;
    }

    /// Makes a column basic in a row, whatever that does to the objective. For a first basis.
    pub(super) fn force(&mut self, column: usize, row: usize) {
        let mut direction = vec![0.0; self.n_rows];
        self.fill_direction(column, &mut direction);
        self.pivot(column, row, &direction, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corner_of_a_small_program() {
        // max 3x + 2y with x + y <= 4 and x + 3y <= 6: all of x.
        let mut lp = Lp::new(&[4.0, 6.0], [(1.0, 0.0), (1.0, 0.0)]);
        lp.add(3.0, vec![(0, 1.0), (1, 1.0)]);
        lp.add(2.0, vec![(0, 1.0), (1, 3.0)]);
        lp.maximise();
        assert!((lp.prices()[0] - 3.0).abs() < 1e-12 && lp.prices()[1].abs() < 1e-12, "{:?}", lp.prices());
    }
}
