//! What the simulator says of machines that were measured, and the rules under random arrivals and faults.

use cuzk_synth::circuit::{CircuitId, SectorSize};
use proptest::prelude::*;

use super::{
    Faults, Report, Scenario,
    model::Machine,
    run,
    trace::{Arrival, stream},
};
use crate::core::job::Priority;

fn busy_with(machine: Machine, proofs: usize, at_once: usize) -> Report {
    let trace = stream(proofs, at_once, 0.0);
    run(&Scenario { machine, trace, faults: Faults::default() }).expect("every rule holds")
}

#[test]
fn the_published_card_with_one_two_and_three_workers() {
    let [one, two, three] = [1, 2, 3].map(|workers| busy_with(Machine::published(workers), 30, 30));
    for (workers, report) in [&one, &two, &three].into_iter().enumerate() {
        println!("published, {} workers:\n{report}", workers + 1);
    }
    let within = |report: &Report, published: f64| (report.seconds_per_proof() / published - 1.0).abs() < 0.1;
    assert!(within(&one, 41.3), "one worker: {one}");
    assert!(within(&two, 38.0), "two workers: {two}");
    assert!(three.seconds_per_proof() > 0.97 * two.seconds_per_proof(), "a third worker hides nothing more: {three}");
}

#[test]
fn little_memory_is_what_keeps_the_published_card_idle() {
    let mut machine = Machine::published(2);
    machine.memory.work = 128 << 30;
    let small = busy_with(machine, 6, 6);
    println!("published, 128 GiB:\n{small}");
    assert!((small.seconds_per_proof() / 152.0 - 1.0).abs() < 0.25, "{small}");
}

#[test]
fn the_same_seed_is_the_same_run() {
    let trace = stream(20, 10, 5.0);
    let faults = Faults { device: 0.1, bad_proof: 0.05, synthesis: 0.02, seed: 7, ..Faults::default() };
    let scenario = Scenario { machine: Machine::ours(2, 16, 0.75), trace, faults };
    let first = run(&scenario).expect("every rule holds");
    assert_eq!(run(&scenario), Ok(first.clone()));
    let other = Scenario { faults: Faults { seed: 8, ..faults }, ..scenario };
    assert_ne!(run(&other), Ok(first));
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let sizes = prop::sample::select(vec![SectorSize::Gib32, SectorSize::Gib64, SectorSize::Mib512, SectorSize::Kib2]);
    let one = (0.0..200.0_f64, sizes, prop::sample::select(Priority::ALL.to_vec()));
    let one = one.prop_map(|(at, size, priority)| Arrival { at, circuit: CircuitId::porep(size), priority });
    prop::collection::vec(one, 1..40)
}

fn machines() -> impl Strategy<Value = Machine> {
    (1..=8_usize, 1..=3_usize, 16..=128_usize, 0..3_usize, 8..64_u64).prop_map(
        |(devices, workers, cores, ahead, gib)| {
            let mut machine = Machine::ours(devices, cores, 0.75);
            machine.workers_per_device = workers;
            machine.lookahead = Some(ahead);
            // Parameters of two large circuits, 6 GiB each, fit beside each other in some of them only.
            machine.memory.work = gib << 30;
            machine
        },
    )
}

fn faults() -> impl Strategy<Value = Faults> {
    let rare = || prop_oneof![Just(0.0), 0.0..0.2_f64];
    (rare(), rare(), rare(), rare(), rare(), 0.0..0.02_f64, any::<u64>()).prop_map(
        |(synthesis, device, sick, bad_proof, cancel, hang, seed)| Faults {
            synthesis,
            device,
            sick,
            bad_proof,
            hang,
            revival: 0.3,
            cancel,
            seed,
        },
    )
}

proptest! {
    // Each case is some hundred partitions; the seed of a failing one is in what proptest prints.
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_rule_holds_under_faults(machine in machines(), trace in arrivals(), faults in faults()) {
        let jobs = trace.len();
        let mut trace = trace;
        trace.sort_by(|a, b| a.at.total_cmp(&b.at));
        let report = run(&Scenario { machine, trace, faults }).map_err(|v| TestCaseError::fail(v.to_string()))?;
        prop_assert_eq!(report.completed + report.failed + report.cancelled + report.refused, jobs);
    }
}
