use std::time::Duration;

use pollux_policy::{Effort, FairShare, RestartPrice};
use proptest::prelude::*;

use super::*;

fn settings(text: &str) -> Settings {
    match text.parse::<PolicySpec>().unwrap().kind {
        Kind::Objective { settings, .. } => settings,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn every_policy_is_read_by_its_name() {
    for policy in policies() {
        let name = policy.about().name;
        assert_eq!(parse_policy(name).unwrap().about(), policy.about());
        assert_eq!(name.parse::<PolicySpec>().unwrap().to_string(), name);
    }
    for (alias, meant) in ALIASES {
        assert!(policies().iter().all(|policy| policy.about().name != alias), "{alias} hides a policy");
        assert_eq!(parse_policy(alias).unwrap().about().name, meant);
    }
}

#[test]
fn presets_and_keys_are_settings() {
    assert_eq!(settings("pollux"), Settings::BALANCED);
    assert_eq!(settings("pollux:balanced"), Settings::BALANCED);
    assert_eq!(
        settings("pollux:paper+size=0.25+rounds=events"),
        Settings { size: 0.25, on_events: true, ..Settings::PAPER }
    );
    assert_eq!(settings("pollux:paper"), Settings::PAPER);
    assert_eq!(settings("pollux:tuned"), Settings::TUNED);
    assert_eq!(settings("pollux:osdi21"), Settings::osdi21(4));
    assert_eq!(settings("pollux-size-aware"), Settings::SIZE_AWARE);
    assert_eq!(settings("pollux-size-aware:paper"), Settings::PAPER);
    let effort = Effort { per_job: 2_000, at_least: 200_000, ..Effort::DEFAULT };
    let expected = Settings {
        fairness: -2.5,
        fair_share: FairShare::OneNode,
        restart_price: RestartPrice::Horizon(Duration::from_secs(90)),
        exploration: f64::INFINITY,
        avoid_interference: false,
        effort,
        ..Settings::PAPER
    };
    let text =
        "pollux:paper+fairness=-2.5+share=one-node+restart=90+explore=none+interference=allow+effort=10";
    assert_eq!(settings(text), expected);
    assert_eq!(settings("pollux:tuned+restart=free").restart_price, RestartPrice::Free);
}

fn check_text(text: &str, expected: &str) {
    let spec: PolicySpec = text.parse().unwrap();
    assert_eq!(spec.to_string(), expected);
    assert_eq!(expected.parse(), Ok(spec));
}

#[test]
fn the_default_is_left_out() {
    check_text("pollux:fairness=0.5+explore=4", "pollux");
    check_text("pollux:paper+fairness=-1+rounds=timed", "pollux:paper");
    check_text(
        " pollux : fairness=0 + restart=90.0 ".replace(" :", ":").as_str(),
        "pollux:fairness=0+restart=90",
    );
    check_text("pollux:tuned+restart=paper", "pollux:tuned+restart=paper");
    check_text("tiresias:demote=16", "tiresias");
    check_text("tiresias:demote=0.5", "tiresias:demote=0.5");
    check_text("pollux-ga", "pollux-ga-paper");
    check_text("pollux-ga:interference=allow", "pollux-ga-paper:interference=allow");
    check_text("pollux-ga-osdi21:interference=avoid", "pollux-ga-osdi21");
    check_text("gavel:objective=fairness", "gavel");
    check_text("gavel:objective=throughput", "gavel:objective=throughput");
    check_text("pollux-type-blind:tuned+explore=4", "pollux-type-blind:tuned");
    check_text("sia:rounded=no+fairness=-0.5+waiting=1.1", "sia");
    check_text("sia:rounded=yes+fairness=-1", "sia:fairness=-1+rounded=yes");
}

fn check_error(text: &str, message: &str, hint: Option<&str>) {
    let error = text.parse::<PolicySpec>().unwrap_err();
    assert_eq!((error.to_string().as_str(), error.hint().as_deref()), (message, hint), "{text}");
}

#[test]
fn what_is_wrong_is_named() {
    let all = "`balanced`, `paper`, `tuned`, `osdi21`, `fairness`, `size`, `rounds`, `restart`, `explore`, `effort`, `share`, `interference`";
    check_error(
        "polux",
        "there is no policy `polux`",
        Some("did you mean `pollux`? `pollux policy list` shows all of them"),
    );
    check_error(
        "pollux:tune",
        "policy `pollux` has no setting `tune`",
        Some(&format!("did you mean `tuned`? there are {all}")),
    );
    check_error("pollux:x=1", "policy `pollux` has no setting `x=1`", Some(&format!("there are {all}")));
    check_error("pollux:", "policy `pollux` has no setting ``", Some(&format!("there are {all}")));
    check_error(
        "tiresias:demotes=1",
        "policy `tiresias` has no setting `demotes=1`",
        Some("did you mean `demote`? there are `demote`"),
    );
    check_error(
        "sia:fast",
        "policy `sia` has no setting `fast`",
        Some("there are `fairness`, `waiting`, `rounded`"),
    );
    check_error(
        "pollux-ga-osdi21:interference=no",
        "policy `pollux-ga-osdi21`: `interference`: `no` is not `avoid` or `allow`",
        None,
    );
    check_error(
        "pollux-ga-osdi21:allow",
        "policy `pollux-ga-osdi21` has no setting `allow`",
        Some("there are `interference`"),
    );
    check_error("sia:fairness=1", "policy `sia`: `fairness`: `1` is not a number from -100 to -0.001", None);
    check_error(
        "fifo:tuned",
        "policy `fifo` has no setting `tuned`",
        Some("it has none; write `fifo` alone"),
    );
    check_error(
        "pollux:fairness=0+tuned",
        "policy `pollux`: `tuned` stands after other settings, which it would undo",
        Some("begin with `tuned`"),
    );
    check_error(
        "pollux:share=packed+share=packed",
        "policy `pollux`: `share` stands twice",
        Some("leave one out"),
    );
}

#[test]
fn values_keep_to_their_range() {
    for value in ["fairness=2", "fairness=nan", "restart=-1", "restart=1e9", "explore=0.5", "explore=inf"] {
        assert!(format!("pollux:{value}").parse::<PolicySpec>().is_err(), "{value}");
    }
    for value in ["effort=0", "effort=1.5", "effort=99999999999999999999", "share=fair", "interference=no"] {
        let error = format!("pollux:{value}").parse::<PolicySpec>().unwrap_err();
        assert!(matches!(error, PolicySpecError::Value { .. }), "{value}: {error}");
    }
    check_error(
        "pollux:explore=0",
        "policy `pollux`: `explore`: `0` is not a number from 1 up, or `none` for no limit",
        None,
    );
    check_error(
        "tiresias:demote=-1",
        "policy `tiresias`: `demote`: `-1` is not a number of GPU-hours from 0 to 1000000",
        None,
    );
}

fn any_spec() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["pollux", "pollux-size-aware"]);
    let preset = prop::sample::select(vec!["", "paper", "tuned", "osdi21"]);
    let restart = prop_oneof![
        prop::sample::select(vec!["free", "paper", "osdi21"]).prop_map(str::to_owned),
        (0_u32..604_801).prop_map(|secs| secs.to_string()),
    ];
    let keys = (
        prop::option::of((-100.0..=1.0).prop_map(|value: f64| format!("fairness={value}"))),
        prop::option::of(restart.prop_map(|value| format!("restart={value}"))),
        prop::option::of((1.0..1e6).prop_map(|value: f64| format!("explore={value}"))),
        prop::option::of((1_u32..=1_000_000).prop_map(|value| format!("effort={value}"))),
    );
    (name, preset, keys).prop_map(|(name, preset, (fairness, restart, explore, effort))| {
        let preset = Some(preset.to_owned()).filter(|preset| !preset.is_empty());
        let parts: Vec<String> = [preset, fairness, restart, explore, effort].into_iter().flatten().collect();
        if parts.is_empty() { name.to_owned() } else { format!("{name}:{}", parts.join("+")) }
    })
}

proptest! {
    #[test]
    fn what_is_shown_reads_back_as_the_same(text in any_spec()) {
        let spec: PolicySpec = text.parse().unwrap();
        prop_assert_eq!(spec.to_string().parse(), Ok(spec));
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(pollux|tiresias|fifo)?:?[ -~]{0,30}") {
        let _ = text.parse::<PolicySpec>();
    }
}
