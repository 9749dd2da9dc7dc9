//! `pollux policy`, and the choice of a policy by its name.

use pollux_api::{nearest, policy_list};
use pollux_policy::{About, AnyPolicy, Pollux, Settings, policies};

use crate::cli::{PlainOutput, PolicyListArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::text::{Align, Table};

/// Other names that policies go by.
const ALIASES: [(&str, &str); 1] = [("pollux-ga", "pollux-ga-paper")];

/// The policy of this name; where it has a fairness to choose, with this one.
pub(crate) fn by_name(name: &str, fairness: Option<f64>) -> Result<Box<dyn AnyPolicy>, Failure> {
    let meant = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, meant)| meant);
    let Some(policy) = policies().into_iter().find(|policy| policy.about().name == meant) else {
        let names: Vec<&'static str> = policies().iter().map(|policy| policy.about().name).collect();
        return Err(Failure::NoSuchPolicy { name: name.to_owned(), near: nearest(name, names) });
    };
    match (fairness, policy.about().name) {
        (None, _) => Ok(policy),
        (Some(fairness), "pollux") => {
            Ok(Box::new(Pollux { settings: Settings { fairness, ..Settings::PAPER } }))
        }
        (Some(_), name) => Err(Failure::NoFairness { name }),
    }
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

    fn failure(name: &str, fairness: Option<f64>) -> String {
        by_name(name, fairness).err().map_or_else(String::new, |failure| failure.report())
    }

    #[test]
    fn every_policy_is_found_by_its_name() {
        for policy in policies() {
            let name = policy.about().name;
            assert_eq!(by_name(name, None).ok().map(|found| found.about()), Some(policy.about()));
        }
        for (alias, meant) in ALIASES {
            assert!(policies().iter().all(|policy| policy.about().name != alias), "{alias} hides a policy");
            let found = by_name(alias, None).ok().map(|found| found.about().name);
            assert!(found.is_none_or(|name| name == meant));
        }
    }

    #[test]
    fn fairness_is_for_those_who_have_one() {
        assert!(by_name("pollux", Some(0.0)).is_ok());
        for policy in policies().iter().filter(|policy| policy.about().name != "pollux") {
            assert!(failure(policy.about().name, Some(0.0)).contains("has no fairness"));
        }
    }

    #[test]
    fn unknown_policies_are_refused() {
        assert!(failure("polux", None).contains("did you mean `pollux`?"));
        assert!(failure("zzz", None).ends_with("hint: `pollux policy list` shows all of them\n"));
    }
}
