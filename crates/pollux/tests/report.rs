//! The report of a simulation through the command: it is whole, its numbers are those of the runs, and it needs nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use roxmltree::{Document, Node, ParsingOptions};

const POLICIES: [&str; 2] = ["pollux:tuned", "tiresias"];
const WORKLOAD: &str = "generate:jobs=6,hours=1,mix=ncf:1+cifar10:1";
const FIGURES: [&str; 7] =
    ["summary", "jct-cdf", "usage", "gantt-pollux-tuned", "gantt-tiresias", "job", "fairness-cdf"];

fn pollux(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pollux")).args(args).output().unwrap()
}

/// A folder with the results of two policies, made once.
static RESULTS: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    let _ = fs::remove_dir_all(&folder);
    let (policies, out) = (POLICIES.join(","), folder.display().to_string());
    let args =
        ["sim", "run", "--policy", &policies, "--workload", WORKLOAD, "--cluster", "4x4:t4", "--out", &out];
    let output = pollux(&args);
    assert!(output.status.success(), "{output:?}");
    folder
});

fn report() -> String {
    fs::read_to_string(RESULTS.join("report.html")).unwrap()
}

fn parse(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).unwrap()
}

/// The rows of a figure's file, without its header.
fn rows(figure: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(RESULTS.join("data").join(format!("{figure}.csv"))).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Column `column` of the file `jobs.csv` of a policy's run.
fn of_jobs(policy: &str, column: usize) -> Vec<f64> {
    let run = "generate_jobs=6_hours=1_mix=ncf_1+cifar10_1-seed1";
    let path = RESULTS.join(policy.replace(':', "_")).join(run).join("jobs.csv");
    let text = fs::read_to_string(path).unwrap();
    let mut values: Vec<f64> =
        text.lines().skip(1).map(|line| line.split(',').nth(column).unwrap().parse().unwrap()).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Text that was put into an address.
fn decoded(address: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = address.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
            rest = &after[2..];
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn text_of(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

#[test]
fn every_figure_is_there_with_its_numbers() {
    let html = report();
    let document = parse(&html);
    let mut found = Vec::new();
    for figure in document.descendants().filter(|node| node.has_tag_name("figure")) {
        let name = figure.attribute("id").unwrap().strip_prefix("fig-").unwrap();
        let links: Vec<&str> = figure.descendants().filter_map(|node| node.attribute("href")).collect();
        let [file, copy] = links[..] else { panic!("{name}: {links:?}") };
        assert_eq!(file, format!("data/{name}.csv"));
        let text = fs::read_to_string(RESULTS.join(file)).unwrap();
        assert!(text.lines().count() > 1, "{name} has no numbers");
        assert_eq!(decoded(copy.strip_prefix("data:text/csv;charset=utf-8,").unwrap()), text);
        let drawings = figure.descendants().filter(|node| node.tag_name().name() == "svg");
        let titles = drawings.map(|svg| svg.children().any(|node| node.tag_name().name() == "title"));
        assert_eq!(titles.collect::<Vec<_>>(), [true], "{name}");
        found.push(name.to_owned());
    }
    assert_eq!(found, FIGURES);
    let mut files: Vec<String> = fs::read_dir(RESULTS.join("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(".csv", ""))
        .collect();
    files.sort();
    found.sort();
    assert_eq!(files, found);
}

#[test]
fn sections_and_policies_are_named() {
    let html = report();
    let document = parse(&html);
    let headings: Vec<String> =
        document.descendants().filter(|node| node.has_tag_name("h2")).map(text_of).collect();
    let expected =
        ["What was run", "Results", "The cluster over time", "One job", "Fairness", "What is simulated"];
    assert_eq!(headings, expected);
    let text = text_of(document.root_element());
    for part in POLICIES.into_iter().chain([WORKLOAD, "4x4:t4 (16 GPUs)", env!("CARGO_PKG_VERSION")]) {
        assert!(text.contains(part), "{part}");
    }
    for table in document.descendants().filter(|node| node.has_tag_name("table")).take(2) {
        let names: Vec<String> =
            table.descendants().filter(|node| node.attribute("scope") == Some("row")).map(text_of).collect();
        assert_eq!(names, POLICIES);
    }
}

#[test]
fn nothing_comes_from_a_network() {
    let html = report();
    let document = parse(&html);
    for node in document.descendants() {
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!["src", "srcset", "action"].contains(&name), "{name}={value}");
            assert!(name != "href" || !value.starts_with("http"), "{value}");
        }
    }
    assert!(!html.contains("@import") && !html.contains("url(http") && !html.contains("fetch("));
}

#[test] // Hours in the figure, seconds in the files of the runs.
fn the_distributions_are_those_of_the_jobs() {
    for policy in POLICIES {
        for (figure, column, unit) in [("jct-cdf", 4, 3_600.0), ("fairness-cdf", 7, 1.0)] {
            let own = rows(figure).into_iter().filter(|row| row[1] == policy);
            let shown: Vec<f64> = own.skip(1).map(|row| row[2].parse().unwrap()).collect();
            let expected: Vec<f64> = of_jobs(policy, column).iter().map(|value| value / unit).collect();
            assert_eq!(shown, expected, "{figure} of {policy}");
        }
    }
}

#[test] // The area below each line is the figure in the results: all that was held and useful was logged.
fn the_use_over_time_adds_up() {
    let json = fs::read_to_string(RESULTS.join("results.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut lines: BTreeMap<(String, String), Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows("usage") {
        let point = (row[2].parse().unwrap(), row[3].parse().unwrap());
        lines.entry((row[0].clone(), row[1].clone())).or_default().push(point);
    }
    assert_eq!(lines.len(), 4);
    for ((panel, policy), points) in lines {
        let area: f64 = points.windows(2).map(|pair| pair[0].1 * (pair[1].0 - pair[0].0)).sum();
        let mean = area / points.last().unwrap().0 / 100.0;
        let run =
            json["runs"].as_array().unwrap().iter().find(|run| run["policy"] == policy.as_str()).unwrap();
        let key = if panel.starts_with("Held") { "utilisation" } else { "useful_share" };
        let expected = run[key].as_f64().unwrap();
        assert!((mean - expected).abs() < 1e-6, "{panel} under {policy}: {mean}, {expected} in the results");
    }
}

#[test] // GPU-hours of the chart's spans are those of the jobs.
fn the_gantt_chart_holds_every_gpu_second() {
    for policy in POLICIES {
        let spans = rows(&format!("gantt-{}", policy.replace(':', "-")));
        let number = |row: &Vec<String>, column: usize| row[column].parse::<f64>().unwrap();
        let hours: f64 = spans.iter().map(|row| number(row, 2) * (number(row, 4) - number(row, 3))).sum();
        let expected = of_jobs(policy, 6).iter().sum::<f64>() / 3_600.0;
        assert!((hours - expected).abs() < 1e-6 * expected, "{policy}: {hours}, {expected}");
        for (index, row) in spans.iter().enumerate() {
            let overlaps = |other: &&Vec<String>| {
                let (first, end) = (number(row, 1), number(row, 1) + number(row, 2));
                other[0] == row[0]
                    && number(other, 1) < end
                    && first < number(other, 1) + number(other, 2)
                    && number(other, 3) < number(row, 4)
                    && number(row, 3) < number(other, 4)
            };
            assert_eq!(spans[..index].iter().find(overlaps), None, "{row:?}");
        }
    }
}

#[test]
fn the_job_shown_is_the_one_asked_for() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-shown");
    let _ = fs::remove_dir_all(&folder);
    let out = folder.display().to_string();
    let workload = "generate:jobs=3,hours=1,mix=ncf:1";
    let args = ["sim", "run", "--policy", "fifo", "--workload", workload, "--show", "ncf-1", "--out", &out];
    assert!(pollux(&args).status.success());
    let html = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(html.contains("The life of ncf-1") && html.contains("ncf-1 gets 1 GPU on node-0."));
}

#[test]
fn figures_can_be_taken_out() {
    let folder = RESULTS.display().to_string();
    let list = pollux(&["sim", "plot", &folder]);
    let list = String::from_utf8(list.stdout).unwrap();
    let names: Vec<&str> = list.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(names, FIGURES);
    assert!(list.contains("jct-cdf             How soon jobs were done\n"), "{list}");

    let printed = pollux(&["sim", "plot", &folder, "--figure", "usage"]).stdout;
    assert!(printed.starts_with(b"<svg") && report().contains(std::str::from_utf8(&printed).unwrap()));
    let files = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plots");
    fs::create_dir_all(&files).unwrap();
    for (name, magic) in [("usage.svg", &b"<svg"[..]), ("usage.PNG", &b"\x89PNG"[..])] {
        let file = files.join(name);
        let output =
            pollux(&["sim", "plot", &folder, "--figure", "usage", "--plot", &file.display().to_string()]);
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        assert!(fs::read(file).unwrap().starts_with(magic));
    }
    assert_eq!(fs::read(files.join("usage.svg")).unwrap(), printed);
}

#[test]
fn what_cannot_be_taken_out_is_said() {
    let folder = RESULTS.display().to_string();
    let check = |args: &[&str], code: i32, expected: &str| {
        let output = pollux(&[&["sim", "plot"], args].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert!(error.contains(expected), "{error}");
    };
    check(
        &[&folder, "--figure", "cdf"],
        2,
        "there is no figure `cdf`\n\nhint: there are `summary`, `jct-cdf`,",
    );
    check(&["gone"], 3, "there is no folder `gone`");
    check(&[&folder, "--plot", "a.png"], 2, "--figure <NAME>");
    let empty = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-report");
    let _ = fs::remove_dir_all(&empty);
    fs::create_dir_all(&empty).unwrap();
    check(&[&empty.display().to_string()], 3, "there is no file");
    fs::write(empty.join("report.html"), "<html></html>").unwrap();
    check(&[&empty.display().to_string()], 4, "no report of `pollux sim run`");
}

#[test]
fn a_page_tells_what_went_wrong() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-faults");
    let _ = fs::remove_dir_all(&folder);
    let (workload, faults) =
        ("generate:jobs=4,hours=1,mix=cifar10:1", "mtbf=2h,repair=10m,restart-failure=0.3");
    let out = folder.display().to_string();
    let args =
        ["sim", "run", "--policy", "fifo", "--workload", workload, "--cluster", "2x4:t4", "--faults", faults];
    let output = pollux(&[&args[..], &["--out", &out]].concat());
    assert!(output.status.success(), "{output:?}");
    let html = fs::read_to_string(folder.join("report.html")).unwrap();
    let text = text_of(parse(&html).root_element());
    for part in ["What went wrong", "GPU-hours done again", faults, "node away"] {
        assert!(text.contains(part), "{part}");
    }
    assert!(fs::read_to_string(folder.join("data/gantt-fifo.csv")).unwrap().contains("node away"));
}
