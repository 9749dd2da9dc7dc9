//! Looks at a report in a browser: no page is wider than a telephone.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::{python, shell};

/// Where the report that is looked at lies, relative to the root.
const FOLDER: &str = "target/browser";
/// Names under which the browser is known.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Widths of a telephone, a tablet and a screen, in pixels.
const WIDTHS: [u32; 3] = [390, 768, 1400];

/// Makes a report and measures how wide a browser sets it. Without a browser it says so loudly.
pub(crate) fn check() -> Result<()> {
    let Some(browser) = browser() else {
        eprintln!("\nNO BROWSER: reports were NOT looked at. Install chromium to run this check.");
        return Ok(());
    };
    let what =
        ["--policy", "pollux:tuned,tiresias", "--workload", "generate:jobs=20,hours=2", "--out", FOLDER];
    shell::read(shell::pollux()?.args(["sim", "run"]).args(what))?;
    let folder = shell::root().join(FOLDER);
    for width in WIDTHS {
        let found = measure(browser, &folder, width)?;
        ensure!(found <= width, "report.html is {found} pixels wide on a screen of {width}; see {FOLDER}");
    }
    println!("browser: report.html fits screens of {WIDTHS:?} pixels");
    Ok(())
}

/// The width a browser needs for the report in a frame of this width.
fn measure(browser: &str, folder: &Path, width: u32) -> Result<u32> {
    let page = folder.join("measure.html");
    fs::write(&page, frame(width)).with_context(|| format!("cannot write {}", page.display()))?;
    let address = format!("file://{}", page.display());
    // A frame, since browsers without a screen have windows of a least width of their own.
    let flags =
        ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--dump-dom"];
    let said = shell::read(shell::command(browser).args(flags).arg(&address))?;
    width_in(&said).with_context(|| format!("{browser} said nothing of the width: {said}"))
}

fn frame(width: u32) -> String {
    format!(
        "<!DOCTYPE html><html><body><iframe id=\"f\" src=\"report.html\" style=\"width:{width}px;height:900px;border:0\">\
         </iframe><script>onload = () => {{ const root = document.getElementById(\"f\").contentDocument.documentElement; \
         document.body.innerHTML = \"<p>width \" + root.scrollWidth + \"</p>\"; }};</script></body></html>\n"
    )
}

fn width_in(said: &str) -> Option<u32> {
    said.split_once("<p>width ")?.1.split_once('<')?.0.trim().parse().ok()
}

/// The browser of this machine, installed where that is ours to do.
fn browser() -> Option<&'static str> {
    let found = || BROWSERS.into_iter().find(|name| python::starts(name));
    found().or_else(|| {
        if !python::may_install() || python::install("chromium").is_err() {
            return None;
        }
        found()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_read_from_what_the_browser_says() {
        assert_eq!(width_in("<html><body><p>width 390</p></body></html>"), Some(390));
        assert_eq!(width_in("<html><body></body></html>"), None);
        assert!(frame(390).contains("width:390px"));
    }
}
