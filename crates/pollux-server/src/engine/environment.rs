//! What a worker is told, as environment variables.
//!
//! Names and meanings are those of torchrun, of AdaptDL's trainer (version 0.2) and our own.

use std::collections::BTreeMap;

use super::run::{Devices, RunSpec};

/// Marks every process of a run: `STATE/JOB.GENERATION.RANK`.
pub const RUN_VARIABLE: &str = "POLLUX_RUN";

/// All nodes of the local engine are this machine.
const MASTER_ADDR: &str = "127.0.0.1";

/// The version of AdaptDL's scheduler that its trainers are told; they refuse another first number.
const ADAPTDL_VERSION: &str = "0.2.11";

/// The variables of one rank: the user's own, then ours, which win. None if the run has no such rank.
pub fn environment(spec: &RunSpec, rank: u32) -> Option<BTreeMap<String, String>> {
    let place = spec.ranks.get(usize::try_from(rank).ok()?)?;
    let told = &spec.told;
    let neighbours = || spec.ranks.iter().filter(|other| other.node_rank == place.node_rank);
    let n_nodes = spec.ranks.iter().map(|rank| rank.node_rank + 1).max().unwrap_or(0);
    let generation = spec.run.generation.0;
    let restarts = generation.saturating_sub(1).to_string();
    let world = spec.ranks.len().to_string();
    let (slots, local_rank, local_world) = match told.devices {
        Devices::Node => {
            let slots: Vec<u32> = neighbours().flat_map(|rank| rank.slots.iter().copied()).collect();
            (slots, place.local_rank, neighbours().count())
        }
        Devices::Own => (place.slots.clone(), 0, 1),
    };

    let mut variables = told.env.clone();
    let mut set = |name: &str, value: String| drop(variables.insert(name.to_owned(), value));

    set("RANK", rank.to_string());
    set("LOCAL_RANK", local_rank.to_string());
    set("WORLD_SIZE", world.clone());
    set("LOCAL_WORLD_SIZE", local_world.to_string());
    set("GROUP_RANK", place.node_rank.to_string());
    set("GROUP_WORLD_SIZE", n_nodes.to_string());
    set("ROLE_NAME", "default".to_owned());
    set("ROLE_RANK", rank.to_string());
    set("ROLE_WORLD_SIZE", world.clone());
    set("MASTER_ADDR", MASTER_ADDR.to_owned());
    set("MASTER_PORT", spec.master_port.to_string());
    set("TORCHELASTIC_RUN_ID", format!("pollux-{}", spec.run));
    set("TORCHELASTIC_RESTART_COUNT", restarts.clone());
    // The scheduler decides how often; no limit that a worker could count on.
    set("TORCHELASTIC_MAX_RESTARTS", i32::MAX.to_string());
    // Rank 0 listens on the port itself: there is no agent of torchrun's that would.
    set("TORCHELASTIC_USE_AGENT_STORE", "False".to_owned());
    set("NODE_RANK", place.node_rank.to_string());
    set("NUM_NODES", n_nodes.to_string());
    set("CUDA_VISIBLE_DEVICES", joined(&slots));
    // The driver numbers GPUs by their place on the bus; CUDA would number them by speed.
    set("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned());

    set("ADAPTDL_JOB_ID", format!("pollux/{}", spec.name));
    set("ADAPTDL_MASTER_ADDR", MASTER_ADDR.to_owned());
    set("ADAPTDL_MASTER_PORT", spec.control_port.to_string());
    set("ADAPTDL_REPLICA_RANK", rank.to_string());
    set("ADAPTDL_NUM_NODES", n_nodes.to_string());
    set("ADAPTDL_NUM_REPLICAS", world);
    set("ADAPTDL_NUM_RESTARTS", restarts);
    set("ADAPTDL_SCHED_VERSION", ADAPTDL_VERSION.to_owned());
    set("ADAPTDL_SHARE_PATH", told.workdir.display().to_string());

    set(RUN_VARIABLE, spec.run.tag(&spec.state, rank));
    set("POLLUX_JOB_ID", spec.run.job.0.to_string());
    set("POLLUX_JOB_NAME", spec.name.clone());
    set("POLLUX_ATTEMPT", generation.to_string());
    set("POLLUX_GPU_TYPE", place.gpu_type.clone());
    set("POLLUX_NODE", place.node.clone());
    set("POLLUX_GRACE_SECONDS", seconds(told.grace_ms));

    let path = |path: &Option<std::path::PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let optional = [
        ("POLLUX_SERVER", told.server.clone()),
        ("POLLUX_TOKEN_FILE", path(&told.token_file)),
        ("POLLUX_CHECKPOINT_PATH", path(&told.checkpoint_path)),
        ("POLLUX_BATCH", told.batch.clone()),
        ("POLLUX_EMULATED", told.emulated.then(|| "1".to_owned())),
        ("POLLUX_EMULATED_PROFILE", told.emulated_profile.clone().filter(|_| told.emulated)),
        ("ADAPTDL_SUPERVISOR_URL", told.adaptdl_url.clone()),
        ("ADAPTDL_CHECKPOINT_PATH", path(&told.checkpoint_path)),
    ];
    for (name, value) in optional {
        match value {
            Some(value) => drop(variables.insert(name.to_owned(), value)),
            // What is not so must not be claimed by the user's variables either.
            None => drop(variables.remove(name)),
        }
    }
    Some(variables)
}

fn joined(slots: &[u32]) -> String {
    slots.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// Milliseconds as seconds: `30`, `0.5`.
fn seconds(millis: u64) -> String {
    let text = format!("{}.{:03}", millis / 1_000, millis % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use pollux_core::Generation;
    use pollux_model::JobId;

    use super::super::run::{Rank, RunId, Told, VERSION};
    use super::*;

    /// Job 7's second start: ranks 0 and 1 on `a` with GPUs 2 and 5, rank 2 on `b` with GPU 0.
    fn spec(told: Told) -> RunSpec {
        let rank = |node: &str, node_rank, local_rank, slot| Rank {
            node: node.to_owned(),
            gpu_type: "t4".to_owned(),
            node_rank,
            local_rank,
            slots: vec![slot],
        };
        RunSpec {
            version: VERSION,
            state: "home".to_owned(),
            run: RunId::new(JobId(7), Generation(2)),
            name: "digits".to_owned(),
            ranks: vec![rank("a", 0, 0, 2), rank("a", 0, 1, 5), rank("b", 1, 0, 0)],
            master_port: 29_500,
            control_port: 29_501,
            told,
        }
    }

    fn check(told: Told, rank: u32, expected: &[(&str, Option<&str>)]) {
        let variables = environment(&spec(told), rank).expect("a rank of the run");
        for (name, value) in expected {
            assert_eq!(variables.get(*name).map(String::as_str), *value, "{name} of rank {rank}");
        }
    }

    #[test]
    fn torchrun_s_variables_say_who_is_where() {
        let of_rank_1 = [
            ("RANK", "1"),
            ("LOCAL_RANK", "1"),
            ("WORLD_SIZE", "3"),
            ("LOCAL_WORLD_SIZE", "2"),
            ("GROUP_RANK", "0"),
            ("ROLE_RANK", "1"),
            ("ROLE_WORLD_SIZE", "3"),
            ("MASTER_ADDR", "127.0.0.1"),
            ("MASTER_PORT", "29500"),
            ("TORCHELASTIC_RESTART_COUNT", "1"),
            ("TORCHELASTIC_RUN_ID", "pollux-7.2"),
            ("NODE_RANK", "0"),
            ("NUM_NODES", "2"),
            ("CUDA_VISIBLE_DEVICES", "2,5"),
            ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        ];
        check(Told::default(), 1, &of_rank_1.map(|(name, value)| (name, Some(value))));
        check(Told::default(), 2, &[("LOCAL_RANK", Some("0")), ("GROUP_RANK", Some("1"))]);
        check(Told::default(), 2, &[("CUDA_VISIBLE_DEVICES", Some("0")), ("POLLUX_NODE", Some("b"))]);
        assert_eq!(environment(&spec(Told::default()), 3), None);
    }

    #[test]
    fn a_worker_that_sees_its_own_gpus_alone_is_the_first_there() {
        let told = Told { devices: Devices::Own, ..Told::default() };
        let expected =
            [("CUDA_VISIBLE_DEVICES", Some("5")), ("LOCAL_RANK", Some("0")), ("LOCAL_WORLD_SIZE", Some("1"))];
        check(told, 1, &expected);
    }

    #[test]
    fn adaptdl_s_variables_are_there() {
        let told = Told {
            adaptdl_url: Some("http://127.0.0.1:1/adaptdl".to_owned()),
            checkpoint_path: Some("jobs/7".into()),
            workdir: "work".into(),
            ..Told::default()
        };
        let expected = [
            ("ADAPTDL_JOB_ID", "pollux/digits"),
            ("ADAPTDL_MASTER_ADDR", "127.0.0.1"),
            ("ADAPTDL_MASTER_PORT", "29501"),
            ("ADAPTDL_REPLICA_RANK", "2"),
            ("ADAPTDL_NUM_NODES", "2"),
            ("ADAPTDL_NUM_REPLICAS", "3"),
            ("ADAPTDL_NUM_RESTARTS", "1"),
            ("ADAPTDL_SCHED_VERSION", "0.2.11"),
            ("ADAPTDL_SUPERVISOR_URL", "http://127.0.0.1:1/adaptdl"),
            ("ADAPTDL_CHECKPOINT_PATH", "jobs/7"),
            ("ADAPTDL_SHARE_PATH", "work"),
        ];
        check(told, 2, &expected.map(|(name, value)| (name, Some(value))));
    }

    #[test]
    fn our_own_variables_are_those_of_the_design() {
        let told = Told {
            server: Some("http://127.0.0.1:1".to_owned()),
            token_file: Some("token".into()),
            checkpoint_path: Some("jobs/7".into()),
            batch: Some("{}".to_owned()),
            emulated: true,
            emulated_profile: Some("cifar10".to_owned()),
            grace_ms: 500,
            ..Told::default()
        };
        let expected = [
            ("POLLUX_RUN", "home/7.2.0"),
            ("POLLUX_JOB_ID", "7"),
            ("POLLUX_JOB_NAME", "digits"),
            ("POLLUX_ATTEMPT", "2"),
            ("POLLUX_SERVER", "http://127.0.0.1:1"),
            ("POLLUX_TOKEN_FILE", "token"),
            ("POLLUX_CHECKPOINT_PATH", "jobs/7"),
            ("POLLUX_GPU_TYPE", "t4"),
            ("POLLUX_NODE", "a"),
            ("POLLUX_GRACE_SECONDS", "0.5"),
            ("POLLUX_BATCH", "{}"),
            ("POLLUX_EMULATED", "1"),
            ("POLLUX_EMULATED_PROFILE", "cifar10"),
        ];
        check(told, 0, &expected.map(|(name, value)| (name, Some(value))));
        let real = Told { emulated_profile: Some("cifar10".to_owned()), grace_ms: 30_000, ..Told::default() };
        let expected = [
            ("POLLUX_EMULATED", None),
            ("POLLUX_EMULATED_PROFILE", None),
            ("POLLUX_SERVER", None),
            ("POLLUX_GRACE_SECONDS", Some("30")),
        ];
        check(real, 0, &expected);
    }

    #[test]
    fn users_add_variables_but_do_not_change_ours() {
        let mine = [("LR", "0.1"), ("RANK", "9"), ("POLLUX_RUN", "away/1.1.1"), ("POLLUX_EMULATED", "1")];
        let env = mine.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let expected = [
            ("LR", Some("0.1")),
            ("RANK", Some("0")),
            ("POLLUX_RUN", Some("home/7.2.0")),
            ("POLLUX_EMULATED", None),
        ];
        check(Told { env, ..Told::default() }, 0, &expected);
    }

    #[test]
    fn seconds_have_no_needless_digits() {
        for (millis, text) in [(0, "0"), (500, "0.5"), (1_000, "1"), (30_000, "30"), (1_250, "1.25")] {
            assert_eq!(seconds(millis), text);
        }
    }
}
