//! Profiles as JSON: `docs/reference/application-profile.md` describes the format.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pollux_model::{BatchLimits, GpuType, Placement};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::application::{Memory, Profile};
use super::error::{FieldProblem, ProfileError, Within, within};
use super::step_times::{Shape, StepTimes};
use super::training::Training;
use super::{KIND, VERSION};

/// Reads every `.json` file of a folder; by name of the application, which no two may share.
pub fn read_profiles(folder: &Path) -> Result<Vec<Arc<Profile>>, ProfileError> {
    let unreadable = |error| unreadable(folder, &error);
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        files.push(entry.map_err(unreadable)?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut profiles: BTreeMap<String, (PathBuf, Arc<Profile>)> = BTreeMap::new();
    for file in files {
        let profile = read_profile(&file)?;
        let name = profile.name().to_owned();
        if let Some((first, _)) = profiles.get(&name) {
            return Err(ProfileError::NameTwice { file, first: first.clone(), name });
        }
        profiles.insert(name, (file, Arc::new(profile)));
    }
    if profiles.is_empty() {
        return Err(ProfileError::NoProfiles { folder: folder.to_owned() });
    }
    Ok(profiles.into_values().map(|(_, profile)| profile).collect())
}

/// Reads a profile from a file.
pub fn read_profile(file: &Path) -> Result<Profile, ProfileError> {
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    parse_profile(file, &text)
}

/// Reads a profile from the text of a file, whose name is for messages alone.
///
/// ```
/// use std::path::Path;
/// use pollux_sim::profile::{builtin, parse_profile, write_profile};
///
/// let bert = &builtin()[0];
/// let text = write_profile(bert).replace("\"initial\": 12", "\"initial\": 12.5");
/// let error = parse_profile(Path::new("bert.json"), &text).unwrap_err().to_string();
/// assert_eq!(error, "bert.json: `batch.initial`: invalid type: floating point `12.5`, expected u64");
/// ```
pub fn parse_profile(file: &Path, text: &str) -> Result<Profile, ProfileError> {
    let header: Header = deserialize(file, text)?;
    if header.kind.as_ref().and_then(Value::as_str) != Some(KIND) {
        return Err(ProfileError::Kind { file: file.to_owned() });
    }
    match header.version {
        Some(version) if version.as_u64() == Some(VERSION) => {}
        Some(found) => {
            return Err(ProfileError::Version { file: file.to_owned(), found: found.to_string() });
        }
        None => return Err(ProfileError::Kind { file: file.to_owned() }),
    }
    let draft: Draft = deserialize(file, text)?;
    draft.check().map_err(|problem| problem.of(file))
}

/// Writes a profile: the same text for equal profiles, with a shape on each line.
pub fn write_profile(profile: &Profile) -> String {
    let mut text = String::new();
    // Nothing written to a string fails.
    let _ = write_to(&mut text, profile);
    text
}

fn write_to(text: &mut String, profile: &Profile) -> fmt::Result {
    let (limits, training) = (profile.limits(), profile.training());
    let epochs = || 0..training.n_epochs();
    writeln!(text, "{{\n  \"kind\": \"{KIND}\",\n  \"version\": {VERSION},")?;
    writeln!(text, "  \"name\": {},", quoted(profile.name()))?;
    writeln!(text, "  \"source\": {},", quoted(profile.source()))?;
    let (initial, max) = (limits.initial().0, limits.max().0);
    let (micro_min, micro_max) = (limits.micro_min(), limits.micro_max());
    let batch = format!("\"initial\": {initial}, \"max\": {max}");
    writeln!(text, "  \"batch\": {{{batch}, \"micro_min\": {micro_min}, \"micro_max\": {micro_max}}},")?;
    writeln!(text, "  \"restart_secs\": {},\n  \"work\": {{", profile.restart_secs())?;
    writeln!(text, "    \"epoch_ends\": {},", list(epochs().map(|epoch| training.epoch_end(epoch))))?;
    writeln!(text, "    \"noise_scales\": {{\n      \"batches\": {},", list(training.batches()))?;
    let rows = epochs().map(|epoch| list(training.noise_row(epoch)));
    writeln!(text, "      \"epochs\": {}\n    }}\n  }},", lines(rows, 6))?;
    let types = profile.gpu_types().filter_map(|gpu_type| Some((gpu_type, profile.step_times(gpu_type)?)));
    let types = types.map(|(gpu_type, times)| {
        let shapes = lines(times.shapes().map(shape_line), 6);
        let micro_max = profile.own_micro_max(gpu_type);
        let micro_max = micro_max.map_or_else(String::new, |most| format!("      \"micro_max\": {most},\n"));
        format!("    {}: {{\n{micro_max}      \"shapes\": {shapes}\n    }}", quoted(gpu_type.name()))
    });
    let types: Vec<String> = types.collect();
    writeln!(text, "  \"step_times\": {{\n{}\n  }}\n}}", types.join(",\n"))
}

fn shape_line(shape: &Shape) -> String {
    let points = shape.points();
    format!(
        "{{\"nodes\": {}, \"replicas\": {}, \"micro_batches\": {}, \"step_secs\": {}, \"sync_secs\": {}}}",
        shape.placement().n_nodes(),
        shape.placement().n_replicas(),
        list(points.iter().map(|(micro_batch, _)| micro_batch)),
        list(points.iter().map(|(_, time)| time.step_secs)),
        list(points.iter().map(|(_, time)| time.sync_secs)),
    )
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// A list on one line. Rust writes a float in the fewest digits that read back as the same, as JSON takes them.
fn list<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    format!("[{}]", values.join(","))
}

/// A list with an item on each line, in a field that is indented by so much.
fn lines(items: impl Iterator<Item = String>, indent: usize) -> String {
    let indent = " ".repeat(indent);
    let items: Vec<String> = items.map(|item| format!("{indent}  {item}")).collect();
    format!("[\n{}\n{indent}]", items.join(",\n"))
}

fn unreadable(file: &Path, error: &std::io::Error) -> ProfileError {
    ProfileError::Unreadable { file: file.to_owned(), reason: error.to_string() }
}

fn deserialize<'de, T: Deserialize<'de>>(file: &Path, text: &'de str) -> Result<T, ProfileError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        json_error(file, if path == "." { "" } else { &path }, error.inner())
    })?;
    json.end().map_err(|error| json_error(file, "", &error))?;
    Ok(value)
}

fn json_error(file: &Path, path: &str, error: &serde_json::Error) -> ProfileError {
    // The parser ends its messages with line and column, which have a place of their own here.
    let message = error.to_string();
    let reason = message.rsplit_once(" at line ").map_or(&*message, |(reason, _)| reason).to_owned();
    if error.is_data() {
        return within(path, FieldProblem::Format(reason)).of(file);
    }
    ProfileError::Syntax { file: file.to_owned(), line: error.line(), column: error.column(), reason }
}

/// What every file of ours begins with.
#[derive(Deserialize)]
struct Header {
    kind: Option<Value>,
    version: Option<Value>,
}

/// A profile as it is written, not yet checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Draft {
    #[expect(dead_code, reason = "the header was looked at before")]
    pub(super) kind: IgnoredAny,
    #[expect(dead_code, reason = "the header was looked at before")]
    pub(super) version: IgnoredAny,
    pub(super) name: String,
    pub(super) source: String,
    pub(super) batch: DraftBatch,
    pub(super) restart_secs: f64,
    pub(super) work: DraftWork,
    #[serde(deserialize_with = "each_once")]
    pub(super) step_times: BTreeMap<String, DraftTimes>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftBatch {
    pub(super) initial: u64,
    pub(super) max: u64,
    pub(super) micro_min: u32,
    pub(super) micro_max: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftWork {
    pub(super) epoch_ends: Vec<f64>,
    pub(super) noise_scales: DraftNoise,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftNoise {
    pub(super) batches: Vec<u64>,
    pub(super) epochs: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftTimes {
    #[serde(default)]
    pub(super) micro_max: Option<u32>,
    pub(super) shapes: Vec<DraftShape>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftShape {
    pub(super) nodes: u32,
    pub(super) replicas: u32,
    pub(super) micro_batches: Vec<u32>,
    pub(super) step_secs: Vec<f64>,
    pub(super) sync_secs: Vec<f64>,
}

impl Draft {
    pub(super) fn check(self) -> Result<Profile, Within> {
        let DraftBatch { initial, max, micro_min, micro_max } = self.batch;
        let limits = BatchLimits::new(initial, max, micro_min, micro_max)
            .map_err(|error| within("batch", FieldProblem::from(error)))?;
        let DraftNoise { batches, epochs } = self.work.noise_scales;
        let training = Training::new(self.work.epoch_ends, batches, epochs)
            .map_err(|problem| within("work", problem))?;
        let (mut step_times, mut micro_max) = (BTreeMap::new(), BTreeMap::new());
        for (gpu_type, times) in self.step_times {
            let at = |key: &str, problem: Within| {
                within("step_times", within(gpu_type.as_str(), within(key, problem)))
            };
            let name = GpuType::new(&gpu_type);
            if let Some(most) = times.micro_max {
                let own = limits.with_micro_max(most);
                own.map_err(|error| at("micro_max", FieldProblem::from(error).into()))?;
                micro_max.insert(name.clone(), most);
            }
            step_times.insert(name, times.check().map_err(|problem| at("shapes", problem))?);
        }
        let memory = Memory { limits, micro_max };
        Profile::new(self.name, self.source, memory, self.restart_secs, step_times, training)
    }
}

impl DraftTimes {
    fn check(&self) -> Result<StepTimes, Within> {
        let shapes = self.shapes.iter().enumerate();
        let shapes = shapes
            .map(|(index, shape)| shape.check().map_err(|problem| within(format!("[{index}]"), problem)));
        StepTimes::new(shapes.collect::<Result<_, _>>()?)
    }
}

impl DraftShape {
    fn check(&self) -> Result<Shape, Within> {
        let (n_nodes, n_replicas) = (self.nodes, self.replicas);
        let placement =
            Placement::new(n_nodes, n_replicas).ok_or(FieldProblem::Shape { n_nodes, n_replicas })?;
        Shape::new(placement, &self.micro_batches, &self.step_secs, &self.sync_secs)
    }
}

/// A map of which no key stands twice; plain reading would take the last and pass over the others.
fn each_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, DraftTimes>, D::Error> {
    struct EachOnce;

    impl<'de> Visitor<'de> for EachOnce {
        type Value = BTreeMap<String, DraftTimes>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object with a key for each GPU type")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut map = BTreeMap::new();
            while let Some((key, value)) = entries.next_entry::<String, _>()? {
                if map.contains_key(&key) {
                    return Err(A::Error::custom(format_args!("GPU type {key:?} stands twice")));
                }
                map.insert(key, value);
            }
            Ok(map)
        }
    }

    deserializer.deserialize_map(EachOnce)
}
