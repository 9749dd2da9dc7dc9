//! Limits of memory and CPUs by control groups (version 2), where they can be written.
//!
//! A rank's group is made beside or below that of its supervisor. Under systemd that needs
//! `Delegate=yes` and `DelegateSubgroup=` in the unit; in a container, a writable hierarchy.

use std::fs;
use std::path::{Path, PathBuf};

use super::run::Limits;

/// Over which time a limit of CPUs is kept, in microseconds.
const PERIOD_US: u64 = 100_000;

/// The control group of one rank.
#[derive(Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
}

/// What a group tells about memory.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MemoryUse {
    pub(super) oom_kills: Option<u64>,
    pub(super) peak_bytes: Option<u64>,
}

impl Cgroup {
    /// Makes a group with these limits below one of the parents, or says why not.
    pub(super) fn create(parents: &[PathBuf], name: &str, limits: &Limits) -> Result<Self, String> {
        let mut reason = "no control groups of version 2 are mounted".to_owned();
        for parent in parents {
            match Self::below(parent, name, limits) {
                Ok(group) => return Ok(group),
                Err(why) => reason = why,
            }
        }
        Err(reason)
    }

    fn below(parent: &Path, name: &str, limits: &Limits) -> Result<Self, String> {
        if limits.is_some() {
            // Fails where it is not allowed, as for a group that holds processes itself; writing a limit then tells. Both
            // at once: `+cpu` alone is allowed there too, and leaves a group in whose children nothing can run.
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory +cpu");
        }
        // Moving a process needs this right over the nearest group that is above both its places.
        let above = parent.join("cgroup.procs");
        let may_move = fs::OpenOptions::new().write(true).open(&above);
        may_move.map_err(|error| format!("cannot write {}: {error}", above.display()))?;
        let path = parent.join(name);
        fs::create_dir(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
        let group = Self { path };
        match group.set(limits) {
            Ok(()) => Ok(group),
            Err(why) => {
                group.remove();
                Err(why)
            }
        }
    }

    fn set(&self, limits: &Limits) -> Result<(), String> {
        if let Some(bytes) = limits.memory_bytes {
            self.write("memory.max", &bytes.to_string())?;
            // Without these a limit only makes a job slow, or leaves half of it alive. Older kernels lack them.
            let _ = self.write("memory.swap.max", "0");
            let _ = self.write("memory.oom.group", "1");
        }
        if let Some(cpus) = limits.cpus {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "clamped; CPUs are few"
            )]
            let quota = (cpus.clamp(0.01, 1e6) * PERIOD_US as f64) as u64;
            self.write("cpu.max", &format!("{quota} {PERIOD_US}"))?;
        }
        Ok(())
    }

    /// A group that was made before.
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where a process writes `0` to join.
    pub(super) fn door(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }

    /// Kills whatever is inside.
    pub(super) fn kill(&self) {
        let _ = self.write("cgroup.kill", "1");
    }

    /// What was used so far.
    pub(super) fn memory(&self) -> MemoryUse {
        let events = fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        let oom_kills = events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
        let peak = fs::read_to_string(self.path.join("memory.peak")).ok();
        MemoryUse { oom_kills, peak_bytes: peak.and_then(|peak| peak.trim().parse().ok()) }
    }

    /// Removes the group; it must be empty.
    pub(super) fn remove(&self) {
        let _ = fs::remove_dir(&self.path);
    }

    /// Writes to a file of the group; the kernel makes them all, so one that is missing is not made here.
    fn write(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.path.join(file);
        let opened = fs::OpenOptions::new().write(true).open(&path);
        let written = opened.and_then(|mut file| std::io::Write::write_all(&mut file, value.as_bytes()));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))
    }
}

/// Where this process may make groups: below its own, else beside it.
pub(super) fn parents() -> Vec<PathBuf> {
    let mounts = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    let Some(mount) = mounts.into_iter().find(|mount| mount.join("cgroup.controllers").exists()) else {
        return Vec::new();
    };
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    candidates(mount, &groups)
}

fn candidates(mount: &Path, groups: &str) -> Vec<PathBuf> {
    let Some(own) = groups.lines().find_map(|line| line.strip_prefix("0::/")) else { return Vec::new() };
    let own = mount.join(own);
    let beside = own.parent().filter(|parent| parent.starts_with(mount)).map(Path::to_owned);
    [own].into_iter().chain(beside).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_candidates(groups: &str, expected: &[&str]) {
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(candidates(Path::new("/cg"), groups), expected, "{groups}");
    }

    #[test]
    fn groups_are_made_below_or_beside_one_s_own() {
        check_candidates("0::/a/b\n", &["/cg/a/b", "/cg/a"]);
        check_candidates("9:cpu:/x\n0::/a\n", &["/cg/a", "/cg"]);
        check_candidates("0::/\n", &["/cg/"]);
        check_candidates("9:cpu:/x\n", &[]);
    }

    /// A folder that looks like a group in which processes may be moved.
    fn parent() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cgroup.procs"), "").unwrap();
        folder
    }

    #[test]
    fn limits_that_cannot_be_set_leave_no_group() {
        let folder = parent();
        let limits = Limits { memory_bytes: Some(1), cpus: None };
        // An ordinary folder has no memory.max.
        let why = Cgroup::create(&[folder.path().to_owned()], "g", &limits).unwrap_err();
        assert!(why.contains("memory.max"), "{why}");
        assert!(!folder.path().join("g").exists());
        fs::remove_file(folder.path().join("cgroup.procs")).unwrap();
        let why = Cgroup::create(&[folder.path().to_owned()], "g", &limits).unwrap_err();
        assert!(why.contains("cgroup.procs"), "{why}");
        let why = Cgroup::create(&[], "g", &limits).unwrap_err();
        assert!(why.contains("version 2"), "{why}");
    }

    #[test]
    fn limits_and_what_was_used_are_the_kernel_s_files() {
        let folder = parent();
        let group = Cgroup::create(&[folder.path().to_owned()], "g", &Limits::default()).unwrap();
        assert_eq!(group.memory(), MemoryUse::default());
        for file in ["memory.max", "cpu.max"] {
            fs::write(group.path.join(file), "").unwrap();
        }
        group.set(&Limits { memory_bytes: Some(4_096), cpus: Some(1.5) }).unwrap();
        assert_eq!(fs::read_to_string(group.path.join("memory.max")).unwrap(), "4096");
        assert_eq!(fs::read_to_string(group.path.join("cpu.max")).unwrap(), "150000 100000");
        fs::write(group.path.join("memory.events"), "oom 3\noom_kill 2\n").unwrap();
        fs::write(group.path.join("memory.peak"), "77\n").unwrap();
        assert_eq!(group.memory(), MemoryUse { oom_kills: Some(2), peak_bytes: Some(77) });
    }
}
