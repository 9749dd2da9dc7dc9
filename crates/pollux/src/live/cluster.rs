//! The service, its nodes, queues and tokens; what-if.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use pollux_api::rest::{
    DeviceShown, NewToken, NodeEdit, NodeShown, QueueShown, Role, ServiceShown, TokenMade, TokenShown,
    WhatIf, WhatIfAnswer, WhatIfJob,
};

use super::args::{
    Form, NameArgs, NodeCommand, QueueArgs, QueueCommand, RoleArg, Shown, TokenArgs, TokenCommand, WhatifArgs,
};
use super::failure::LiveFailure;
use super::place::{client, part};
use super::show;
use super::submit::{in_this_folder, read};
use crate::output::Output;
use crate::text::table;

pub(crate) fn status(args: &Shown) -> Result<Output, LiveFailure> {
    let service: ServiceShown = client(&args.at)?.get("/v1/service")?;
    show::one(args.output, &service, || {
        let emulated = if service.is_emulated { ", emulated" } else { "" };
        let mut text = format!(
            "pollux {} with policy {}, up since {}\n{} of {} GPUs held ({}{emulated}), {} rounds so far\n",
            service.version,
            service.policy,
            service.up_since,
            service.held,
            service.gpus,
            service.cluster,
            service.rounds
        );
        let jobs: Vec<String> =
            service.jobs.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let _ = writeln!(text, "jobs: {}", if jobs.is_empty() { "none".to_owned() } else { jobs.join(", ") });
        for warning in &service.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        text
    })
}

pub(crate) fn node(command: &NodeCommand) -> Result<Output, LiveFailure> {
    let (args, state, gpu) = match command {
        NodeCommand::List(shown) => {
            let nodes: Vec<NodeShown> = client(&shown.at)?.get("/v1/nodes")?;
            return nodes_shown(shown.output, &nodes);
        }
        NodeCommand::Describe(args) => return described(args),
        NodeCommand::Cordon(args) => (&args.named, "cordoned", args.gpu),
        NodeCommand::Drain(args) => (args, "draining", None),
        NodeCommand::Open(args) => (&args.named, "ready", args.gpu),
    };
    let edit = NodeEdit { state: state.to_owned(), gpu };
    let client = client(&args.shown.at)?;
    let node: NodeShown =
        client.send("PATCH", &format!("/v1/nodes/{}", part(&args.name)), &[], Some(&edit))?;
    nodes_shown(args.shown.output, &[node])
}

fn described(args: &NameArgs) -> Result<Output, LiveFailure> {
    let nodes: Vec<NodeShown> = client(&args.shown.at)?.get("/v1/nodes")?;
    let Some(node) = nodes.iter().find(|node| node.name == args.name) else {
        let near = pollux_api::nearest(&args.name, nodes.iter().map(|node| node.name.as_str()));
        return Err(LiveFailure::Failed {
            text: format!("there is no node named `{}`", args.name),
            hint: near.map(|near| format!("did you mean `{near}`?")),
        });
    };
    show::one(args.shown.output, node, || {
        let emulated = if node.is_emulated { ", emulated" } else { "" };
        let mut text = format!(
            "{} is {}: {} of {} {} held{emulated}\n",
            node.name, node.state, node.held, node.gpus, node.gpu_type
        );
        for (job, gpus) in &node.jobs {
            let _ = writeln!(text, "{job} holds {gpus}");
        }
        let dash = || "-".to_owned();
        let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
        let row = |device: &DeviceShown| {
            vec![
                device.index.to_string(),
                device.name.clone(),
                device.utilisation.map_or_else(dash, |busy| format!("{:.0} %", 100.0 * busy)),
                device.memory_used.map_or_else(dash, gib),
                device.memory_total.map_or_else(dash, gib),
                device.power_watts.map_or_else(dash, |watts| format!("{watts:.0} W")),
                device.unhealthy.clone().unwrap_or_else(|| "well".to_owned()),
            ]
        };
        if !node.devices.is_empty() {
            let rows: Vec<Vec<String>> = node.devices.iter().map(row).collect();
            text += &table(&["GPU", "NAME", "BUSY", "MEMORY USED", "OF", "POWER", "HEALTH"], &rows);
        }
        text
    })
}

fn nodes_shown(form: Form, nodes: &[NodeShown]) -> Result<Output, LiveFailure> {
    let row = |node: &NodeShown| {
        let jobs: Vec<String> = node.jobs.iter().map(|(job, gpus)| format!("{job}={gpus}")).collect();
        let gpus = format!("{}/{}", node.held, node.gpus);
        let state = if node.unhealthy > 0 {
            format!("{}, {} unhealthy", node.state, node.unhealthy)
        } else {
            node.state.clone()
        };
        vec![
            node.name.clone(),
            state,
            node.gpu_type.clone(),
            gpus,
            if jobs.is_empty() { "-".to_owned() } else { jobs.join(" ") },
        ]
    };
    let mut output =
        show::rows(form, nodes, &["NODE", "STATE", "TYPE", "HELD", "JOBS"], row, |node| node.name.clone())?;
    if nodes.iter().any(|node| node.is_emulated) {
        output.notes.push("the nodes are emulated".to_owned());
    }
    Ok(output)
}

pub(crate) fn queue(command: &QueueCommand) -> Result<Output, LiveFailure> {
    let (form, queues): (Form, Vec<QueueShown>) = match command {
        QueueCommand::List(shown) => (shown.output, client(&shown.at)?.get("/v1/queues")?),
        QueueCommand::Set(args) => {
            let path = format!("/v1/queues/{}", part(&args.name));
            (args.shown.output, client(&args.shown.at)?.send("PUT", &path, &[], Some(&queue_of(args)?))?)
        }
        QueueCommand::Remove(args) => (args.shown.output, removed(args)?),
    };
    let by_type = |gpus: &BTreeMap<String, u32>| {
        let parts: Vec<String> = gpus.iter().map(|(name, gpus)| format!("{name}={gpus}")).collect();
        if parts.is_empty() { "-".to_owned() } else { parts.join(" ") }
    };
    let row = |queue: &QueueShown| {
        vec![
            queue.name.clone(),
            queue.parent.clone().unwrap_or_else(|| "-".to_owned()),
            by_type(&queue.entitled),
            by_type(&queue.caps),
            queue.held.to_string(),
            queue.jobs.to_string(),
        ]
    };
    let columns = ["QUEUE", "PARENT", "ENTITLED", "CAP", "HELD", "JOBS"];
    show::rows(form, &queues, &columns, row, |queue| queue.name.clone())
}

fn removed(args: &NameArgs) -> Result<Vec<QueueShown>, LiveFailure> {
    let path = format!("/v1/queues/{}", part(&args.name));
    Ok(client(&args.shown.at)?.send("DELETE", &path, &[], None::<&()>)?)
}

fn queue_of(args: &QueueArgs) -> Result<QueueShown, LiveFailure> {
    let by_type = |parts: &[String]| {
        let one = |part: &String| {
            let found =
                part.split_once('=').and_then(|(name, gpus)| Some((name.to_owned(), gpus.parse().ok()?)));
            found.ok_or_else(|| LiveFailure::usage(format!("`{part}` is not TYPE=GPUS, such as t4=8")))
        };
        parts.iter().map(one).collect::<Result<BTreeMap<String, u32>, _>>()
    };
    Ok(QueueShown {
        name: args.name.clone(),
        parent: args.parent.clone(),
        entitled: by_type(&args.entitled)?,
        caps: by_type(&args.cap)?,
        ..QueueShown::default()
    })
}

pub(crate) fn token(command: &TokenCommand) -> Result<Output, LiveFailure> {
    match command {
        TokenCommand::List(shown) => {
            let tokens: Vec<TokenShown> = client(&shown.at)?.get("/v1/tokens")?;
            let row = |token: &TokenShown| {
                let expires = token.expires.clone().unwrap_or_else(|| "never".to_owned());
                vec![
                    token.id.clone(),
                    token.owner.clone(),
                    token.role.word().to_owned(),
                    token.made.clone(),
                    expires,
                ]
            };
            show::rows(shown.output, &tokens, &["TOKEN", "OWNER", "ROLE", "MADE", "EXPIRES"], row, |token| {
                token.id.clone()
            })
        }
        TokenCommand::Create(args) => created(args),
        TokenCommand::Revoke(args) => {
            let path = format!("/v1/tokens/{}", part(&args.name));
            let _: Option<()> = client(&args.shown.at)?.send("DELETE", &path, &[], None::<&()>)?;
            Ok(Output {
                notes: vec![format!("token {} is worth nothing any more", args.name)],
                ..Output::default()
            })
        }
    }
}

fn created(args: &TokenArgs) -> Result<Output, LiveFailure> {
    let role = match args.role {
        RoleArg::Viewer => Role::Viewer,
        RoleArg::Submitter => Role::Submitter,
        RoleArg::Admin => Role::Admin,
    };
    let days = args.expires_days;
    if days.is_some_and(|days| !(days > 0.0 && days < 36_500.0)) {
        return Err(LiveFailure::usage("a token expires after more than 0 and less than 36500 days"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let expires_s = days.map(|days| (days * 86_400.0) as u64);
    let new = NewToken { owner: args.owner.clone(), role, expires_s };
    let made: TokenMade = client(&args.shown.at)?.send("POST", "/v1/tokens", &[], Some(&new))?;
    let mut output = show::one(args.shown.output, &made, || format!("{}\n", made.token))?;
    output.notes.push("it is shown once; keep it in a file that only its owner may read".to_owned());
    Ok(output)
}

pub(crate) fn what_if(args: &WhatifArgs) -> Result<Output, LiveFailure> {
    let mut change = WhatIf {
        add_nodes: args.add_nodes.clone(),
        remove_nodes: args.remove_node.clone(),
        cancel: args.cancel.clone(),
        ..WhatIf::default()
    };
    for path in &args.submit {
        change.submit.push(in_this_folder(&read(path)?).to_json());
    }
    for text in &args.weight {
        let found =
            text.rsplit_once('=').and_then(|(job, weight)| Some((job.to_owned(), weight.parse().ok()?)));
        let (job, weight) =
            found.ok_or_else(|| LiveFailure::usage(format!("`{text}` is not JOB=WEIGHT, such as bert=2")))?;
        change.weights.insert(job, weight);
    }
    if change == WhatIf::default() {
        return Err(LiveFailure::usage(
            "nothing to imagine: give --submit, --add-nodes, --remove-node, --cancel or --weight",
        ));
    }
    let answer: WhatIfAnswer = client(&args.shown.at)?.send("POST", "/v1/whatif", &[], Some(&change))?;
    imagined(args.shown.output, &answer)
}

/// Who would hold what.
pub(crate) fn imagined(form: Form, answer: &WhatIfAnswer) -> Result<Output, LiveFailure> {
    if matches!(form, Form::Json | Form::Yaml) {
        return show::one(form, answer, String::new);
    }
    let gpus = |gpus: Option<u32>| gpus.map_or_else(|| "-".to_owned(), |gpus| gpus.to_string());
    let row = |job: &WhatIfJob| {
        let speedup = job.speedup_then.map_or_else(|| "-".to_owned(), |speedup| format!("{speedup:.2}"));
        vec![job.name.clone(), gpus(job.gpus_now), gpus(job.gpus_then), speedup]
    };
    let mut output =
        show::rows(form, &answer.jobs, &["JOB", "GPUS NOW", "GPUS THEN", "SPEEDUP"], row, |job| {
            job.name.clone()
        })?;
    if let (Form::Table, Some(now), Some(then)) = (form, answer.value_now, answer.value_then) {
        let _ = writeln!(output.data, "\nmean speed-up {now:.3} now, {then:.3} then");
    }
    output.notes.push("nothing changed, nothing is reserved".to_owned());
    Ok(output)
}
