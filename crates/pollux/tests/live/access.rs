//! Every route of the API as every kind of caller: nobody gets more than a role allows.

use std::collections::{BTreeMap, BTreeSet};

use crate::scheduler::Scheduler;
use serde_json::Value;

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// Nothing.
    Nothing,
    /// Anybody's token but a job's.
    Look,
    /// The same, or that of the job itself.
    LookAt,
    /// A submitter's or an administrator's.
    Submit,
    /// That of the job's owner, or an administrator's.
    Change,
    /// An administrator's.
    Rule,
    /// A job's, which then speaks for itself alone.
    Speak,
    /// That of the job that the address names, in the address.
    SpeakByAddress,
}

use Needs::{Change, Look, LookAt, Nothing, Rule, Speak, SpeakByAddress, Submit};

/// Every operation, what it needs, and a body that makes sense.
const ROUTES: &[(&str, Needs, &str)] = &[
    ("GET /healthz", Nothing, ""),
    ("GET /readyz", Nothing, ""),
    ("GET /metrics", Look, ""),
    ("GET /openapi.json", Look, ""),
    ("GET /v1/service", Look, ""),
    ("GET /v1/jobs", Look, ""),
    ("POST /v1/jobs", Submit, r#"{"file": {"name": "new", "command": ["true"]}}"#),
    ("GET /v1/jobs/{job}", LookAt, ""),
    ("PATCH /v1/jobs/{job}", Change, r#"{"priority": "high"}"#),
    ("GET /v1/jobs/{job}/explain", LookAt, ""),
    ("GET /v1/jobs/{job}/logs", LookAt, ""),
    ("POST /v1/jobs/{job}:pause", Change, ""),
    ("POST /v1/jobs/{job}:checkpoint", Change, ""),
    ("POST /v1/jobs/{job}:resume", Change, ""),
    ("GET /v1/history", Look, ""),
    ("GET /v1/nodes", Look, ""),
    ("PATCH /v1/nodes/{node}", Rule, r#"{"state": "cordoned"}"#),
    ("GET /v1/queues", Look, ""),
    ("PUT /v1/queues/{queue}", Rule, r#"{"name": "vision", "caps": {"t4": 3}}"#),
    ("DELETE /v1/queues/{queue}", Rule, ""),
    ("GET /v1/rounds", Look, ""),
    ("GET /v1/rounds/{round}", Look, ""),
    ("GET /v1/events", Look, ""),
    ("GET /v1/events/watch", Look, ""),
    ("POST /v1/whatif", Look, r#"{"cancel": ["adas"]}"#),
    ("GET /v1/tokens", Rule, ""),
    ("POST /v1/tokens", Rule, r#"{"owner": "eve", "role": "admin"}"#),
    ("DELETE /v1/tokens/{id}", Rule, ""),
    ("POST /v1/agent/reports", Speak, r#"{"version": 1, "attempt": 1}"#),
    ("GET /v1/agent/orders", Speak, ""),
    ("PUT /adaptdl/{token}/hints/{namespace}/{name}", SpeakByAddress, "{}"),
    ("GET /adaptdl/{token}/discover/{namespace}/{name}/{group}", SpeakByAddress, ""),
    // The last: it ends the job that the others are about.
    ("POST /v1/jobs/{job}:cancel", Change, ""),
];

/// Who calls. Jobs are `adas`, of ada, and `bobs`, of bob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Nobody,
    Wrong,
    /// An administrator's token that has expired.
    Expired,
    /// An administrator's token that was taken back.
    TakenBack,
    /// The token of a job that has ended.
    EndedJob,
    Viewer,
    Ada,
    Bob,
    AdasJob,
    BobsJob,
    Admin,
}

impl Who {
    const UNKNOWN: [Self; 5] = [Self::Nobody, Self::Wrong, Self::Expired, Self::TakenBack, Self::EndedJob];
    const KNOWN: [Self; 6] = [Self::Viewer, Self::Ada, Self::Bob, Self::AdasJob, Self::BobsJob, Self::Admin];

    fn is_job(self) -> bool {
        matches!(self, Self::AdasJob | Self::BobsJob)
    }

    /// Whether a known caller may do this about job `adas`.
    fn may(self, needs: Needs) -> bool {
        match needs {
            Nothing => true,
            Look => !self.is_job(),
            LookAt => self != Self::BobsJob,
            Submit => matches!(self, Self::Ada | Self::Bob | Self::Admin),
            Change => matches!(self, Self::Ada | Self::Admin),
            Rule => self == Self::Admin,
            Speak => self.is_job(),
            SpeakByAddress => self == Self::AdasJob,
        }
    }
}

/// A scheduler with jobs of two owners, and everybody's token.
struct World {
    scheduler: Scheduler,
    tokens: BTreeMap<Who, String>,
    /// A token that nobody needs.
    spare: String,
}

impl World {
    fn new() -> Self {
        let scheduler = Scheduler::up("1x4:t4");
        let admin = scheduler.admin();
        let mut tokens = BTreeMap::from([(Who::Wrong, "plx_wrong".to_owned()), (Who::Admin, admin.clone())]);
        let make = |body: &str| {
            let made = scheduler.call("POST", "/v1/tokens", Some(&admin), Some(body.as_bytes())).json();
            let text = |key: &str| made[key].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
            (text("token"), text("id"))
        };
        tokens.insert(Who::Viewer, make(r#"{"owner": "vera", "role": "viewer"}"#).0);
        tokens.insert(Who::Ada, make(r#"{"owner": "ada", "role": "submitter"}"#).0);
        tokens.insert(Who::Bob, make(r#"{"owner": "bob", "role": "submitter"}"#).0);
        tokens.insert(Who::Expired, make(r#"{"owner": "old", "role": "admin", "expires_s": 0}"#).0);
        let (taken_back, id) = make(r#"{"owner": "gone", "role": "admin"}"#);
        scheduler.ok(&["token", "revoke", &id]);
        tokens.insert(Who::TakenBack, taken_back);
        let spare = make(r#"{"owner": "spare", "role": "viewer"}"#).1;
        scheduler.ok(&["queue", "set", "vision", "--cap", "t4=4"]);
        let jobs = [
            ("adas", Who::Ada, Who::AdasJob, "sleep 600"),
            ("bobs", Who::Bob, Who::BobsJob, "sleep 600"),
            ("ended", Who::Ada, Who::EndedJob, "true"),
        ];
        for (name, owner, job, then) in jobs {
            let file = scheduler.file("token", &tokens[&owner]);
            let script = format!("cat $POLLUX_TOKEN_FILE; {then}");
            scheduler.ok(&["submit", "--token-file", &file, "--name", name, "--", "sh", "-c", &script]);
            scheduler
                .until(name, |shown| shown["state"] == if then == "true" { "finished" } else { "running" });
            let printed = loop {
                let printed = scheduler.ok(&["logs", name]);
                if printed.ends_with('\n') {
                    break printed;
                }
            };
            tokens.insert(job, printed.trim().to_owned());
        }
        Self { scheduler, tokens, spare }
    }

    /// What somebody is answered.
    fn call(&self, who: Who, route: &str, body: &str) -> crate::scheduler::Answer {
        let (method, path) = route.split_once(' ').unwrap();
        let token = self.tokens.get(&who).map(String::as_str);
        let path = path.replace("{job}", "adas").replace("{name}", "adas").replace("{node}", "node-0");
        let path = path.replace("{queue}", "vision").replace("{round}", "1").replace("{id}", &self.spare);
        let path = path.replace("{namespace}", "pollux").replace("{group}", "0");
        let path = path.replace("{token}", token.unwrap_or("plx_"));
        let path = if path.ends_with("/orders") { format!("{path}?timeout=0") } else { path };
        self.scheduler.call(method, &path, token, (!body.is_empty()).then_some(body.as_bytes()))
    }
}

#[test]
fn no_route_gives_anybody_more_than_a_role_allows() {
    let world = World::new();
    let admin = world.scheduler.admin();
    let document = world.scheduler.call("GET", "/openapi.json", Some(&admin), None).json();
    let described: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let listed: BTreeSet<String> = ROUTES.iter().map(|(route, ..)| (*route).to_owned()).collect();
    assert_eq!(described, listed, "a route that is new, or gone: say above what it needs");

    // What is refused comes first, and changes nothing.
    let before = world.scheduler.everything();
    for (route, needs, body) in ROUTES {
        for who in Who::UNKNOWN.into_iter().filter(|_| *needs != Nothing) {
            check_refused(&world, who, route, body, 401, "unauthenticated");
        }
        for who in Who::KNOWN.into_iter().filter(|who| !who.may(*needs)) {
            check_refused(&world, who, route, body, 403, "forbidden");
        }
    }
    assert_eq!(world.scheduler.everything(), before);

    // Everybody may do what the role allows; what cannot be done as things are is no question of roles.
    for (route, needs, body) in ROUTES {
        for who in Who::KNOWN.into_iter().filter(|who| who.may(*needs)) {
            let answer = world.call(who, route, body);
            let is_done = matches!(answer.status, 200 | 201 | 204 | 409)
                || route.starts_with("DELETE") && answer.status == 404;
            assert!(is_done, "{who:?} {route}: {} {}", answer.status, answer.body);
        }
        if *needs == Nothing {
            assert_eq!(world.call(Who::Nobody, route, body).status, 200, "{route}");
        }
    }
    assert_eq!(world.scheduler.json(&["describe", "adas"])["priority"], "high");
    assert_eq!(world.scheduler.json(&["describe", "bobs"])["priority"], "normal");
}

#[track_caller]
fn check_refused(world: &World, who: Who, route: &str, body: &str, status: u16, code: &str) {
    let answer = world.call(who, route, body);
    assert_eq!(answer.status, status, "{who:?} {route}: {}", answer.body);
    assert_eq!(answer.kind, "application/problem+json", "{who:?} {route}");
    assert_eq!(answer.json()["code"], code, "{who:?} {route}: {}", answer.body);
}

#[test] // Bob's job may know neither ada's jobs nor, by guessing names, that there are any.
fn a_job_learns_nothing_of_others() {
    let world = World::new();
    let bobs = &world.tokens[&Who::BobsJob];
    for part in ["", "/explain", "/logs"] {
        let said = ["adas", "adaz", "nobody", "1"].map(|job| {
            let answer = world.scheduler.call("GET", &format!("/v1/jobs/{job}{part}"), Some(bobs), None);
            assert_eq!(answer.status, 403, "{job}{part}: {}", answer.body);
            answer.body
        });
        assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
        let own = world.scheduler.call("GET", &format!("/v1/jobs/bobs{part}"), Some(bobs), None);
        assert_eq!(own.status, 200, "{}", own.body);
    }
}

#[test] // A job of two starts: the first one's token is worth nothing, before and after a restart of the scheduler.
fn the_token_of_an_earlier_start_is_worth_nothing() {
    let scheduler = Scheduler::up("1x2:t4");
    let script = "cat $POLLUX_TOKEN_FILE; [ $POLLUX_ATTEMPT = 1 ] && exit 9; sleep 600";
    let file = format!(
        "name: twice\ncommand: [sh, -c, '{script}']\nadapts: true\nrestart: {{retry_exit_codes: [9]}}\n"
    );
    scheduler.ok(&["submit", &scheduler.file("twice.yaml", &file)]);
    scheduler.until("twice", |shown| shown["attempts"].as_array().map(Vec::len) == Some(2));
    let token = |attempt: &str| loop {
        let output = scheduler.run(&["logs", "twice", "--attempt", attempt]);
        if output.stdout.ends_with(b"\n") {
            break crate::scheduler::text(&output.stdout).trim().to_owned();
        }
    };
    let (first, second) = (token("1"), token("2"));
    let check = || {
        let status = |token: &str| scheduler.call("GET", "/v1/jobs/twice", Some(token), None).status;
        assert_eq!((status(&first), status(&second)), (401, 200));
    };
    check();
    scheduler.kill();
    scheduler.start();
    check();
    let value: Value = scheduler.json(&["token", "list"]);
    assert!(value.as_array().unwrap().iter().all(|token| token["role"] != "job"), "{value}");
}
