//! Commands and what they print: those of `tests/cmd`, and those that the documents show.
//!
//! `TRYCMD=overwrite cargo test -p pollux --test cmd` writes what is printed now; read the difference before
//! keeping it.

#[test]
fn commands_print_what_they_did() {
    // Where a reader of the documents would stand.
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
    trycmd::TestCases::new()
        .env("COLUMNS", "100")
        // Where nothing is set, no data is found.
        .env("POLLUX_DATA", "")
        .env("POLLUX_OSDI21_TABLE", "")
        .case("crates/pollux/tests/cmd/*.md")
        .case("crates/pollux/tests/cmd/*.toml")
        .case("docs/reference/cli.md")
        .case("docs/guides/own-table.md")
        .case("docs/guides/simulate.md");
}
