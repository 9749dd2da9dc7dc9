//! Workloads made of cluster traces, through the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn pollux(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pollux")).args(args).output().unwrap()
}

/// Three jobs of 10, 5 and 20 minutes on 1, 2 and 8 GPUs, in a folder of this test.
fn trace(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("cluster.csv");
    let text = "job_id,submission_time,duration,num_gpu\na,0,600,1\nb,60,300,2\nc,7200,1200,8\n";
    fs::write(&file, text).unwrap();
    file
}

fn run(args: &[&str]) -> serde_json::Value {
    let output = pollux(&[&["sim", "run", "--policy", "fifo", "-o", "json"][..], args].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test] // Training takes 600, 300 and 1200 s, 30 s for each start; the agent of the last tries micro-batches for 45 s more.
fn a_trace_runs_end_to_end() {
    let workload = format!("trace:{}", trace("run").display());
    let json = run(&["--workload", &workload, "--cluster", "2x8:t4"]);
    let run = &json["runs"][0];
    assert_eq!((&run["workload"], &run["jobs"]), (&"trace:cluster.csv".into(), &3.into()));
    let gpu_secs = run["gpu_seconds"].as_f64().unwrap();
    let expected = 630.0 + 2.0 * 330.0 + 8.0 * 1_230.0;
    assert!((expected - 1.0..expected + 8.0 * 60.0).contains(&gpu_secs), "{gpu_secs} GPU-seconds");
    let mean = run["avg_jct_s"].as_f64().unwrap();
    assert!((730.0..800.0).contains(&mean), "{mean} s");
}

#[test] // What is printed as CSV runs the same as the trace itself.
fn a_trace_as_a_workload_is_the_same() {
    let file = trace("same");
    let spec = format!("trace:{},jobs=2", file.display());
    let printed = pollux(&["sim", "workload", &spec, "--cluster", "2x8:t4", "--seed", "4"]);
    assert!(printed.status.success(), "{printed:?}");
    let text = String::from_utf8(printed.stdout).unwrap();
    assert!(text.starts_with("name,time,application,num_replicas,batch_size,work\n"), "{text}");
    assert_eq!(text.lines().count(), 3);
    let csv = file.with_file_name("printed.csv");
    fs::write(&csv, text).unwrap();
    let figures = |workload: &str| {
        let json = run(&["--workload", workload, "--cluster", "2x8:t4", "--seeds", "4"]);
        ["avg_jct_s", "makespan_s", "gpu_seconds", "worst_rho"].map(|key| json["runs"][0][key].clone())
    };
    assert_eq!(figures(&csv.display().to_string()), figures(&spec));
}

#[test] // 630 GPU-seconds with the start; a whole training of any application of that class takes another time.
fn work_can_be_that_of_the_profile() {
    let spec = format!("trace:{},jobs=1", trace("profile").display());
    let gpu_secs = |spec: &str| run(&["--workload", spec])["runs"][0]["gpu_seconds"].as_f64().unwrap();
    assert!((gpu_secs(&spec) - 630.0).abs() < 5.0);
    assert!((gpu_secs(&format!("{spec},work=profile")) - 630.0).abs() > 60.0);
}

#[test] // A job can be shown and kept though others are not looked into.
fn stories_and_timelines_are_kept_where_they_are_wanted() {
    let file = trace("kept");
    let workload = format!("trace:{}", file.display());
    let output = pollux(&["sim", "workload", &workload]);
    let text = String::from_utf8(output.stdout).unwrap();
    let name = text.lines().nth(1).unwrap().split(',').next().unwrap().to_owned();
    let out = file.with_file_name("out");
    let out = out.display().to_string();
    let args = ["sim", "run", "--policy", "pollux", "--workload", &workload, "--show", &name];
    let shown = pollux(&args);
    assert!(shown.status.success(), "{shown:?}");
    let story = String::from_utf8(shown.stdout).unwrap();
    assert!(story.contains("Why it got what it got:") && story.contains("finished"), "{story}");
    let kept = pollux(&[&args[..6], &["--out", &out][..]].concat());
    assert!(kept.status.success(), "{kept:?}");
    let timeline = fs::read_to_string(format!("{out}/pollux/trace_cluster.csv-seed1/timeline.csv")).unwrap();
    assert_eq!(timeline.lines().filter(|line| line.contains(",finished,")).count(), 3, "{timeline}");
}
