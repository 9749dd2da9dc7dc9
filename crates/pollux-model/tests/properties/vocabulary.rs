//! Constructors and small functions take any input.

use std::time::Duration;

use pollux_model::fit::Observation;
use pollux_model::{
    Allocation, BatchLimits, BatchPlan, Efficiency, GlobalBatch, Goodput, GpuShare, GradientMoments, NodeId,
    NoiseScale, Placement, StepTable, Throughput, Timestamp,
};
use proptest::prelude::*;

use crate::strategies::*;

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn quantities_are_never_negative_nor_nan(a in any_float(), b in any_float()) {
        let (throughput, efficiency) = (Throughput::new(a), Efficiency::new(b));
        prop_assert!(throughput.samples_per_sec() >= 0.0 && efficiency.ratio() >= 0.0);
        prop_assert!((throughput * efficiency).useful_samples_per_sec() >= 0.0);
        prop_assert!((Goodput::new(a) / Goodput::new(b)).ratio() >= 0.0);
    }

    #[test]
    fn time_stops_at_its_ends(a in any::<u64>(), b in any::<u64>(), secs in any::<u64>(), nanos in 0..1_000_000_000_u32) {
        let (first, second) = (Timestamp::from_micros(a.min(b)), Timestamp::from_micros(a.max(b)));
        prop_assert_eq!(first + (second - first), second);
        prop_assert_eq!(first - second, Duration::ZERO);
        let mut later = first;
        later += Duration::new(secs, nanos);
        prop_assert!(later >= first && later.as_secs_f64() >= 0.0);
        prop_assert!(Timestamp::from_secs(secs).as_micros() >= secs);
    }

    #[test]
    fn allocations_add_up(
        counts in prop::collection::vec((any::<u32>(), any_count()), 0..6),
        thousandths in any_count(),
        per_node in any_count(),
    ) {
        let allocation = Allocation::whole(counts.iter().map(|&(node, count)| (NodeId(node), count)));
        prop_assert_eq!(allocation.is_empty(), allocation.placement().is_none());
        prop_assert!(allocation.gpus() >= allocation.iter().count() as f64);
        for (node, share) in allocation.iter() {
            prop_assert_eq!(allocation.on(node), Some(share));
            prop_assert!(share.is_whole() && share.n_replicas() >= 1);
        }
        if let Some(share) = GpuShare::part_of_one(thousandths) {
            let part = Allocation::part_of_one(NodeId(0), share).expect("a part is no whole GPU");
            prop_assert_eq!(part.placement(), Some(Placement::ALONE));
        }
        if let Some(placement) = Placement::packed(thousandths, per_node) {
            prop_assert!(placement.n_nodes() <= placement.n_replicas());
        }
    }

    #[test]
    fn batch_plans_deal_every_sample(
        global in any_batch(),
        placement in any_placement(),
        (atomic, steps, rank, step) in (any_count(), any_count(), any::<u32>(), any::<u32>()),
        limits in any_limits(),
    ) {
        let plans = [BatchPlan::even(placement, atomic, steps), BatchPlan::split(GlobalBatch(global), placement, steps)];
        for plan in plans.into_iter().flatten() {
            let _ = limits.allows(placement, plan);
            let largest = plan.micro_batch(placement, 0, 0);
            let any = plan.micro_batch(placement, rank, step);
            prop_assert!(plan.smallest_micro_batch(placement) <= any && any <= largest);
            prop_assert!(plan.replica_share(placement, rank) >= any);
            prop_assert!(plan.gradient_weight(placement, rank) > 0.0);
        }
        if let Some(plan) = plans[1] {
            prop_assert_eq!(plan.global(), GlobalBatch(global));
            prop_assert_eq!(u64::from(plan.atomic_batch()), plan.micro_batch(placement, 0, 0));
        }
        prop_assert_eq!(BatchLimits::fixed(global, atomic, steps).is_ok(), global > 0 && atomic > 0 && steps >= atomic);
        prop_assert_eq!(limits.with_micro_max(atomic).is_ok(), atomic >= limits.micro_min());
        let _ = limits.max_replicas();
    }

    #[test]
    fn tables_take_times_and_nothing_else(points in prop::collection::vec((any_count(), any_float()), 0..6), at in any_float()) {
        if let Ok(table) = StepTable::new(points.iter().copied()) {
            prop_assert!(table.points().iter().all(|&(_, secs)| secs > 0.0 && secs.is_finite()));
            let _ = table.secs(at);
        }
    }

    #[test]
    fn observations_are_refused_or_sound(
        placement in any_placement(),
        micro_batch in any_count(),
        (accum, optim, weight) in (any_float(), any_float(), any_float()),
    ) {
        let is_positive = |value: f64| value > 0.0 && value.is_finite();
        let observation = Observation::new(placement, micro_batch, accum, optim);
        prop_assert_eq!(observation.is_ok(), micro_batch > 0 && is_positive(accum) && is_positive(optim));
        if let Ok(observation) = observation {
            prop_assert_eq!(observation.with_weight(weight).is_ok(), is_positive(weight));
        }
    }

    #[test]
    fn any_parameters_can_be_asked(params in any_params(), placement in any_placement(), atomic in 1..u32::MAX, steps in any_count()) {
        let plan = BatchPlan::even(placement, atomic, steps).expect("not empty");
        let secs = [params.step_secs(placement, plan), params.last_micro_step_secs(placement, atomic)];
        prop_assert!(params.throughput(placement, plan).samples_per_sec() >= 0.0);
        if params.validate().is_ok() {
            prop_assert!(!secs.iter().any(|&secs| secs < 0.0), "{secs:?}");
        }
        let _ = (params.sync_secs(placement), params.grad.form(), params.grad.is_valid());
    }

    #[test]
    fn noise_makes_efficiency_and_gain(sqr in any_float(), var in any_float(), a in any_batch(), b in any_batch()) {
        let _ = GradientMoments { sqr, var }.noise_scale(GlobalBatch(a));
        let _ = NoiseScale::from_samples(var).map(|noise| noise.gain(GlobalBatch(a), GlobalBatch(b)));
        let (initial, batch) = (a.min(b).max(1), a.max(b).max(1));
        for noise in [NoiseScale::from_samples(sqr), GradientMoments { sqr, var }.noise_scale(GlobalBatch(initial))] {
            let Some(noise) = noise else { continue };
            let efficiency = noise.efficiency(GlobalBatch(initial), GlobalBatch(batch)).ratio();
            prop_assert!(efficiency > 0.0 && efficiency <= 1.0, "{efficiency}");
            let gain = noise.gain(GlobalBatch(initial), GlobalBatch(batch));
            let ratio = batch as f64 / initial as f64;
            prop_assert!(gain >= 1.0 - 1e-12 && gain <= ratio * (1.0 + 1e-12), "{gain} of {ratio}");
        }
    }
}
