//! Commands: built in the repository root, shown before they run, an error when they fail.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The root of the repository: the parent of this crate, wherever the task was called from.
pub(crate) fn root() -> PathBuf {
    let manifest_dir =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest_dir).parent().expect("xtask lies in the repository").to_owned()
}

/// A command that will run in the root.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that runs this task.
///
/// It is not told what cargo told us of ourselves: build scripts that look at such variables would run again, and all that
/// hangs on them be built anew, whenever it is called now by a task and now by hand.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)) {
        cargo.env_remove(name);
    }
    cargo
}

/// The `pollux` of a release build, which is made first, together with its worker: built one at a time, they would share less
/// and be built twice.
pub(crate) fn pollux() -> Result<Command> {
    let packages = ["--package", "pollux", "--package", "pollux-trainer"];
    run(cargo().args(["build", "--release", "--locked"]).args(packages))?;
    let ourselves = std::env::current_exe().context("cannot find myself")?;
    let target = ourselves.ancestors().nth(2).context("cannot find the target folder")?;
    Ok(command(target.join("release").join("pollux")))
}

/// Shows the command, runs it with our terminal, and fails when it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    println!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Runs the command silently and gives what it wrote to standard output.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed ({}): {}", output.status, stderr.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` wrote something that is not UTF-8"))
}

/// The command as one would type it: variables first, the program without its folder.
fn show(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(key, value)| {
        value.map(|value| format!("{}={}", key.display(), quote(&value.to_string_lossy())))
    });
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| quote(&argument.to_string_lossy()));
    variables.chain([program]).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// Quotes a word that a shell would take apart.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_types_it() {
        let mut cargo = Command::new("some/folder/cargo");
        cargo.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace"]);
        assert_eq!(show(&cargo), "RUSTDOCFLAGS='-D warnings' cargo doc --workspace");
    }

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let mut cargo = cargo();
        cargo.arg("no-such-subcommand");
        assert!(read(&mut cargo).unwrap_err().to_string().starts_with("`cargo no-such-subcommand` failed"));
        let missing = run(&mut command("no-such-program")).unwrap_err();
        assert_eq!(missing.to_string(), "cannot start `no-such-program`");
    }
}
