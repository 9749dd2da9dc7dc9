//! The lowest point of the largest of some planes over a box: the master problem of the cutting planes.

use super::lp::Lp;

/// `min over x in [low, high] of max_i (offset_i + slope_i . x)`, planes added one by one.
///
/// Solved through its dual: `y_i` the weight of plane `i`, `s_k` and `t_k` the multipliers of the box's faces;
/// `sum y = 1`, `s_k - t_k = sum_i slope_ik y_i`. A new plane is a new column, so a solved problem is the start
/// of the next; the multipliers of the rows are the value and the coordinates.
#[derive(Debug)]
pub(crate) struct Master {
    lp: Lp,
    /// Columns of the faces.
    low: Vec<usize>,
    high: Vec<usize>,
    walls: (Vec<f64>, Vec<f64>),
}

/// The lowest point.
#[derive(Clone, Debug)]
pub(crate) struct Lowest {
    pub(crate) value: f64,
    pub(crate) at: Vec<f64>,
}

impl Master {
    /// With one plane. The box may be changed later.
    pub(crate) fn new(offset: f64, slope: &[f64], low: &[f64], high: &[f64]) -> Self {
        let n = slope.len();
        let mut b = vec![0.0; n + 1];
        b[0] = 1.0;
        // With all weight on the first plane, each face's multiplier has the sign of its slope.
        let unit = (0..=n).map(|row| match row {
            0 => (1.0, 0.0),
            _ if slope[row - 1] >= 0.0 => (1.0, low[row - 1]),
            _ => (-1.0, -high[row - 1]),
        });
        let mut lp = Lp::new(&b, unit);
        let (mut lows, mut highs) = (Vec::new(), Vec::new());
        for k in 0..n {
            let is_low = slope[k] >= 0.0;
            let (sign, cost) = if is_low { (-1.0, -high[k]) } else { (1.0, low[k]) };
            let other = lp.add(cost, vec![(entry(k + 1), sign)]);
            lows.push(if is_low { k + 1 } else { other });
            highs.push(if is_low { other } else { k + 1 });
        }
        let first = lp.add(offset, column(slope));
        lp.force(first, 0);
        // The column that stood in for the first plane would make the weights less than one.
        lp.set_cost(0, f64::NEG_INFINITY);
        Self { lp, low: lows, high: highs, walls: (low.to_vec(), high.to_vec()) }
    }

    pub(crate) fn add(&mut self, offset: f64, slope: &[f64]) {
        self.lp.add(offset, column(slope));
    }

    pub(crate) fn set_box(&mut self, low: &[f64], high: &[f64]) {
        for k in 0..low.len() {
            self.lp.set_cost(self.low[k], low[k]);
            self.lp.set_cost(self.high[k], -high[k]);
        }
        self.walls = (low.to_vec(), high.to_vec());
    }

    /// The lowest point of the largest plane within the box.
    pub(crate) fn lowest(&mut self) -> Lowest {
        self.lp.maximise();
        let prices = self.lp.prices();
        let walls = self.walls.0.iter().zip(&self.walls.1);
        let at = prices[1..].iter().zip(walls).map(|(x, (low, high))| x.clamp(*low, *high)).collect();
        Lowest { value: prices[0], at }
    }
}

fn entry(row: usize) -> u32 {
    u32::try_from(row).unwrap_or(u32::MAX)
}

fn column(slope: &[f64]) -> Vec<(u32, f64)> {
    let slopes = slope.iter().enumerate().filter(|(_, part)| **part != 0.0);
    std::iter::once((0, 1.0)).chain(slopes.map(|(k, part)| (entry(k + 1), -part))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_point_of_a_tent_turned_over() {
        // max(-x - y, x, y) is lowest at the origin.
        let mut master = Master::new(0.0, &[-1.0, -1.0], &[-4.0, -4.0], &[4.0, 4.0]);
        assert!((master.lowest().value + 8.0).abs() < 1e-9, "one plane: the far corner");
        master.add(0.0, &[1.0, 0.0]);
        master.add(0.0, &[0.0, 1.0]);
        let lowest = master.lowest();
        assert!(lowest.value.abs() < 1e-9 && lowest.at.iter().all(|x| x.abs() < 1e-9), "{lowest:?}");
        master.set_box(&[1.0, -4.0], &[4.0, 4.0]);
        assert!((master.lowest().value - 1.0).abs() < 1e-9);
    }

    #[test]
    fn random_planes_against_a_grid() {
        let mut random = pollux_model::Random::seeded(5);
        for _ in 0..200 {
            let planes: Vec<(f64, [f64; 2])> = (0..8)
                .map(|_| (random.unit(), [random.unit() * 4.0 - 2.0, random.unit() * 4.0 - 2.0]))
                .collect();
            let mut master = Master::new(planes[0].0, &planes[0].1, &[-1.0, 0.0], &[1.0, 2.0]);
            for (offset, slope) in &planes[1..] {
                master.add(*offset, slope);
                master.lowest();
            }
            let lowest = master.lowest();
            let top = |x: f64, y: f64| {
                planes.iter().map(|(c, g)| c + g[0] * x + g[1] * y).fold(f64::NEG_INFINITY, f64::max)
            };
            assert!((top(lowest.at[0], lowest.at[1]) - lowest.value).abs() < 1e-9, "{lowest:?}");
            let mut grid = f64::INFINITY;
            for i in 0..=100 {
                for j in 0..=100 {
                    grid = grid.min(top(f64::from(i) / 50.0 - 1.0, f64::from(j) / 50.0));
                }
            }
            assert!(lowest.value <= grid + 1e-9 && grid <= lowest.value + 0.1, "{} {grid}", lowest.value);
        }
    }
}
