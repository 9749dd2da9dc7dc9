//! What jobs left on the disk, whether or not the journal knows of them.

use std::fs;
use std::path::Path;

/// The greatest number of a job that has a folder in the state folder; 0 if none has.
///
/// A folder is made after its job was journalled. Jobs beyond the end of the journal tell that its last part is missing.
pub(super) fn latest_job(state_dir: &Path) -> u64 {
    let names = ["jobs", "runs"].into_iter().flat_map(|folder| {
        let entries = fs::read_dir(state_dir.join(folder)).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok())
    });
    // `runs` has a folder for each start: JOB.GENERATION.
    let numbers = names.filter_map(|name| name.split('.').next()?.parse().ok());
    numbers.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_job_is_found_by_its_folders() {
        let state = std::env::temp_dir().join(format!("pollux-folders-{}", std::process::id()));
        assert_eq!(latest_job(&state), 0);
        for folder in ["jobs/2", "jobs/10", "runs/3.1", "runs/12.4", "runs/notes"] {
            fs::create_dir_all(state.join(folder)).unwrap();
        }
        assert_eq!(latest_job(&state), 12);
        fs::remove_dir_all(&state).unwrap();
    }
}
