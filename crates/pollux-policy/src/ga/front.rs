//! Two objectives at once: who survives by rank and crowding, as in NSGA-II (Deb et al., 2002).

use pollux_model::Random;

/// Two numbers, both to be as small as possible.
pub(super) type Objectives = [f64; 2];

/// Crowding of those at the ends of a front: above any other, and finite as the artifact's library has it.
const AT_THE_END: f64 = 1e14;

/// One who lives on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Survivor {
    /// Which point.
    pub index: usize,
    /// How many fronts are before its own.
    pub rank: usize,
    /// How far its neighbours on the front are.
    pub crowding: f64,
}

/// Whether `a` is nowhere worse than `b` and somewhere better.
pub(super) fn dominates(a: Objectives, b: Objectives) -> bool {
    a[0] <= b[0] && a[1] <= b[1] && (a[0] < b[0] || a[1] < b[1])
}

/// The best `n` points: front after front, and of the last front those with most room around them.
pub(super) fn survivors(points: &[Objectives], n: usize, random: &mut Random) -> Vec<Survivor> {
    let mut all = Vec::with_capacity(n);
    for (rank, front) in fronts(points).into_iter().enumerate() {
        let room = n - all.len();
        if room == 0 {
            break;
        }
        let crowding = crowding(points, &front);
        let mut front: Vec<Survivor> = front
            .into_iter()
            .zip(crowding)
            .map(|(index, crowding)| Survivor { index, rank, crowding })
            .collect();
        if front.len() > room {
            // Ties go at random: the sort is stable.
            random.shuffle(&mut front);
            front.sort_by(|a, b| b.crowding.total_cmp(&a.crowding));
            front.truncate(room);
        }
        all.extend(front);
    }
    all
}

/// Points by front: those that nobody dominates, those that only they dominate, and so on.
///
/// Going up the first objective, a front dominates a point exactly if the last point it took does, since that
/// one has the smallest second objective of the front.
fn fronts(points: &[Objectives]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| points[a][0].total_cmp(&points[b][0]).then(points[a][1].total_cmp(&points[b][1])));
    let mut fronts: Vec<Vec<usize>> = Vec::new();
    for index in order {
        let is_free =
            |front: &Vec<usize>| front.last().is_none_or(|&last| !dominates(points[last], points[index]));
        match fronts.iter().position(is_free) {
            Some(front) => fronts[front].push(index),
            None => fronts.push(vec![index]),
        }
    }
    fronts
}

/// For each point of a front (in the order of [`fronts`]), the mean over the objectives of the distance
/// between its neighbours, each objective's range being 1. Of equal points one counts and the others have 0.
fn crowding(points: &[Objectives], front: &[usize]) -> Vec<f64> {
    if front.len() <= 2 {
        return vec![AT_THE_END; front.len()];
    }
    let is_new = |at: usize| {
        at == 0 || points[front[at]].iter().zip(&points[front[at - 1]]).any(|(a, b)| a.total_cmp(b).is_ne())
    };
    let unique: Vec<usize> = (0..front.len()).filter(|&at| is_new(at)).collect();
    let mut crowding = vec![0.0; front.len()];
    for (position, &at) in unique.iter().enumerate() {
        let is_end = position == 0 || position + 1 == unique.len();
        crowding[at] = if is_end { AT_THE_END } else { room_between(points, front, &unique, position) };
    }
    crowding
}

fn room_between(points: &[Objectives], front: &[usize], unique: &[usize], position: usize) -> f64 {
    let value = |position: usize, objective: usize| points[front[unique[position]]][objective];
    let of_objective = |objective: usize| {
        let range = (value(unique.len() - 1, objective) - value(0, objective)).abs();
        let gap = (value(position + 1, objective) - value(position - 1, objective)).abs();
        if range > 0.0 { gap / range } else { 0.0 }
    };
    f64::midpoint(of_objective(0), of_objective(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [Objectives; 7] =
        [[0.0, 4.0], [1.0, 3.0], [4.0, 0.0], [1.0, 3.0], [3.0, 1.0], [2.0, 4.0], [5.0, 5.0]];

    #[test]
    fn fronts_are_those_of_the_definition() {
        let fronts = fronts(&POINTS);
        assert_eq!(fronts, [vec![0, 1, 3, 4, 2], vec![5], vec![6]]);
        for (rank, front) in fronts.iter().enumerate() {
            for &index in front {
                let earlier = fronts[..rank].iter().flatten();
                let has_better = earlier.clone().any(|&other| dominates(POINTS[other], POINTS[index]));
                assert_eq!(has_better, rank > 0);
                assert!(!front.iter().any(|&other| dominates(POINTS[other], POINTS[index])));
            }
        }
    }

    #[test] // Between (0, 4) and (3, 1) lie three quarters of either range.
    fn lonely_points_have_the_largest_crowding() {
        let crowding = crowding(&POINTS, &[0, 1, 3, 4, 2]);
        assert_eq!(crowding, [AT_THE_END, 0.75, 0.0, 0.75, AT_THE_END]);
    }

    #[test]
    fn the_last_front_loses_its_crowded_points() {
        let kept = survivors(&POINTS, 4, &mut Random::seeded(1));
        let mut indices: Vec<usize> = kept.iter().map(|survivor| survivor.index).collect();
        indices.sort_unstable();
        assert!(kept.iter().all(|survivor| survivor.rank == 0));
        assert!(indices == [0, 1, 2, 4], "{indices:?}: the twin of point 1 has no room at all");
    }
}
