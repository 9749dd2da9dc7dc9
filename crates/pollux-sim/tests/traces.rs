//! Public traces: what is read of each format, what is refused, and what is made of it.
#![allow(clippy::print_stderr, reason = "what was not compared is said")]

mod common;

use std::collections::BTreeMap;

use common::profiles;
use pollux_policy::Fifo;
use pollux_sim::campaign::World;
use pollux_sim::simulation::{Options, simulate};
use pollux_sim::traces::{Format, Trace, TraceSpec, parse_trace, read_trace};
use pollux_sim::workload::{Checks, Workload, parse_workload, write_workload};

/// Five jobs of two clusters, not in order: of 0.5, 2, 20 and 200 GPU-hours, and one two days later.
const PHILLY: &str = "\
timestamp,duration,num_gpus,gpu_time,cluster
2020-02-28 12:00:00,3600,2,7200,east
2020-02-28 11:00:00,1800,1,1800,east
2020-02-28 13:00:00,9000,8,72000,west
2020-02-28 13:00:00,90000,8,720000,west
2020-03-01 11:00:00,60,1,60,east
";

const ELASTICFLOW: &str = "job_id,submission_time,duration,num_gpu\na,500,60,4\nb,100,30,1\n";
const NAMED: &str = "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n\
    0,10,9,bert,99,12,2,60\n1,20,9,vgg16,99,12,1,60\n2,30,9,resnet50,99,12,1,60\n";
const ALIBABA: &str = "\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,1,1,1,250,,LS,Running,0,1010,10
p1,1,1,2,1000,,LS,Succeeded,5,105,5
p2,1,1,0,0,,LS,Running,6,106,6
p3,1,1,1,500,,LS,Pending,7,107,
";
/// 4,426 steps at 4.426 steps a second are 1,000 s; 1,030 at 10.3 are 100 s.
const GAVEL: &str = "CycleGAN\tpython3 a.py\tgan\t--steps\t0\t4426\t2\t1\t-1.000000\t0\n\
    ResNet-18 (batch size 256)\tpython3 b.py\tcifar\t--steps\t1\t1030\t1\t1\t-1.000000\t60.7\n";
const OLD_GAVEL: &str = "CycleGAN\tpython3 a.py\t--steps\t0\t4426\t30.000000\t2\n";
const SHOCKWAVE: &str =
    "ResNet-50 (batch size 64)\tpython3 a.py\timg\t-n\t1\t999\t4\tgns\t1\t-1.000000\t600\t7\n";

fn trace(settings: &str, text: &str) -> Result<Trace, String> {
    let spec: TraceSpec = format!("trace:t.csv{settings}").parse().unwrap();
    parse_trace(&spec, text.as_bytes()).map_err(|error| error.to_string())
}

/// Line, time, GPUs and GPU-seconds of each job.
fn check(settings: &str, text: &str, format: Format, expected: &[(u64, u64, u32, f64)]) {
    let trace = trace(settings, text).unwrap();
    let found: Vec<_> =
        trace.jobs.iter().map(|job| (job.line, job.at_secs, job.gpus, job.gpu_secs)).collect();
    assert_eq!((trace.format, found.as_slice()), (format, expected), "{settings}");
}

#[test]
fn every_format_is_recognised() {
    let two_days = 48 * 3_600;
    check(
        "",
        PHILLY,
        Format::Philly,
        &[
            (3, 0, 1, 1_800.0),
            (2, 3_600, 2, 7_200.0),
            (4, 7_200, 8, 72_000.0),
            (5, 7_200, 8, 720_000.0),
            (6, two_days, 1, 60.0),
        ],
    );
    check("", ELASTICFLOW, Format::Elasticflow, &[(3, 0, 1, 30.0), (2, 400, 4, 240.0)]);
    check("", NAMED, Format::Elasticflow, &[(2, 0, 2, 120.0), (3, 10, 1, 60.0), (4, 20, 1, 60.0)]);
    check("", ALIBABA, Format::Alibaba, &[(2, 0, 1, 250.0), (3, 5, 2, 200.0)]);
    check("", SHOCKWAVE, Format::Shockwave, &[(1, 0, 4, 2_400.0)]);
    check("", OLD_GAVEL, Format::Gavel, &[(1, 0, 2, 1_000.0)]);
    check("", GAVEL, Format::Gavel, &[(1, 0, 2, 1_000.0), (2, 60, 1, 100.0)]);
}

#[test] // A quarter of a GPU for 1,000 s is 250 GPU-seconds; one pod has no GPU, one never ran.
fn what_is_left_out_is_counted() {
    let note = trace("", ALIBABA).unwrap().note().unwrap();
    assert_eq!(note, "t.csv: left out 1 pods without GPUs, 1 pods that never ran");
    assert_eq!(trace("", PHILLY).unwrap().note(), None);
}

#[test] // Dates begin at midnight, days with the first job.
fn parts_are_chosen_by_time_number_and_cluster() {
    let lines = |settings: &str| {
        let jobs = trace(settings, PHILLY).unwrap().jobs;
        jobs.iter().map(|job| (job.line, job.at_secs)).collect::<Vec<_>>()
    };
    assert_eq!(lines(",first=2020-03-01"), [(6, 11 * 3_600)]);
    assert_eq!(lines(",first=2020-02-28,days=0.5"), [(3, 11 * 3_600)]);
    assert_eq!(lines(",first=0.05,days=1"), [(4, 2_880), (5, 2_880)]);
    assert_eq!(lines(",jobs=2"), [(3, 0), (2, 3_600)]);
    assert_eq!(lines(",cluster=west"), [(4, 0), (5, 0)]);
}

fn check_error(settings: &str, text: &str, expected: &str) {
    assert_eq!(trace(settings, text).unwrap_err(), format!("t.csv{expected}"));
}

#[test]
fn errors_name_file_line_and_column() {
    let philly = |row: &str| format!("timestamp,duration,num_gpus,gpu_time,cluster\n{row}\n");
    check_error(
        "",
        &philly("2017-02-29 00:00:00,1,1,1,a"),
        ":2: column `timestamp`: \"2017-02-29 00:00:00\" is not a time such as 2017-10-03 07:01:55",
    );
    check_error(
        "",
        &philly("2017-02-28 00:00:00,1,0,1,a"),
        ":2: column `num_gpus`: \"0\" is not a whole number, 1 or more",
    );
    check_error(
        "",
        &philly("2017-02-28 00:00:00,0,1,0,a"),
        ":2: column `gpu_time`: \"0\" is not a number above 0",
    );
    check_error("", &philly("2017-02-28 00:00:00,0,1"), ":2: 3 fields, but the header has 5");
    check_error(
        "",
        "num_gpu,duration,submit_time\n1,2,x\n",
        ":2: column `submit_time`: \"x\" is not a whole number of seconds, 0 or more",
    );
    let missing = ":1: column `submission_time` is missing from the header";
    check_error(",format=elasticflow", "num_gpu,duration\n1,2\n", missing);
    let pods = "num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n";
    check_error(
        "",
        &format!("{pods}1,1500,0,9,1\n"),
        ":2: column `gpu_milli`: \"1500\" is not thousandths of a GPU, 1 to 1000",
    );
    check_error(
        "",
        &format!("{pods}1,1000,0,9,9\n"),
        ":2: column `deletion_time`: \"9\" is not later than `scheduled_time`",
    );
    let no_times = ":1: column `creation_time` is missing from the header";
    check_error("", "name,num_gpu,gpu_milli\na,1,1000\n", no_times);
}

#[test]
fn errors_in_lines_with_tabs_name_them_too() {
    let second = |line: &str| format!("{GAVEL}\n{line}\n");
    check_error("", &second("CycleGAN\tx"), ":4: 2 fields with tabs between them, but there must be 10");
    check_error(
        "",
        &OLD_GAVEL.replace("CycleGAN", "GPT"),
        ":1: column `job_type`: \"GPT\" is not a job type of Gavel",
    );
    check_error(
        "",
        &SHOCKWAVE.replace("600", "-6"),
        ":1: column `duration`: \"-6\" is not a number of seconds, 0 or more",
    );
    check_error(",format=gavel", "", ":1: no lines");
}

#[test]
fn errors_of_the_whole_file_say_what_to_do() {
    check_error(
        "",
        "a,b\n1,2\n",
        ":1: no trace in a format we know; add `format=` with `philly`, `elasticflow`, `alibaba`, `gavel` or `shockwave`",
    );
    check_error(
        ",first=2020-01-01",
        ALIBABA,
        ": `first` asks for what traces of format `alibaba` do not say; leave it out",
    );
    check_error(
        ",cluster=a",
        GAVEL,
        ": `cluster` asks for what traces of format `gavel` do not say; leave it out",
    );
    let nothing =
        ": no job is in the part of the trace that is asked for; look at `first`, `days` and `cluster`";
    check_error(",cluster=north", PHILLY, nothing);
    check_error(",first=99", PHILLY, nothing);
    let error = read_trace(&TraceSpec::whole("nowhere/t.csv")).unwrap_err().to_string();
    assert!(error.starts_with("nowhere/t.csv: cannot be read: "), "{error}");
}

fn world() -> World {
    let options = Options { cluster: "8x8:t4".parse().unwrap(), ..Options::default() };
    World::Profiles { profiles: profiles(), options }
}

fn workload(settings: &str, text: &str, seed: u64) -> Workload {
    world().map_trace(&trace(settings, text).unwrap(), seed).unwrap()
}

#[test]
fn applications_are_of_the_class_of_the_job() {
    for seed in 1..20 {
        let jobs = workload("", PHILLY, seed).jobs;
        let seen: Vec<&str> = jobs.iter().map(|job| job.application.as_str()).collect();
        assert!(matches!(seen[0], "cifar10" | "ncf") && matches!(seen[4], "cifar10" | "ncf"), "{seen:?}");
        assert!(matches!(seen[1], "bert" | "deepspeech2"), "{seen:?}");
        assert_eq!(seen[2..4], ["yolov3", "imagenet"]);
        assert_eq!(jobs[2].name, "yolov3-4");
    }
}

#[test]
fn applications_that_a_trace_names_are_taken() {
    let applications = |text: &str| {
        let jobs = workload("", text, 3).jobs.into_iter();
        jobs.map(|job| job.application).collect::<Vec<_>>()
    };
    let named = applications(NAMED);
    assert_eq!((named[0].as_str(), named[2].as_str()), ("bert", "imagenet"));
    assert!(matches!(named[1].as_str(), "cifar10" | "ncf"), "{named:?}");
    assert_eq!(applications(GAVEL)[1], "cifar10");
    assert_eq!(applications(SHOCKWAVE), ["imagenet"]);
}

#[test] // The last job keeps its application, whatever else is chosen.
fn the_mapping_is_seeded_and_stable() {
    assert_eq!(workload("", PHILLY, 7), workload("", PHILLY, 7));
    let by_seed = |seed| workload("", PHILLY, seed).jobs[4].application.clone();
    let mut counts = BTreeMap::<String, u32>::new();
    for seed in 0..200 {
        *counts.entry(by_seed(seed)).or_default() += 1;
        let alone = workload(",first=2020-03-01", PHILLY, seed).jobs[0].application.clone();
        assert_eq!(alone, by_seed(seed));
    }
    assert!(counts.len() == 2 && counts.values().all(|count| (70..=130).contains(count)), "{counts:?}");
}

#[test] // FIFO gives what is asked for: a job takes the time of the trace, and up to 17 s in which its agent tries micro-batches.
fn jobs_take_the_time_that_the_trace_says() {
    let jobs = workload("", PHILLY, 1);
    let again = parse_workload(
        "x/trace:t.csv.csv".as_ref(),
        write_workload(&jobs).as_bytes(),
        Checks::known(&world().known()),
    );
    assert_eq!(again.unwrap().jobs, jobs.jobs);
    let options = Options { cluster: "8x8:t4".parse().unwrap(), ..Options::default() };
    let run = simulate(&jobs, &profiles(), &Fifo, &options).unwrap();
    for (job, secs) in run.jobs.iter().zip([1_800.0, 3_600.0, 9_000.0, 90_000.0, 60.0]) {
        let trained = job.held_secs - job.restart_secs;
        let excess = trained - secs;
        assert!((-0.01..20.0).contains(&excess), "{}: {trained} s, not {secs}", job.name);
        assert!(job.rho.unwrap() > 0.0);
    }
}

#[test] // As in the paper, only the class counts: 0.5 and 0.02 GPU-hours are the same whole training.
fn with_the_work_of_profiles_only_the_class_counts() {
    let jobs = workload(",work=profile", PHILLY, 1).jobs;
    assert!(jobs.iter().all(|job| job.work.is_none()));
    let scales: Vec<f64> = workload("", PHILLY, 1).jobs.iter().map(|job| job.work.unwrap()).collect();
    assert!(scales[4] < scales[0] && scales[2] < scales[3] * 100.0, "{scales:?}");
}

#[test]
fn the_whole_philly_trace_is_read() {
    let Some(data) = common::data() else { return };
    let file = data.join("pollux-osdi21/traces/philly.csv");
    if !file.is_file() {
        eprintln!("NOT READ: {} does not exist", file.display());
        return;
    }
    let trace = read_trace(&TraceSpec::whole(file)).unwrap();
    let last = trace.jobs.last().unwrap();
    assert_eq!((trace.jobs.len(), last.at_secs / 86_400), (82_247, 108));
    let gpu_hours: f64 = trace.jobs.iter().map(|job| job.gpu_secs).sum::<f64>() / 3_600.0;
    assert!((gpu_hours - 978_078.0).abs() < 1.0, "{gpu_hours}");
    assert!(trace.skipped.is_empty());
}

#[test]
fn the_public_traces_are_read() {
    let Some(data) = common::data() else { return };
    let folder = data.join("cluster-traces");
    let files = [
        ("gavel/max_min_fairness.trace", 96),
        ("gavel/msr-seed0-ee9e8c.trace", 2_000),
        ("shockwave/120jobs.trace", 120),
        ("elasticflow/philly_103959.csv", 876),
        ("elasticflow/elasticVpollux_e.csv", 195),
        ("alibaba-gpu-v2023-openb/openb_pod_list_default.csv", 6_203),
    ];
    for (name, n_jobs) in files {
        let file = folder.join(name);
        if file.is_file() {
            assert_eq!(read_trace(&TraceSpec::whole(file)).unwrap().jobs.len(), n_jobs, "{name}");
        } else {
            eprintln!("NOT READ: {} does not exist", file.display());
        }
    }
}
