//! A scenario as text, and its plan as text.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pollux_model::{Allocation, GpuType, JobCurves, JobId, NodeId, Placement};
use pollux_policy::{
    Cluster, FairShare, Freedom, Group, GroupId, Job, Known, Learned, Limit, Node, NodeState, Plan, Policy,
    Pollux, Priority, RestartPrice, Settings, SizeAware, Snapshot, Terms,
};

use crate::common::plain;
use crate::line::{Fault, Line};
use crate::models::{self, model};

/// The type of GPUs of which nothing else is said.
const ANY_TYPE: &str = "gpu";

/// A cluster, its jobs, and the plans asked for.
#[derive(Default)]
pub(crate) struct Scenario {
    cluster: Cluster,
    jobs: Vec<Job>,
    /// By position in the snapshot.
    nodes: Vec<String>,
    groups: Vec<String>,
    names: Vec<String>,
    plans: Vec<Ask>,
}

/// A `plan` line.
struct Ask {
    line: usize,
    text: String,
    by_size: bool,
    settings: Settings,
    counts: bool,
}

impl Scenario {
    /// Reads the lines of one scenario, numbered as in their file.
    pub(crate) fn read<'a>(lines: impl IntoIterator<Item = (usize, &'a str)>) -> Result<Self, Fault> {
        let mut scenario = Self::default();
        for (number, text) in lines {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let line = Line::read(number, text)?;
            match line.kind {
                "nodes" => scenario.nodes(line)?,
                "speeds" => scenario.speeds(line)?,
                "group" => scenario.group(line)?,
                "job" => scenario.job(line)?,
                "plan" => scenario.plan(line, text)?,
                kind => {
                    return Err(
                        line.fault(format!("`{kind}` is none of nodes, speeds, group, job, plan, ----"))
                    );
                }
            }
        }
        Ok(scenario)
    }

    fn nodes(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        let gpus = line.number("gpus")?.ok_or_else(|| line.fault("`nodes` needs `gpus`"))?;
        let gpu_type = line.text("type").unwrap_or(ANY_TYPE);
        let states = [("cordoned", NodeState::Cordoned), ("draining", NodeState::Draining)];
        let state = line.word("state", &states)?.unwrap_or_default();
        let others = line.number("others")?.unwrap_or(0);
        for name in &line.names {
            let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
            self.nodes.push((*name).to_owned());
            self.cluster.nodes.push(Node { others, state, ..plain::node(id, gpu_type, gpus) });
        }
        line.finish()
    }

    /// `speeds types=t4:1,a100:3`
    fn speeds(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        self.cluster.speeds = by_type(line.numbers("types", ANY_TYPE)?);
        line.finish()
    }

    fn group(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        let name = line.name()?;
        let id = GroupId(u32::try_from(self.groups.len()).unwrap_or(u32::MAX));
        let parent = self.group_named(&mut line, "parent")?;
        let entitled = by_type(line.numbers("entitled", ANY_TYPE)?);
        let caps = by_type(line.numbers("cap", ANY_TYPE)?);
        self.groups.push(name.to_owned());
        self.cluster.groups.push(Group { id, parent, entitled, caps });
        line.finish()
    }

    fn group_named(&self, line: &mut Line<'_>, key: &str) -> Result<Option<GroupId>, Fault> {
        let Some(name) = line.text(key) else { return Ok(None) };
        let at = self.groups.iter().position(|group| group == name);
        let id = at.and_then(|at| u32::try_from(at).ok()).map(GroupId);
        id.map(Some).ok_or_else(|| line.fault(format!("there is no group `{name}` above this line")))
    }

    fn job(&mut self, mut line: Line<'_>) -> Result<(), Fault> {
        let name = line.name()?;
        let seconds = |secs: Option<u64>, or: Duration| secs.map_or(or, Duration::from_secs);
        let plain = plain::job(JobId(self.jobs.len() as u64 + 1));
        let job = Job {
            group: self.group_named(&mut line, "group")?,
            priority: line
                .word("priority", &[("low", Priority::Low), ("high", Priority::High)])?
                .unwrap_or_default(),
            weight: line.number("weight")?.unwrap_or(plain.weight),
            min_gpus: line.number("min")?.unwrap_or(plain.min_gpus),
            max_gpus: line.number("max")?,
            types: line
                .text("types")
                .into_iter()
                .flat_map(|text| text.split(','))
                .map(GpuType::new)
                .collect(),
            freedom: freedom(&mut line)?,
            holds: self.holds(&mut line)?,
            age: seconds(line.number("age")?, Duration::from_hours(1)),
            attained: line.number("attained")?.unwrap_or(plain.attained),
            restarts: line.number("restarts")?.unwrap_or(plain.restarts),
            restart_cost: seconds(line.number("cost")?, plain.restart_cost),
            knows: self.knows(&mut line)?,
            ..plain
        };
        self.jobs.push(job);
        self.names.push(name.to_owned());
        line.finish()
    }

    /// `holds=n0:2,n1:1`
    fn holds(&self, line: &mut Line<'_>) -> Result<Allocation, Fault> {
        let mut at = Vec::new();
        for (node, gpus) in line.numbers("holds", "")? {
            let position = self.nodes.iter().position(|name| name == node);
            let position = position.ok_or_else(|| line.fault(format!("there is no node `{node}`")))?;
            at.push((self.cluster.nodes[position].id, gpus));
        }
        Ok(Allocation::whole(at))
    }

    /// `model=linear` on every type alike, or with `on=t4:1,a100:3` on these; `remaining` in seconds on one GPU.
    fn knows(&self, line: &mut Line<'_>) -> Result<Known, Fault> {
        let name = line.text("model").ok_or_else(|| line.fault("`job` needs `model`"))?;
        let mut speeds = by_type(line.numbers("on", ANY_TYPE)?);
        if speeds.is_empty() {
            speeds = self.cluster.nodes.iter().map(|node| (node.gpu_type.clone(), 1.0)).collect();
        }
        let mut curves = JobCurves::default();
        if name != "none" {
            let known = |speed| {
                model(name, speed)
                    .ok_or_else(|| line.fault(format!("`model`: `{name}` is none of {}", models::NAMES)))
            };
            let models: Result<_, Fault> =
                speeds.into_iter().map(|(gpu_type, speed)| Ok((gpu_type, known(speed)?))).collect();
            curves.update(models?, 16, 64);
        }
        let alone = curves.iter().map(|(_, curve)| curve.goodput(Placement::ALONE).useful_samples_per_sec());
        let alone = alone.fold(0.0, f64::max);
        let remaining = line.number("remaining")?.map(|secs: f64| secs * alone);
        let most_gpus = line.number("seen")?.unwrap_or(64);
        Ok(Known { learned: Learned { curves: Arc::new(curves), most_gpus }, remaining, ..Known::default() })
    }

    fn plan(&mut self, mut line: Line<'_>, text: &str) -> Result<(), Fault> {
        let by_size = line.word("policy", &[("pollux", false), ("size-aware", true)])?.unwrap_or(false);
        let usual = if by_size { Settings::SIZE_AWARE } else { Settings::PAPER };
        let shares = [("packed", FairShare::Packed), ("one-gpu", FairShare::OneGpu)];
        let settings = Settings {
            fairness: line.number("p")?.unwrap_or(usual.fairness),
            fair_share: line.word("fair", &shares)?.unwrap_or(usual.fair_share),
            restart_price: restart_price(&mut line)?.unwrap_or(usual.restart_price),
            exploration: line.number("explore")?.unwrap_or(usual.exploration),
            avoid_interference: line
                .word("interference", &[("avoided", true), ("allowed", false)])?
                .unwrap_or(true),
            ..usual
        };
        let counts = line.word("show", &[("nodes", false), ("counts", true)])?.unwrap_or(false);
        self.plans.push(Ask { line: line.number, text: text.to_owned(), by_size, settings, counts });
        line.finish()
    }

    /// The plans as text; each headed by its line where there are several. They must not depend on the seed.
    pub(crate) fn answers(
        &self,
        mut check: impl FnMut(&Snapshot<Known>, &Plan) -> Result<(), String>,
    ) -> Result<Vec<String>, Fault> {
        let mut lines = Vec::new();
        for ask in &self.plans {
            let fault = |what: String| Fault { line: ask.line, what };
            let snapshot = Snapshot::new(self.cluster.clone(), self.jobs.clone())
                .map_err(|error| fault(error.to_string()))?;
            if self.plans.len() > 1 {
                lines.push(ask.text.clone());
            }
            let mut first: Option<Vec<String>> = None;
            for seed in 1..=5 {
                let plan = ask.plan(&snapshot, &Terms::seeded(seed));
                check(&snapshot, &plan).map_err(fault)?;
                let answer = self.describe(ask, &plan);
                let first = first.get_or_insert_with(|| answer.clone());
                if *first != answer {
                    let [first, other] = [&*first, &answer].map(|lines| lines.join("\n"));
                    return Err(fault(format!("seed 1 gives\n{first}\nbut seed {seed} gives\n{other}")));
                }
            }
            lines.extend(first.unwrap_or_default());
        }
        Ok(lines)
    }

    fn describe(&self, ask: &Ask, plan: &Plan) -> Vec<String> {
        let width = self.names.iter().map(String::len).max().unwrap_or(0);
        let line = |(name, answer): (&String, &pollux_policy::JobPlan)| {
            let limit = self.code(&answer.reason.limit);
            let places = answer.allocation.iter().map(|(node, share)| (node.0, share.n_replicas()));
            let gpus = match answer.allocation.placement() {
                None => "nothing".to_owned(),
                Some(placement) if ask.counts => {
                    format!("{} on {}", placement.n_replicas(), placement.n_nodes())
                }
                Some(_) => {
                    let places = places.map(|(node, gpus)| format!("{}={gpus}", self.nodes[node as usize]));
                    places.collect::<Vec<_>>().join(" ")
                }
            };
            format!("{name:width$}  {gpus}  {limit}")
        };
        self.names.iter().zip(&plan.jobs).map(line).collect()
    }

    /// The stable word for a limit; `pollux-api` has the same words for its files.
    fn code(&self, limit: &Limit) -> String {
        let group = |code: &str, group: GroupId| format!("{code}({})", self.groups[group.0 as usize]);
        let code = match limit {
            Limit::Unstated => "unstated",
            Limit::Price => "price",
            Limit::NoGain => "no_gain",
            Limit::OwnMaximum => "own_maximum",
            Limit::Exploration => "exploration",
            Limit::NodeSize => "node_size",
            Limit::RestartPrice => "restart_price",
            Limit::GroupCap { group: id, .. } => return group("group_cap", *id),
            Limit::Reserved { group: id, .. } => return group("reserved", *id),
            Limit::Packing => "packing",
            Limit::Pinned => "pinned",
            Limit::Restarting => "restarting",
            Limit::Unprofiled => "unprofiled",
            Limit::Starved => "starved",
            Limit::Impossible => "impossible",
        };
        code.to_owned()
    }
}

impl Ask {
    fn plan(&self, snapshot: &Snapshot<Known>, terms: &Terms<'_>) -> Plan {
        let settings = self.settings;
        if self.by_size {
            SizeAware { settings }.plan(snapshot, terms)
        } else {
            Pollux { settings }.plan(&snapshot.seen_with(), terms)
        }
    }
}

fn by_type<T>(numbers: Vec<(&str, T)>) -> BTreeMap<GpuType, T> {
    numbers.into_iter().map(|(name, number)| (GpuType::new(name), number)).collect()
}

/// `freedom=stays`, `freedom=restarting` or `freedom=rigid:4`
fn freedom(line: &mut Line<'_>) -> Result<Freedom, Fault> {
    let Some(text) = line.text("freedom") else { return Ok(Freedom::Elastic) };
    match text.split_once(':') {
        None if text == "stays" => Ok(Freedom::NonPreemptible),
        None if text == "restarting" => Ok(Freedom::Restarting),
        Some(("rigid", gpus)) => Ok(Freedom::Rigid { gpus: line.parse("freedom", gpus)? }),
        _ => Err(line.fault(format!("`freedom`: `{text}` is none of stays, restarting, rigid:GPUS"))),
    }
}

/// `restart=free`, `restart=paper`, `restart=osdi21` or `restart=horizon:200`
fn restart_price(line: &mut Line<'_>) -> Result<Option<RestartPrice>, Fault> {
    let Some(text) = line.text("restart") else { return Ok(None) };
    let price = match text.split_once(':') {
        None if text == "free" => RestartPrice::Free,
        None if text == "paper" => RestartPrice::Paper,
        None if text == "osdi21" => RestartPrice::Osdi21,
        Some(("horizon", secs)) => RestartPrice::Horizon(Duration::from_secs(line.parse("restart", secs)?)),
        _ => {
            return Err(
                line.fault(format!("`restart`: `{text}` is none of free, paper, osdi21, horizon:SECS"))
            );
        }
    };
    Ok(Some(price))
}
