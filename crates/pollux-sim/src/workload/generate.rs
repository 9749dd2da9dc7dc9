//! Workloads after the paper's recipe, of any applications whose run times are known.

use std::collections::BTreeMap;

use super::philly;
use super::recipe::{Recipe, RecipeError, Requests};
use super::requests::{self, Request, Runtimes};
use super::{Submission, Workload};
use pollux_model::Random;

use crate::random;
use crate::setting::did_you_mean;

/// A workload that cannot be generated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GenerateError {
    /// The recipe itself is wrong.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The mix names an application whose run times were not given.
    #[error("no application named `{name}` among {}{}", .known.join(", "), did_you_mean(.near.as_deref()))]
    UnknownApplication {
        /// The name.
        name: String,
        /// The known name nearest to it, if any is near.
        near: Option<String>,
        /// All that are known.
        known: Vec<String>,
    },
    /// An application without batches.
    #[error("`{application}` has batches from {initial} to {max}; they must ascend from 1 or more")]
    NoBatch {
        /// The application.
        application: String,
        /// Its initial batch.
        initial: u64,
        /// Its largest one.
        max: u64,
    },
    /// Work by a trace in a world where all jobs of an application have the same.
    #[error("in the artifact's world all jobs of an application have the same work; add `work=profile`")]
    NoScale,
    /// An application that never completes.
    #[error("`{application}` completes on no number of GPUs; look at its run times")]
    NeverRuns {
        /// The application.
        application: String,
    },
}

/// Draws a workload. Its name is the recipe's text.
///
/// The same arguments give the same workload. With the same seed, a higher load adds jobs to those of a lower one, and
/// other requests come from the same jobs at the same times. Jobs are named `APPLICATION-INDEX`, from 0, in the order
/// of submission.
pub fn generate(
    recipe: &Recipe,
    applications: &BTreeMap<String, &dyn Runtimes>,
    seed: u64,
) -> Result<Workload, GenerateError> {
    recipe.check()?;
    let users: Vec<User> = recipe
        .mix
        .iter()
        .map(|(name, _)| User::of(name, recipe.requests, applications))
        .collect::<Result<_, _>>()?;
    let shares: Vec<f64> = recipe.mix.iter().map(|&(_, share)| share).collect();
    let hours = philly::hourly_weights(recipe.hours);

    let mut arrivals = random::stream(seed, "workload: arrivals");
    let mut mix = random::stream(seed, "workload: applications");
    let mut requests = random::stream(seed, "workload: requests");
    let mut jobs = Vec::new();
    for _ in 0..recipe.n_jobs() {
        let (hour, within) = arrivals.weighted(&hours).unwrap_or_default();
        let at_secs = arrival_secs(hour, within, recipe.hours);
        let (user, _) = mix.weighted(&shares).unwrap_or_default();
        let (name, application) = (String::new(), recipe.mix[user].0.clone());
        let Request { gpus, batch } = users[user].ask(&mut requests);
        jobs.push(Submission { name, at_secs, application, gpus, batch, work: None, group: None });
    }
    jobs.sort_by_key(|job| job.at_secs);
    for (index, job) in jobs.iter_mut().enumerate() {
        job.name = format!("{}-{index}", job.application);
    }
    Ok(Workload { name: recipe.to_string(), jobs })
}

/// The whole second that lies so far into an hour, which may be the last and shorter than others.
fn arrival_secs(hour: usize, within: f64, hours: f64) -> u64 {
    let begin = hour as f64;
    let length = (hours - begin).min(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "less than a year, and not negative"
    )]
    let secs = ((begin + length * within) * 3_600.0) as u64;
    secs
}

/// What the users of one application may ask for, by weight.
struct User {
    requests: Vec<Request>,
    weights: Vec<f64>,
}

impl User {
    fn of(
        name: &str,
        requests: Requests,
        applications: &BTreeMap<String, &dyn Runtimes>,
    ) -> Result<Self, GenerateError> {
        let application = *applications.get(name).ok_or_else(|| GenerateError::UnknownApplication {
            name: name.to_owned(),
            near: pollux_api::nearest(name, applications.keys().map(String::as_str)).map(str::to_owned),
            known: applications.keys().cloned().collect(),
        })?;
        let (initial, max) = (application.initial_batch(), application.max_batch());
        if initial == 0 || initial > max {
            return Err(GenerateError::NoBatch { application: name.to_owned(), initial, max });
        }
        let user = match requests {
            Requests::Tuned => Some(Self::tuned(application)),
            Requests::Realistic => Self::realistic(name, application),
        };
        user.filter(|user| !user.requests.is_empty())
            .ok_or_else(|| GenerateError::NeverRuns { application: name.to_owned() })
    }

    fn tuned(application: &dyn Runtimes) -> Self {
        let requests = requests::tuned_choices(application);
        Self { weights: vec![1.0; requests.len()], requests }
    }

    fn realistic(name: &str, application: &dyn Runtimes) -> Option<Self> {
        let counts = requests::class(name, application)?.gpu_counts();
        Some(Self {
            requests: counts
                .iter()
                .map(|&(gpus, _)| requests::untuned(application, gpus))
                .collect::<Option<_>>()?,
            weights: counts.iter().map(|&(_, jobs)| f64::from(jobs)).collect(),
        })
    }

    fn ask(&self, random: &mut Random) -> Request {
        let (index, _) = random.weighted(&self.weights).unwrap_or_default();
        self.requests[index]
    }
}

#[cfg(test)]
mod tests {
    use super::super::requests::tests::Toy;
    use super::super::write_workload;
    use super::*;

    /// The paper's six, and another: all take 10 hours on one GPU and are tuned on 4, 6 or 8.
    fn generated(recipe: &str, seed: u64) -> Result<Workload, GenerateError> {
        let toy = Toy { hours: 9.0, fixed_hours: 1.0, gpus: 1..=64 };
        let never = Toy { hours: f64::INFINITY, fixed_hours: 1.0, gpus: 1..=64 };
        let names = ["imagenet", "yolov3", "deepspeech2", "bert", "cifar10", "ncf", "toy"];
        let mut applications: BTreeMap<String, &dyn Runtimes> =
            names.iter().map(|&name| (name.to_owned(), &toy as &dyn Runtimes)).collect();
        applications.insert("never".to_owned(), &never);
        generate(&recipe.parse()?, &applications, seed)
    }

    fn jobs(recipe: &str, seed: u64) -> Vec<Submission> {
        generated(recipe, seed).unwrap().jobs
    }

    #[test]
    fn one_seed_gives_one_workload() {
        let text = |seed| write_workload(&generated("generate", seed).unwrap());
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }

    fn check_golden(recipe: &str, expected: [&str; 4]) {
        let workload = generated(recipe, 1).unwrap();
        assert_eq!(workload.name, recipe);
        let text = write_workload(&workload);
        let first: Vec<&str> = text.lines().skip(1).take(4).collect();
        assert_eq!(first, expected);
    }

    #[test] // A change here changes every generated workload: say so in CHANGELOG.md.
    fn workloads_stay_what_they_were() {
        check_golden(
            "generate",
            [
                "cifar10-0,92,cifar10,4,400",
                "bert-1,550,bert,6,800",
                "ncf-2,605,ncf,6,800",
                "deepspeech2-3,726,deepspeech2,6,800",
            ],
        );
        check_golden(
            "generate:requests=realistic,mix=toy:1",
            ["toy-0,92,toy,1,100", "toy-1,550,toy,4,400", "toy-2,605,toy,2,200", "toy-3,726,toy,1,100"],
        );
    }

    #[test]
    fn jobs_come_in_order_and_are_named_by_it() {
        let jobs = jobs("generate", 3);
        assert_eq!(jobs.len(), 160);
        assert!(jobs.is_sorted_by_key(|job| job.at_secs));
        let is_named =
            |(index, job): (usize, &Submission)| job.name == format!("{}-{index}", job.application);
        assert!(jobs.iter().enumerate().all(is_named));
    }

    /// Times and applications, which do not depend on requests.
    fn arrivals(recipe: &str) -> Vec<(u64, String)> {
        jobs(recipe, 5).into_iter().map(|job| (job.at_secs, job.application)).collect()
    }

    #[test]
    fn a_higher_load_adds_jobs() {
        let (few, many) = (arrivals("generate"), arrivals("generate:load=1.5"));
        assert_eq!(many.len(), 240);
        let mut rest = many.iter();
        assert!(few.iter().all(|job| rest.any(|other| other == job)));
    }

    #[test]
    fn other_requests_come_from_the_same_jobs() {
        assert_eq!(arrivals("generate"), arrivals("generate:requests=realistic"));
    }

    /// Compares counts with the shares they should have, to within 1.5 points: at 8,000 draws, 2.7 deviations or more.
    fn check_shares(counts: &[u32], weights: &[f64]) {
        let (n_jobs, sum): (u32, f64) = (counts.iter().sum(), weights.iter().sum());
        for (count, weight) in counts.iter().zip(weights) {
            let (found, expected) = (f64::from(*count) / f64::from(n_jobs), weight / sum);
            assert!((found - expected).abs() < 0.015, "{found} instead of {expected}");
        }
    }

    #[test] // Also that minutes within the hour are even.
    fn shares_and_hours_are_right_over_50_seeds() {
        let recipe = Recipe::default();
        let (mut applications, mut hours, mut minutes) = ([0; 6], [0; 8], [0; 6]);
        for job in (0..50).flat_map(|seed| jobs("generate", seed)) {
            applications[recipe.mix.iter().position(|(name, _)| *name == job.application).unwrap()] += 1;
            hours[usize::try_from(job.at_secs / 3_600).unwrap()] += 1;
            minutes[usize::try_from(job.at_secs / 600 % 6).unwrap()] += 1;
        }
        let shares: Vec<f64> = recipe.mix.iter().map(|&(_, share)| share).collect();
        check_shares(&applications, &shares);
        check_shares(&hours, &philly::hourly_weights(8.0));
        check_shares(&minutes, &[1.0; 6]);
    }

    /// How often each of these numbers of GPUs was asked for, in 8,000 requests.
    fn asked<const N: usize>(recipe: &str, gpus: [u32; N]) -> [u32; N] {
        let jobs = jobs(&format!("generate:jobs=8000,{recipe}"), 1);
        let counts = gpus.map(|gpus| jobs.iter().map(|job| u32::from(job.gpus == gpus)).sum());
        assert_eq!(counts.iter().sum::<u32>(), 8_000, "{recipe}: other numbers of GPUs");
        counts
    }

    #[test] // 10 GPU-hours make the toy large; the paper says that cifar10 is small.
    fn requests_are_drawn_by_their_weights() {
        check_shares(&asked("mix=toy:1", [4, 6, 8]), &[1.0; 3]);
        let large = asked("requests=realistic,mix=toy:1", [1, 2, 4, 8, 12, 16, 32, 64]);
        check_shares(&large, &[504.0, 38.0, 256.0, 169.0, 1.0, 12.0, 9.0, 2.0]);
        let small = asked("requests=realistic,mix=cifar10:1", [1, 2, 4, 8, 16]);
        check_shares(&small, &[24_063.0, 74.0, 241.0, 109.0, 11.0]);
    }

    #[test] // Half of the jobs come in the second half.
    fn any_time_can_be_filled() {
        let quarter = jobs("generate:hours=0.25", 1);
        assert!(quarter.last().unwrap().at_secs < 900);
        let late = quarter.iter().filter(|job| job.at_secs >= 450).count();
        assert!((60..100).contains(&late), "{late}");
        let days = jobs("generate:hours=48", 1);
        let late = days.iter().filter(|job| job.at_secs >= 24 * 3_600).count();
        assert!((60..100).contains(&late), "{late}");
    }

    fn check_error(recipe: &str, expected: &str) {
        assert_eq!(generated(recipe, 1).unwrap_err().to_string(), expected);
    }

    #[test]
    fn errors_name_the_application() {
        let known = "among bert, cifar10, deepspeech2, imagenet, ncf, never, toy, yolov3";
        check_error(
            "generate:mix=brt:1",
            &format!("no application named `brt` {known}; did you mean `bert`?"),
        );
        check_error("generate:mix=gpt:1", &format!("no application named `gpt` {known}"));
        let never = "`never` completes on no number of GPUs; look at its run times";
        check_error("generate:mix=never:1", never);
        check_error("generate:mix=never:1,requests=realistic", never);
        check_error("generate:load=0", "`load`: \"0\" is not a number above 0");
        let recipe = Recipe { hours: f64::NAN, ..Recipe::default() };
        assert!(matches!(generate(&recipe, &BTreeMap::new(), 1), Err(GenerateError::Recipe(_))));
    }

    struct NoBatch;

    impl Runtimes for NoBatch {
        fn initial_batch(&self) -> u64 {
            0
        }
        fn max_batch(&self) -> u64 {
            8
        }
        fn max_gpus(&self) -> u32 {
            1
        }
        fn run_secs(&self, _: u32, _: u64) -> Option<f64> {
            Some(1.0)
        }
    }

    #[test]
    fn an_application_has_batches() {
        let applications: BTreeMap<String, &dyn Runtimes> = [("none".to_owned(), &NoBatch as _)].into();
        let error = generate(&"generate:mix=none:1".parse().unwrap(), &applications, 1).unwrap_err();
        assert_eq!(error.to_string(), "`none` has batches from 0 to 8; they must ascend from 1 or more");
    }
}
