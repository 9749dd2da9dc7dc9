//! `pollux policy`, and the choice of a policy by its text.

use pollux_api::{PolicySpec, policy_list};
use pollux_policy::{About, AnyPolicy, policies};

use crate::cli::{PlainOutput, PolicyListArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::text::{Align, Table};

/// The policy that this text describes; where it has a fairness to choose, with this one.
pub(crate) fn chosen(text: &str, fairness: Option<f64>) -> Result<(PolicySpec, Box<dyn AnyPolicy>), Failure> {
    let spec: PolicySpec = text.parse()?;
    let policy = match fairness {
        None => spec.policy(),
        Some(fairness) => {
            let other = spec.with_fairness(fairness);
            other.ok_or(Failure::NoFairness { name: spec.name() })?.policy()
        }
    };
    Ok((spec, policy))
}

/// `pollux policy list`.
pub(crate) fn list(args: &PolicyListArgs) -> Output {
    let policies: Vec<About> = policies().iter().map(|policy| policy.about()).collect();
    let data = match args.output {
        PlainOutput::Text => to_text(&policies),
        PlainOutput::Json => policy_list::to_json(&policies),
    };
    Output { data, ..Output::default() }
}

fn to_text(policies: &[About]) -> String {
    let mut table = Table::new(["NAME", "WHAT IT DOES", "FROM"].map(|name| (name, Align::Left)));
    for About { name, summary, source, .. } in policies {
        table.push([name, summary, source].map(|&cell| cell.to_owned()));
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str, fairness: Option<f64>) -> String {
        chosen(text, fairness).err().map_or_else(String::new, |failure| failure.report())
    }

    #[test]
    fn fairness_is_for_those_who_have_one() {
        let have_one = ["pollux", "pollux-size-aware", "pollux-type-blind"];
        for name in policies().iter().map(|policy| policy.about().name) {
            assert!(chosen(name, None).is_ok(), "{name}");
            let failure = failure(name, Some(0.0));
            assert_eq!(failure.contains("has no fairness"), !have_one.contains(&name), "{name}: {failure}");
        }
    }

    #[test]
    fn unknown_policies_are_refused() {
        assert!(failure("polux", None).contains("did you mean `pollux`?"));
        assert!(failure("zzz", None).ends_with("hint: `pollux policy list` shows all of them\n"));
    }
}
