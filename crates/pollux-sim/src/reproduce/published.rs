//! Published figures to stand beside ours.
//!
//! Sources: Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", OSDI 2021, and the
//! results in its artifact (petuum/adaptdl, branch osdi21-artifact); Jayaram Subramanya et al., "Sia", SOSP 2023, and
//! its artifact.

/// A policy on the paper's testbed: name, and average and 99th percentile of completion times and makespan in hours.
pub(super) type Testbed = (&'static str, [f64; 3]);

/// The paper's table of policies with tuned jobs: 16 nodes of 4 T4, 160 jobs.
pub(super) const TUNED: [Testbed; 3] =
    [("pollux", [0.76, 11.0, 16.0]), ("optimus", [1.5, 15.0, 20.0]), ("tiresias", [1.2, 15.0, 24.0])];

/// The same with jobs as users configure them; Pollux does not heed what they say.
pub(super) const REALISTIC: [Testbed; 3] =
    [("pollux", [0.76, 11.0, 16.0]), ("optimus", [2.7, 22.0, 28.0]), ("tiresias", [2.8, 25.0, 31.0])];

/// The fairness knob on the testbed.
pub(super) const KNOB: [(f64, [f64; 3]); 3] =
    [(1.0, [0.83, 10.0, 16.0]), (-1.0, [0.76, 11.0, 16.0]), (-10.0, [0.84, 12.0, 18.0])];

/// Mean completion times of the artifact's eight workloads by load, in seconds: Pollux, Tiresias, Optimus with an oracle.
pub(super) const LOADS: [(f64, [f64; 3]); 4] = [
    (0.5, [1_534.0, 2_092.0, 2_395.0]),
    (1.0, [2_751.0, 4_038.0, 5_682.0]),
    (1.5, [3_685.0, 6_182.0, 7_235.0]),
    (2.0, [5_289.0, 10_040.0, 9_721.0]),
];

/// Mean completion time under Pollux by seconds between rounds.
pub(super) const ROUNDS: [(u64, f64); 5] =
    [(30, 2_729.0), (60, 2_751.0), (120, 2_806.0), (240, 2_969.0), (480, 3_354.0)];

/// Mean completion time under Pollux by slow-down; the last three without avoidance.
pub(super) const AVOIDED: f64 = 2_751.0;
/// Without avoidance, by slow-down.
pub(super) const INTERFERENCE: [(f64, f64); 3] = [(0.0, 2_758.0), (0.25, 3_177.0), (0.5, 3_903.0)];

/// Of the artifact's workloads 1, 2 and 4: setting, policy, and the average completion time in each.
pub(super) type Averages = (f64, &'static str, [f64; 3]);

/// By load.
pub(super) const ARTIFACT_LOADS: [Averages; 12] = [
    (0.5, "pollux", [1_059.512_5, 1_826.262_5, 1_497.762_5]),
    (1.0, "pollux", [2_088.768_75, 3_322.943_75, 2_720.981_25]),
    (1.5, "pollux", [3_855.779_2, 3_380.579_2, 3_902.675]),
    (2.0, "pollux", [6_186.259_4, 4_190.828_1, 5_262.4]),
    (0.5, "tiresias", [1_450.937_5, 2_333.275, 1_946.762_5]),
    (1.0, "tiresias", [2473.65, 5144.9625, 3280.2625]),
    (1.5, "tiresias", [5_520.291_7, 6_333.770_8, 5_577.320_8]),
    (2.0, "tiresias", [10_138.175, 8_655.990_6, 9_664.728_1]),
    (0.5, "optimus", [1_309.687_5, 3_124.562_5, 2_173.862_5]),
    (1.0, "optimus", [4087.0625, 6913.875, 5967.75]),
    (1.5, "optimus", [7_673.841_7, 6_678.187_5, 7_683.791_7]),
    (2.0, "optimus", [10_806.596_9, 8_515.387_5, 10_312.912_5]),
];

/// By seconds between rounds.
pub(super) const ARTIFACT_ROUNDS: [Averages; 5] = [
    (30.0, "pollux", [2_097.662_5, 3_330.662_5, 2_654.537_5]),
    (60.0, "pollux", [2_088.768_75, 3_322.943_75, 2_720.981_25]),
    (120.0, "pollux", [2_138.943_75, 3_397.962_5, 2_743.012_5]),
    (240.0, "pollux", [2_300.081_25, 3_588.225, 2_910.106_25]),
    (480.0, "pollux", [2_683.606_25, 3_897.275, 3_245.268_75]),
];

/// By slow-down, without avoidance: the genetic algorithm without its rule against neighbours, as the README of the
/// artifact describes for figure 8c.
pub(super) const ARTIFACT_INTERFERENCE: [Averages; 3] = [
    (0.0, "pollux", [2_102.231_25, 3_353.581_25, 2_728.968_75]),
    (0.25, "pollux", [2_565.631_25, 3_683.306_25, 3_153.343_75]),
    (0.5, "pollux", [3_467.2, 4_322.925, 4_031.625]),
];

/// Sia's table of a mixed cluster (6x4 T4, 3x8 RTX 2080 Ti, 2x8 A100), Philly: average completion times in hours, from the
/// draft in its artifact.
pub(super) const MIXED: [(&str, f64); 3] = [("sia", 0.6), ("pollux, blind to types", 1.0), ("gavel", 1.9)];

/// The same read off Sia's figure by load: jobs an hour, and hours of Sia, Pollux and Gavel.
pub(super) const MIXED_LOADS: [(u32, [f64; 3]); 3] =
    [(10, [0.5, 0.8, 1.1]), (20, [0.7, 1.1, 2.8]), (30, [0.8, 1.3, 4.6])];

/// Auto-scaling of one ImageNet job against a throughput-driven scaler: part saved, part longer.
pub(super) const AUTOSCALING: (f64, f64) = (0.25, 0.06);

/// Hyper-parameter search of 100 trials with TPE: average completion in minutes and makespan in hours, Pollux and the
/// baseline.
pub(super) const SEARCH: [(f64, f64); 2] = [(25.0, 10.0), (34.0, 14.0)];

/// Largest mean error of the throughput model, by the paper.
pub(super) const MODEL_ERROR: f64 = 0.1;
