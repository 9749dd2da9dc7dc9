//! What passes from round to round: the members, by the ids of their jobs and nodes.

use super::ground::{Ground, count};
use crate::snapshot::{Learned, Population, Snapshot};

/// Members of the last round in this round's layout, every job and node matched by its id.
pub(super) fn by_id(population: &Population, ground: &Ground, snapshot: &Snapshot<Learned>) -> Vec<Vec<u16>> {
    let (jobs, nodes) = ids(ground, snapshot);
    let same = |old: &[u64], new: &[u64]| {
        let place = |(to, id)| old.iter().position(|other| other == id).map(|from| (from, to));
        new.iter().enumerate().filter_map(place).collect::<Vec<_>>()
    };
    let (old_jobs, old_nodes) = old_ids(population);
    remap(population, ground, &same(&old_jobs, &jobs), &same(&old_nodes, &nodes))
}

/// Members of the last round in this round's layout as the artifact does it (its bug B1): those jobs that are
/// in both rounds are matched by their place among each other, and jobs that changed places get each
/// other's rows.
pub(super) fn by_position(
    population: &Population,
    ground: &Ground,
    snapshot: &Snapshot<Learned>,
) -> Vec<Vec<u16>> {
    let (jobs, nodes) = ids(ground, snapshot);
    let same = |old: &[u64], new: &[u64]| {
        let from = (0..old.len()).filter(|&at| new.contains(&old[at]));
        let to = (0..new.len()).filter(|&at| old.contains(&new[at]));
        from.zip(to).collect::<Vec<_>>()
    };
    let (old_jobs, old_nodes) = old_ids(population);
    remap(population, ground, &same(&old_jobs, &jobs), &same(&old_nodes, &nodes))
}

/// Members of this round, for the next.
pub(super) fn store<'m>(
    ground: &Ground,
    snapshot: &Snapshot<Learned>,
    members: impl Iterator<Item = &'m [u16]>,
) -> Population {
    Population {
        jobs: ground.rows.iter().map(|row| snapshot.jobs()[row.job].id).collect(),
        nodes: ground.columns.iter().map(|column| snapshot.cluster().nodes[column.node].id).collect(),
        members: members.map(|member| member.iter().map(|&cell| u32::from(cell)).collect()).collect(),
    }
}

fn ids(ground: &Ground, snapshot: &Snapshot<Learned>) -> (Vec<u64>, Vec<u64>) {
    let jobs = ground.rows.iter().map(|row| snapshot.jobs()[row.job].id.0);
    let nodes = ground.columns.iter().map(|column| u64::from(snapshot.cluster().nodes[column.node].id.0));
    (jobs.collect(), nodes.collect())
}

fn old_ids(population: &Population) -> (Vec<u64>, Vec<u64>) {
    let nodes = population.nodes.iter().map(|node| u64::from(node.0));
    (population.jobs.iter().map(|job| job.0).collect(), nodes.collect())
}

/// Copies by pairs of old and new places. A member of another size than its lists say is no member.
fn remap(
    population: &Population,
    ground: &Ground,
    rows: &[(usize, usize)],
    columns: &[(usize, usize)],
) -> Vec<Vec<u16>> {
    let old_width = population.nodes.len();
    let is_whole = |member: &&Vec<u32>| member.len() == population.jobs.len() * old_width;
    let remapped = population.members.iter().filter(is_whole).map(|old| {
        let mut new = vec![0; ground.current.len()];
        for &(from_row, to_row) in rows {
            for &(from, to) in columns {
                new[to_row * ground.width() + to] = count(old[from_row * old_width + from]);
            }
        }
        new
    });
    remapped.collect()
}
