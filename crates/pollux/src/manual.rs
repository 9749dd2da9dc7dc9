//! Completions and manual pages, made from the same arguments that are parsed.

use clap::CommandFactory as _;

use crate::cli::{Cli, CompletionArgs, ManArgs};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn completion(args: &CompletionArgs) -> Output {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "pollux", &mut text);
    Output { data: String::from_utf8_lossy(&text).into_owned(), ..Output::default() }
}

pub(crate) fn pages(args: &ManArgs) -> Result<Output, Failure> {
    let folder = &args.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|source| Failure::Write { path: folder.clone(), source })?;
    let note =
        format!("pages lie in {}; read one with `man {}/pollux.1`", folder.display(), folder.display());
    Ok(Output { notes: vec![note], ..Output::default() })
}
