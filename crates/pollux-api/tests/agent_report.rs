//! Reports of agents: written and read they are the same, and no text makes the reader panic.

mod mutate;
#[expect(dead_code, reason = "shared with the tests of agent state")]
#[path = "agent_state/world.rs"]
mod world;

use std::sync::LazyLock;

use mutate::mutate;
use pollux_agent::Agent;
use pollux_api::agent_report::{self, AgentReportBody};
use pollux_model::fit::{Coverage, Fit, Parameter, RelativeError};
use pollux_model::{
    Affine, AgentReport, BatchLimits, BatchPlan, Compute, Estimator, GlobalBatch, GpuType, GradientMoments,
    NoiseReport, NoiseScale, PerfParams, Placement,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use world::{configs, drive};

/// What driven agents reported.
static REPORTS: LazyLock<Vec<AgentReport>> = LazyLock::new(|| {
    let said = configs().into_iter().map(|config| drive(&mut Agent::new(config), 0, 3_000));
    said.flat_map(|said| said.reports).map(|(_, report)| report).collect()
});

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Two reports are the same if this text is: it tells any two floats apart.
fn text(report: &AgentReport) -> String {
    format!("{report:?}")
}

fn check_kept(report: &AgentReport) {
    let json = agent_report::to_json(report);
    let again = agent_report::from_json(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(text(&again), text(report), "{json}");
    let body: AgentReportBody = serde_json::from_str(&json).unwrap();
    assert_eq!(text(&AgentReport::try_from(body.clone()).unwrap()), text(report));
    assert_eq!(body, AgentReportBody::from(report));
}

/// A report with something in every field.
fn full() -> AgentReport {
    let mut report =
        REPORTS.iter().rfind(|report| report.noise.is_some() && report.fits.len() == 2).unwrap().clone();
    report.micro_max.insert(GpuType::new("t4"), 100);
    report.model_error = Some(0.25);
    report.limits = BatchLimits::new(128, 2_048, 8, 256).unwrap();
    report
}

#[test]
fn what_agents_report_is_kept() {
    assert!(REPORTS.len() > 100, "{}", REPORTS.len());
    assert!(REPORTS.iter().any(|report| report.noise.is_none()));
    REPORTS.iter().for_each(check_kept);
    check_kept(&full());
}

#[test]
fn what_is_left_out_has_defaults() {
    let text = r#"{"progress": 3, "limits": {"initial": 8, "max": 64, "micro_min": 2, "micro_max": 4}}"#;
    let report = agent_report::from_json(text).unwrap();
    let expected = AgentReport {
        fits: [].into(),
        noise: None,
        limits: BatchLimits::new(8, 64, 2, 4).unwrap(),
        micro_max: [].into(),
        plan: None,
        learning_rate_factor: 1.0,
        progress: 3.0,
        samples: 0,
        most_replicas: 0,
        model_error: None,
    };
    assert_eq!(report, expected);
}

/// Reads a full report with the value at `pointer` (RFC 6901) replaced.
fn with(pointer: &str, value: &Value) -> Result<AgentReport, String> {
    let mut json: Value = serde_json::from_str(&agent_report::to_json(&full())).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let fields = json.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    fields.insert(key.to_owned(), value.clone());
    agent_report::from_json(&json.to_string()).map_err(|error| error.to_string())
}

fn check_error(pointer: &str, value: &Value, expected: &str) {
    assert_eq!(with(pointer, value).unwrap_err(), format!("agent report: {expected}"), "{pointer}");
}

#[test]
fn fields_of_newer_agents_are_passed_over() {
    for parent in ["", "/limits", "/plan", "/noise", "/fits/t4", "/fits/t4/params", "/fits/t4/coverage"] {
        assert_eq!(with(&format!("{parent}/colour"), &json!({"a": [1]})), Ok(full()), "{parent}");
    }
}

#[test]
fn what_no_agent_could_mean_is_refused_with_the_field() {
    check_error("/progress", &json!(-0.5), "`progress`: `-0.5` is not a number, zero or more");
    check_error(
        "/learning_rate_factor",
        &json!(0),
        "`learning_rate_factor`: `0.0` is not a number above zero",
    );
    check_error(
        "/limits/max",
        &json!(1),
        "`limits`: the maximum batch size 1 is below the initial batch size 128",
    );
    check_error(
        "/limits/min",
        &json!(7),
        "`limits`: batches from 7 to 2048 are not within those from 128 to 2048",
    );
    check_error("/micro_max/t4", &json!(0), "`micro_max.t4`: `0` is not a whole number, 1 or more");
    check_error("/noise/acted", &json!(-1.5), "`noise.acted`: `-1.5` is not a number, zero or more");
    check_error("/noise/sqr", &json!("nan"), "`noise.sqr`: `NaN` is not a number");
    check_error("/model_error", &json!(-1.5), "`model_error`: `-1.5` is not a relative error, -1 or more");
    check_error(
        "/model_error",
        &json!("much"),
        "`model_error`: invalid value: string \"much\", expected a number, `inf`, `-inf` or `nan`",
    );
    check_error(
        "/fits/t4/params/gamma",
        &json!(11),
        "`fits.t4.params`: `gamma` must be finite and not negative, compute not all zero, exponents from 1 to 10",
    );
    check_error(
        "/plan",
        &json!({"global": 10, "atomic_batch": 7, "accum_steps": 1}),
        "`plan`: 10 samples in 1 accumulation steps and one more never make micro-batches of 7",
    );
    check_error("/limits", &json!(3), "`limits`: invalid type: integer `3`, expected struct Limits");
    let error = agent_report::from_json("{} {}").unwrap_err();
    assert_eq!(error.to_string(), "agent report: missing field `limits`");
}

fn finite() -> impl Strategy<Value = f64> {
    prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO
}

fn fit(numbers: &[f64]) -> Fit {
    let affine =
        |from: usize| Affine { alpha: numbers[from].abs() / 2.0, beta: numbers[from + 1].abs() / 2.0 };
    Fit {
        params: PerfParams {
            grad: Compute::Roofline { alpha: numbers[0].abs() / 2.0, beta: 0.1, delta: 2.5 },
            sync_local: affine(0),
            sync_node: affine(2),
            gamma: 1.0 + 1.0 / 3.0,
            optimizer_step: numbers[4].abs(),
        },
        undetermined: Parameter::ALL.to_vec(),
        objective: f64::INFINITY,
        error: RelativeError { mean: numbers[5].abs(), worst: f64::INFINITY },
        coverage: Coverage {
            micro_batch: (1, u32::MAX),
            alone: true,
            one_node: None,
            distributed: Some((2, 9)),
        },
    }
}

proptest! {
    #![proptest_config(cases(1_000))]

    #[test]
    fn every_number_is_kept(
        numbers in prop::collection::vec(finite(), 10),
        counts: (u64, u32, u32),
        measured in 0..=1_u64 << 53,
        name in "\\PC{0,8}|[\\x00-\\x1f\"\\\\]{1,4}",
        batch in (1..1_u64 << 40, 1..200_u32, 0..20_u32),
        odd: bool,
    ) {
        let placement = Placement::new(1, batch.1).unwrap();
        let limits = BatchLimits::new(batch.0, batch.0.saturating_mul(4), 1, u32::MAX).unwrap();
        let low = GlobalBatch(batch.0.saturating_mul(2));
        let narrowed = limits.with_max_accum_steps(batch.2).accumulating_alone().within(low, GlobalBatch(u64::MAX));
        let acted = NoiseScale::from_samples(if odd { f64::INFINITY } else { numbers[6].abs() }).unwrap();
        let moments = GradientMoments { sqr: numbers[7], var: if odd { f64::NEG_INFINITY } else { numbers[8] } };
        let gpu_type = GpuType::new(&name);
        check_kept(&AgentReport {
            fits: [(gpu_type.clone(), fit(&numbers))].into(),
            noise: Some(NoiseReport {
                acted,
                moments,
                estimator: if odd { Estimator::Differences } else { Estimator::Pairs },
                n_measured: measured,
                n_implausible: measured / 3,
                suspicious: odd,
            }),
            limits: if odd { narrowed.unwrap() } else { limits },
            micro_max: [(gpu_type, counts.2.max(1))].into(),
            plan: BatchPlan::split(GlobalBatch(batch.0), placement, batch.2),
            learning_rate_factor: numbers[9].abs().max(f64::MIN_POSITIVE),
            progress: numbers[5].abs(),
            samples: counts.0,
            most_replicas: counts.1,
            model_error: Some(if odd { f64::INFINITY } else { numbers[3].abs() - 1.0 }),
        });
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC*|[{}\\[\\]\",:0-9.eE\\-truefalsn \\\\]{0,80}") {
        let _ = agent_report::from_json(&text);
    }

    #[test]
    fn what_is_read_can_be_written_and_read(
        which: prop::sample::Index,
        turns in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
        to in prop::option::of(prop_oneof![
            Just(Value::Null),
            any::<f64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            prop_oneof![Just(0), Just(1), Just(-1)].prop_map(Value::from),
            prop_oneof![Just("inf"), Just("nan"), Just("linear")].prop_map(Value::from),
        ]),
    ) {
        let mut json = serde_json::from_str(&agent_report::to_json(which.get(&REPORTS))).unwrap();
        mutate(&mut json, &turns, to);
        match agent_report::from_json(&json.to_string()) {
            Ok(report) => check_kept(&report),
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
        }
    }
}
