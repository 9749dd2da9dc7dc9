use std::collections::BTreeMap;

use pollux_model::fit::{Coverage, Parameter, RelativeError};
use pollux_model::{Affine, Compute, GpuType, PerfParams, StepTable};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{FitFile, FitQuality, FittedModel, TestQuality};

fn params(grad: Compute) -> PerfParams {
    PerfParams {
        grad,
        sync_local: Affine { alpha: 0.01, beta: 0.001 },
        sync_node: Affine { alpha: 0.03, beta: 0.002 },
        gamma: 1.5,
        optimizer_step: 0.004,
    }
}

fn linear() -> Compute {
    Compute::Linear { alpha: 0.02, beta: 0.000_4 }
}

/// A model with everything in it.
fn fitted(grad: Compute) -> FittedModel {
    FittedModel {
        undetermined: vec![Parameter::BetaNode, Parameter::Gamma],
        fit: Some(FitQuality {
            n_observations: 25,
            error: RelativeError { mean: 0.02, worst: 0.05 },
            objective: 0.03,
        }),
        coverage: Some(Coverage {
            micro_batch: (32, 512),
            alone: true,
            one_node: Some((2, 4)),
            distributed: None,
        }),
        test: Some(TestQuality {
            n_observations: 6,
            error: RelativeError { mean: 0.03, worst: 0.07 },
            n_extrapolated: 2,
        }),
        ..FittedModel::of_params(params(grad))
    }
}

fn file(models: impl IntoIterator<Item = (&'static str, FittedModel)>) -> FitFile {
    FitFile::new(models.into_iter().map(|(name, model)| (GpuType::new(name), model)).collect()).unwrap()
}

fn written(file: &FitFile) -> Value {
    serde_json::from_str(&file.to_json()).unwrap()
}

fn check_round_trip(file: &FitFile) {
    assert_eq!(FitFile::read("fit.json", file.to_json().as_bytes()).as_ref(), Ok(file));
}

/// The smallest valid file, with one change.
fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = json!({"form": "linear", "params": {
        "alpha_grad": 0.02, "beta_grad": 0.0004, "alpha_local": 0.01, "beta_local": 0.001,
        "alpha_node": 0.03, "beta_node": 0.002, "gamma": 1.5, "optimizer_step": 0.004}});
    change(&mut value);
    value
}

fn check_error(value: &Value, expected: &str) {
    let error = FitFile::read("fit.json", value.to_string().as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), format!("fit.json: {expected}"), "{value}");
}

fn check_param(key: &str, bad: Value, expected: &str) {
    check_error(&changed(|file| file["params"][key] = bad), expected);
}

#[test]
fn a_model_is_written_as_documented() {
    assert_eq!(
        written(&file([("gpu", fitted(linear()))])),
        json!({
            "version": 1,
            "form": "linear",
            "params": {
                "alpha_grad": 0.02, "beta_grad": 0.0004, "alpha_local": 0.01, "beta_local": 0.001,
                "alpha_node": 0.03, "beta_node": 0.002, "gamma": 1.5, "optimizer_step": 0.004,
            },
            "undetermined": ["beta_node", "gamma"],
            "fit": {
                "observations": 25, "mean_relative_error": 0.02, "worst_relative_error": 0.05,
                "objective": 0.03,
            },
            "coverage": {"micro_batch": [32, 512], "alone": true, "one_node": [2, 4], "distributed": null},
            "test": {
                "observations": 6, "mean_relative_error": 0.03, "worst_relative_error": 0.07,
                "extrapolated": 2,
            },
        })
    );
}

#[test]
fn every_form_has_its_own_parameters() {
    let keys = |grad: Compute| {
        let value = written(&file([("t4", FittedModel::of_params(params(grad)))]));
        assert_eq!(value["gpu_type"], "t4");
        let own: Vec<String> = value["params"]
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| key.ends_with("grad") || *key == "table")
            .cloned()
            .collect();
        (value["form"].as_str().unwrap().to_owned(), own.join(" "))
    };
    let pair = |form: &str, own: &str| (form.to_owned(), own.to_owned());
    assert_eq!(keys(linear()), pair("linear", "alpha_grad beta_grad"));
    let roofline = Compute::Roofline { alpha: 0.02, beta: 0.000_4, delta: 3.0 };
    assert_eq!(keys(roofline), pair("roofline", "alpha_grad beta_grad delta_grad"));
    let table = StepTable::new([(8, 0.01), (16, 0.012)]).unwrap();
    assert_eq!(keys(Compute::Table(table)), pair("table", "table"));
}

#[test]
fn several_gpu_types_stand_side_by_side() {
    let file = file([("a100", fitted(linear())), ("t4", FittedModel::of_params(params(linear())))]);
    let value = written(&file);
    assert_eq!(value["version"], 1);
    assert_eq!(value["gpu_types"]["a100"]["fit"]["observations"], 25);
    assert_eq!(value["gpu_types"]["t4"]["form"], "linear");
    check_round_trip(&file);
}

#[test]
fn form_and_params_are_enough() {
    let read = FitFile::read("fit.json", changed(|_| ()).to_string().as_bytes()).unwrap();
    let expected = FittedModel::of_params(params(linear()));
    assert_eq!(read.models(), &BTreeMap::from([(GpuType::default(), expected)]));
}

#[test]
fn the_optimizer_step_is_nothing_unless_given() {
    let value = changed(|file| _ = file["params"].as_object_mut().unwrap().remove("optimizer_step"));
    let read = FitFile::read("fit.json", value.to_string().as_bytes()).unwrap();
    assert_eq!(read.models()[&GpuType::default()].params.optimizer_step.to_bits(), 0);
}

#[test]
fn keys_of_a_later_time_are_passed_over() {
    let value = changed(|file| file["comment"] = json!({"any": ["thing"]}));
    assert!(FitFile::read("fit.json", value.to_string().as_bytes()).is_ok());
    let with_mark = format!("\u{feff}{value}");
    assert!(FitFile::read("fit.json", with_mark.as_bytes()).is_ok());
}

#[test]
fn bad_parameters_are_named() {
    let seconds = "a number of seconds, zero or more";
    check_param("alpha_grad", json!(-1), &format!("`params.alpha_grad`: `-1` is not {seconds}"));
    check_param("beta_local", json!("fast"), &format!("`params.beta_local`: `\"fast\"` is not {seconds}"));
    check_param("optimizer_step", json!(-0.5), &format!("`params.optimizer_step`: `-0.5` is not {seconds}"));
    check_param("gamma", json!(0.5), "`params.gamma`: `0.5` is not a number from 1 to 10");
    check_param("gamma", json!(10.5), "`params.gamma`: `10.5` is not a number from 1 to 10");
    check_param("gamma", json!(null), "`params.gamma` is missing");
    check_param("alpha_gard", json!(1), "`params.alpha_gard` is not a parameter of the linear form");
    check_param("delta_grad", json!(2), "`params.delta_grad` is not a parameter of the linear form");
    let nothing = changed(|file| {
        file["params"]["alpha_grad"] = json!(0);
        file["params"]["beta_grad"] = json!(0);
    });
    check_error(
        &nothing,
        "`params`: `alpha_grad` and `beta_grad` are both zero, so that compute would take no time",
    );
    let huge = changed(|file| {
        file["params"]["alpha_node"] = json!(1e308);
        file["params"]["beta_node"] = json!(1e308);
    });
    assert!(FitFile::read("fit.json", huge.to_string().as_bytes()).is_err());
    let roofline = changed(|file| {
        file["form"] = json!("roofline");
        file["params"]["delta_grad"] = json!(11);
    });
    check_error(&roofline, "`params.delta_grad`: `11` is not a number from 1 to 10");
}

#[test]
fn the_ends_of_the_exponents_are_allowed() {
    for gamma in [1.0, 10.0] {
        let value = changed(|file| file["params"]["gamma"] = json!(gamma));
        assert!(FitFile::read("fit.json", value.to_string().as_bytes()).is_ok());
    }
}

#[test]
fn bad_tables_are_named() {
    let check = |table: Value, expected: &str| {
        let value = changed(|file| {
            file["form"] = json!("table");
            let params = file["params"].as_object_mut().unwrap();
            params.remove("alpha_grad");
            params.remove("beta_grad");
            params.insert("table".to_owned(), table);
        });
        check_error(&value, expected);
    };
    check(json!([]), "`params.table`: the table has no points");
    check(json!(3), "`params.table`: `3` is not a list of points");
    check(json!([[8, 0.1], [16]]), "`params.table[1]`: `[16]` is not a pair of micro-batch and seconds");
    check(json!([[0, 0.1]]), "`params.table[0][0]`: `0` is not a whole number, 1 or more");
    check(json!([[8, "x"]]), "`params.table[0][1]`: `\"x\"` is not a number");
    check(json!([[8, -0.1]]), "`params.table`: -0.1 is not a time in seconds (micro-batch 8)");
    let order = "micro-batch 8 is zero, or not larger than the one before it";
    check(json!([[8, 0.1], [8, 0.2]]), &format!("`params.table`: {order}"));
}

#[test]
fn bad_files_are_named() {
    check_error(&json!([1]), "not a JSON object");
    check_error(&json!({}), "`form` is missing");
    check_error(&json!({"form": "linear"}), "`params` is missing");
    check_error(&json!({"form": "cubic"}), "`form`: `\"cubic\"` is not `linear`, `roofline` or `table`");
    check_error(&json!({"form": "linear", "params": 3}), "`params`: `3` is not an object");
    check_error(&json!({"gpu_types": {}}), "`gpu_types` holds no model");
    check_error(&json!({"gpu_types": {"t4": {}}}), "`gpu_types.t4.form` is missing");
    check_error(&changed(|file| file["gpu_type"] = json!("")), "`gpu_type`: `` is not a name");
    check_error(
        &changed(|file| file["version"] = json!(2)),
        "`version`: `2` is not a version this program reads; it reads 1",
    );
    check_error(
        &changed(|file| file["undetermined"] = json!(["x"])),
        "`undetermined[0]`: `\"x\"` is not a parameter",
    );
    check_error(&changed(|file| file["fit"] = json!({})), "`fit.observations` is missing");
    let coverage = json!({"micro_batch": [64, 32], "alone": true});
    check_error(
        &changed(|file| file["coverage"] = coverage),
        "`coverage.micro_batch`: `[64,32]` is not a pair of smallest and largest",
    );
}

#[test]
fn what_is_no_json_is_refused_where_it_stands() {
    let check = |text: &[u8], expected: &str| {
        assert_eq!(FitFile::read("fit.json", text).unwrap_err().to_string(), format!("fit.json:{expected}"));
    };
    check(b"", "1:1: not JSON: EOF while parsing a value");
    check(b"{\n\"form\": x}", "2:9: not JSON: expected value");
    check(b"{\"form\": 1e999}", "1:14: not JSON: number out of range");
    check(b"\"\xff\"", "1:2: not JSON: invalid unicode code point");
}

#[test]
fn hints_say_what_was_meant() {
    let hint = |value: Value| FitFile::read("fit.json", value.to_string().as_bytes()).unwrap_err().hint();
    let misspelt = hint(changed(|file| file["params"]["alpha_gard"] = json!(1)));
    assert_eq!(misspelt.as_deref(), Some("did you mean `alpha_grad`?"));
    assert!(FitFile::read("fit.json", b"nodes,replicas").unwrap_err().hint().unwrap().contains("model fit"));
}

#[test]
fn errors_too_large_for_json_come_back_as_infinite() {
    let mut model = fitted(linear());
    model.test.as_mut().unwrap().error.worst = f64::INFINITY;
    check_round_trip(&file([("gpu", model)]));
}

fn any_json() -> impl Strategy<Value = Value> {
    let keys = "(version|form|params|gpu_types?|table|fit|test|coverage|undetermined|observations|gamma|(alpha|beta|delta)_(grad|local|node)|micro_batch|alone|one_node|[a-z]{0,3})";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0_u32..3).prop_map(Value::from),
        "(linear|roofline|table|gamma|.{0,3})".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 12, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(keys, inner, 0..12).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = FitFile::read("any", &bytes).map_err(|error| (error.to_string(), error.hint()));
    }

    #[test]
    fn no_json_makes_it_panic(value in any_json()) {
        if let Err(error) = FitFile::read("any", value.to_string().as_bytes()) {
            prop_assert!(error.to_string().starts_with("any"), "{}", error);
        }
    }

    #[test]
    fn no_change_of_a_valid_file_makes_it_panic(
        keys in prop::collection::vec(prop::sample::select(vec!["version", "form", "gpu_types", "params", "undetermined", "fit", "test", "coverage"]), 0..3),
        bad in any_json(),
    ) {
        let mut value = written(&file([("gpu", fitted(linear()))]));
        for key in keys {
            value[key] = bad.clone();
        }
        let _ = FitFile::read("any", value.to_string().as_bytes());
    }

    #[test]
    fn numbers_come_back_bit_for_bit(
        alpha in 0.0..1e3, beta in 1e-12..1.0, delta in 1.0..10.0, gamma in 1.0..10.0, step in 0.0..1e-3,
        points in prop::collection::btree_map(1_u32.., 1e-9..1e3, 1..20),
        form in 0..3,
    ) {
        let grad = match form {
            0 => Compute::Linear { alpha, beta },
            1 => Compute::Roofline { alpha, beta, delta },
            _ => Compute::Table(StepTable::new(points).unwrap()),
        };
        let params = PerfParams { gamma, optimizer_step: step, ..params(grad) };
        check_round_trip(&file([("gpu", FittedModel::of_params(params))]));
    }
}
