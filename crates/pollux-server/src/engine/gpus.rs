//! The GPUs there are: those of this machine, or made-up ones.

use std::sync::Arc;

pub use super::nvml::NvmlGpus;

/// A node and its GPUs, all of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The type of its GPUs, such as `h200`.
    pub gpu_type: String,
    /// The GPUs, by index.
    pub gpus: Vec<Gpu>,
}

/// One GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// What `CUDA_VISIBLE_DEVICES` calls it.
    pub index: u32,
    /// Its own name among all GPUs of the world; none if it is made up.
    pub uuid: Option<String>,
    /// What the maker calls it; none if it is made up.
    pub name: Option<String>,
    /// Its memory; none if it is made up.
    pub memory_bytes: Option<u64>,
}

/// How a GPU is doing. What the driver does not tell is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The node's name.
    pub node: String,
    /// The GPU.
    pub index: u32,
    /// What is wrong with it; none if it is well.
    pub trouble: Option<String>,
    /// Whether the trouble is its own and lasting, so that nothing should be started on it.
    pub is_sick: bool,
    /// The share of time in which it computed anything, in percent.
    pub busy_percent: Option<u32>,
    /// Memory in use.
    pub memory_used_bytes: Option<u64>,
    /// Power drawn now.
    pub power_milliwatts: Option<u32>,
}

/// Where GPUs come from.
#[derive(Clone, Debug)]
pub enum Gpus {
    /// This machine's, by NVIDIA's driver.
    Real(Arc<NvmlGpus>),
    /// Made up.
    Emulated(Vec<Node>),
    /// There are none, and why.
    Absent(String),
}

/// A shape that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no shape of a cluster; write NODESxGPUS:TYPE, such as 4x4:t4,2x8:a100, with at most 65536 GPUs in all"
)]
pub struct BadShape(String);

impl Gpus {
    /// The GPUs of this machine. The node is called `host`; with several types of GPU, `host-TYPE` for each.
    pub fn discover(host: &str) -> Self {
        match NvmlGpus::open(host) {
            Ok(gpus) => Self::Real(Arc::new(gpus)),
            Err(why) => Self::Absent(why),
        }
    }

    /// Nodes `node-0`, `node-1`, .. of a shape such as `4x4:t4,2x8:a100`: four nodes of four T4, two of eight A100.
    pub fn emulated(shape: &str) -> Result<Self, BadShape> {
        let mut nodes = Vec::new();
        let mut n_all = 0;
        for part in shape.split(',') {
            let (n_nodes, n_gpus, gpu_type) = parse(part.trim()).ok_or_else(|| BadShape(part.to_owned()))?;
            n_all += n_nodes * n_gpus;
            if n_all > MOST_GPUS {
                return Err(BadShape(part.to_owned()));
            }
            for _ in 0..n_nodes {
                let name = format!("node-{}", nodes.len());
                let gpus = (0..n_gpus).map(|index| Gpu { index, ..Gpu::default() }).collect();
                nodes.push(Node { name, gpu_type: gpu_type.to_owned(), gpus });
            }
        }
        Ok(Self::Emulated(nodes))
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        match self {
            Self::Real(gpus) => gpus.nodes(),
            Self::Emulated(nodes) => nodes,
            Self::Absent(_) => &[],
        }
    }

    /// How each real GPU is doing now. Asks the driver, so not for a thread that must not wait.
    pub fn readings(&self) -> Vec<Reading> {
        match self {
            Self::Real(gpus) => gpus.readings(),
            Self::Emulated(_) | Self::Absent(_) => Vec::new(),
        }
    }
}

/// Most nodes and GPUs per node of a made-up cluster; more is a slip of the hand.
const MOST: u32 = 4_096;

/// Most GPUs of a made-up cluster in all.
const MOST_GPUS: u32 = 65_536;

/// `4x8:t4` as (4, 8, t4).
fn parse(part: &str) -> Option<(u32, u32, &str)> {
    let (counts, gpu_type) = part.split_once(':')?;
    let (nodes, gpus) = counts.split_once('x')?;
    let count = |text: &str| text.parse().ok().filter(|count| (1..=MOST).contains(count));
    let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let named = !gpu_type.is_empty() && gpu_type.chars().all(fine);
    named.then(|| Some((count(nodes)?, count(gpus)?, gpu_type))).flatten()
}

/// A type from the maker's name: `NVIDIA A100-SXM4-80GB` is `a100`, `NVIDIA GeForce RTX 2080 Ti` is `rtx2080ti`.
///
/// Words for makers and lines of products are left out, and all from the first that tells memory or connection.
pub(super) fn gpu_type(name: &str) -> String {
    const LINES: [&str; 5] = ["nvidia", "tesla", "quadro", "geforce", "generation"];
    let lower = name.to_ascii_lowercase();
    let tells_variant = |word: &str| {
        word.ends_with("gb")
            || ["sxm", "pcie", "hbm", "nvl", "mig"].iter().any(|prefix| word.starts_with(prefix))
    };
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let kept: String =
        words.filter(|word| !LINES.contains(word)).take_while(|word| !tells_variant(word)).collect();
    if kept.is_empty() { "gpu".to_owned() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_type(name: &str, expected: &str) {
        assert_eq!(gpu_type(name), expected, "{name}");
    }

    #[test]
    fn types_are_short_names() {
        check_type("NVIDIA H200", "h200");
        check_type("NVIDIA H100 80GB HBM3", "h100");
        check_type("NVIDIA A100-SXM4-80GB", "a100");
        check_type("A100-PCIE-40GB", "a100");
        check_type("Tesla T4", "t4");
        check_type("Tesla V100-SXM2-16GB", "v100");
        check_type("NVIDIA GeForce RTX 2080 Ti", "rtx2080ti");
        check_type("Quadro RTX 6000", "rtx6000");
        check_type("NVIDIA L40S", "l40s");
        check_type("NVIDIA", "gpu");
    }

    fn check_shape(shape: &str, expected: &[(&str, &str, usize)]) {
        let gpus = Gpus::emulated(shape).expect("a shape");
        let found: Vec<_> =
            gpus.nodes().iter().map(|n| (n.name.as_str(), n.gpu_type.as_str(), n.gpus.len())).collect();
        assert_eq!(found, expected, "{shape}");
        assert_eq!(gpus.readings(), []);
    }

    #[test]
    fn shapes_make_nodes() {
        check_shape("1x4:t4", &[("node-0", "t4", 4)]);
        check_shape("2x1:t4, 1x8:a100", &[("node-0", "t4", 1), ("node-1", "t4", 1), ("node-2", "a100", 8)]);
        for shape in [
            "",
            "4",
            "4x4",
            "x4:t4",
            "0x4:t4",
            "4x0:t4",
            "4x4:",
            "4x4:t4,",
            "9999x1:t4",
            "4x4:a/b",
            "4096x4096:t4",
        ] {
            let error = Gpus::emulated(shape).unwrap_err().to_string();
            assert!(error.contains("4x4:t4,2x8:a100"), "{error}");
        }
    }

    #[test] // True with and without a driver: no machine makes this an error.
    fn looking_for_gpus_gives_nodes_or_a_reason() {
        match Gpus::discover("here") {
            Gpus::Real(gpus) => {
                assert!(
                    gpus.nodes().iter().all(|node| node.name.starts_with("here") && !node.gpus.is_empty())
                );
                assert!(gpus.readings().iter().all(|reading| reading.node.starts_with("here")));
            }
            Gpus::Absent(why) => assert!(why.contains("--emulate"), "{why}"),
            Gpus::Emulated(_) => panic!("nothing was to be made up"),
        }
    }
}
