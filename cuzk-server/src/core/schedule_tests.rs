//! The order of partitions where circuits and devices differ.

use std::collections::BTreeSet;

use super::{
    Effect, Interest, Limits, NewJob, ProofFailure, Refused,
    devices::DeviceSpec,
    job::{JobKey, Priority},
    params::ParamsState,
    tests::{Bench, CIRCUIT, MIB, OTHER, at, device, job, limits, secs, size},
};

/// A job of the other circuit, whose parameters do not fit beside those of [`CIRCUIT`] when these are 8 MiB.
fn other(request: u8) -> NewJob {
    NewJob { circuit: OTHER, params_bytes: 8 * MIB, ..job(request, 1) }
}

/// A bench where [`CIRCUIT`] holds 8 of 10 MiB.
fn crowded() -> Bench {
    let mut b = Bench::new(limits(), 1);
    b.core.evict(CIRCUIT);
    b.core.handle_params_dropped(CIRCUIT);
    b.core.request_params(CIRCUIT, 8 * MIB, b.now);
    b.core.handle_params_loaded(CIRCUIT, Ok(size(8 * MIB)), b.now);
    b.core.take_effects();
    b
}

fn this(request: u8) -> NewJob {
    NewJob { params_bytes: 8 * MIB, ..job(request, 1) }
}

impl Bench {
    /// Everything that is ready is proven.
    fn prove_ready(&mut self) {
        while let Some(order) = self.prove(0) {
            if let Some(whole) = self.proved(order, 0, Ok(1)) {
                self.core.handle_whole_verified(order.run.job, whole, Ok(()), self.now);
            }
        }
    }
}

#[test]
fn jobs_of_the_loaded_circuit_go_first_for_a_bounded_time() {
    let mut b = crowded();
    let first = b.accept(this(1));
    let passed = b.accept(other(2));
    let behind = b.accept(NewJob { partitions: 3, ..this(3) });
    let order = b.synth().unwrap();
    assert_eq!(order.0, first);
    b.synth_done(order);
    assert_eq!(b.synth(), Some((behind, 0)), "the parameters of this one are there");
    b.synth_done((behind, 0));
    b.prove_ready();
    b.pass(secs(99));
    assert_eq!(b.synth(), Some((behind, 1)));
    b.synth_done((behind, 1));
    b.pass(secs(1));
    assert_eq!(b.synth(), None, "now the other one has waited long enough");
    b.prove_ready();
    b.core.take_effects();
    assert_eq!(b.synth(), None);
    assert_eq!(b.core.take_effects(), [Effect::DropParams(CIRCUIT)], "the last partition in flight has ended");
    assert_eq!(b.synth(), None, "not before they are out of memory");
    assert_eq!(b.core.take_effects(), []);
    b.core.handle_params_dropped(CIRCUIT);
    assert_eq!(b.synth(), None);
    assert_eq!(b.core.take_effects(), [Effect::LoadParams(OTHER)]);
    b.core.handle_params_loaded(OTHER, Ok(size(8 * MIB)), b.now);
    assert_eq!(b.synth(), Some((passed, 0)));
}

#[test]
fn parameters_that_fit_are_loaded_beside_the_others() {
    let mut b = Bench::new(limits(), 1);
    b.accept(job(1, 1));
    b.accept(NewJob { params_bytes: MIB, ..other(2) });
    b.synth().unwrap();
    assert_eq!(b.synth(), None);
    assert!(b.core.take_effects().contains(&Effect::LoadParams(OTHER)));
    assert!(matches!(b.core.params_state(CIRCUIT), ParamsState::Loaded { .. }));
}

#[test]
fn a_critical_job_does_not_wait_for_a_group() {
    let mut b = crowded();
    b.accept(NewJob { partitions: 3, ..this(1) });
    let order = b.synth().unwrap();
    b.synth_done(order);
    b.accept(at(Priority::Critical, other(2)));
    assert_eq!(b.synth(), None);
    b.prove_ready();
    b.core.take_effects();
    assert_eq!(b.synth(), None);
    assert_eq!(b.core.take_effects(), [Effect::DropParams(CIRCUIT)]);
}

#[test]
fn a_device_prefers_its_last_circuit_for_a_bounded_time() {
    let mut b = Bench::new(Limits { lookahead: Some(9), ..limits() }, 1);
    b.core.request_params(OTHER, 10, b.now);
    b.core.handle_params_loaded(OTHER, Ok(size(10)), b.now);
    let one = b.accept(job(1, 1));
    let two = b.accept(NewJob { params_bytes: 10, ..other(2) });
    let three = b.accept(job(3, 1));
    while let Some(order) = b.synth() {
        b.synth_done(order);
    }
    let order = b.prove(0).unwrap();
    b.proved(order, 0, Ok(1));
    assert_eq!(order.run.job, one);
    assert_eq!(b.prove(0).unwrap().run.job, three, "no change of parameters on the device");
    let four = b.accept(job(4, 1));
    let order = b.synth().unwrap();
    b.synth_done(order);
    b.pass(secs(100));
    assert_eq!(b.prove(0).unwrap().run.job, two);
    assert_eq!(b.prove(0).unwrap().run.job, four);
}

#[test]
fn a_critical_job_waits_for_one_running_partition_a_device() {
    let spec = DeviceSpec { workers: 2, express: true, ..device(0) };
    let mut b = Bench::with(Limits { lookahead: Some(2), ..limits() }, vec![spec]);
    b.accept(NewJob { partitions: 4, ..job(1, 1) });
    for _ in 0..3 {
        let order = b.synth().unwrap();
        b.synth_done(order);
    }
    assert!(b.prove(0).is_some() && b.prove(0).is_some());
    assert_eq!(b.prove(0), None, "two workers are busy");
    let critical = b.accept(at(Priority::Critical, job(2, 1)));
    let order = b.synth().unwrap();
    assert_eq!(order.0, critical);
    b.synth_done(order);
    let order = b.prove(0).expect("a place of its own");
    assert!(order.urgent && order.run.job == critical);
    assert_eq!(b.prove(0), None);
}

#[test]
fn devices_take_only_the_circuits_they_are_for() {
    let only = |n, circuit| DeviceSpec { circuits: Some(BTreeSet::from([circuit])), workers: 1, ..device(n) };
    let mut b = Bench::with(limits(), vec![only(0, CIRCUIT), only(1, OTHER)]);
    b.core.request_params(OTHER, 10, b.now);
    b.core.handle_params_loaded(OTHER, Ok(size(10)), b.now);
    b.accept(NewJob { partitions: 5, ..job(1, 1) });
    let second = b.accept(NewJob { params_bytes: 10, ..other(2) });
    let mut ready = Vec::new();
    while let Some(order) = b.synth() {
        ready.push(order);
        b.synth_done(order);
    }
    assert_eq!(
        ready,
        [(JobKey(1), 0), (JobKey(1), 1), (second, 0)],
        "the queue of one device does not fill the other's"
    );
    assert_eq!(b.prove(1).unwrap().run.job, second);
    assert_eq!(b.prove(1), None);

    let mut b = Bench::with(limits(), vec![only(0, CIRCUIT)]);
    let refused = b.submit(other(1), Interest::Detached).unwrap_err();
    assert!(matches!(refused, Refused::NoDevice { circuit: OTHER, .. }), "{refused}");
}

#[test]
fn a_fallback_stands_in_only_for_the_sick_and_for_those_that_failed() {
    let mut b = Bench::with(limits(), vec![device(0), DeviceSpec { fallback: true, ..device(1) }]);
    let key = b.accept(NewJob { partitions: 2, ..job(1, 1) });
    for _ in 0..2 {
        let order = b.synth().unwrap();
        b.synth_done(order);
    }
    assert_eq!(b.prove(1), None);
    let failing = b.prove(0).unwrap();
    b.proved(failing, 0, Err(ProofFailure::Device("no memory".into())));
    let again = b.synth().unwrap();
    b.synth_done(again);
    assert_eq!(b.prove(1).map(|order| order.run.partition), Some(0), "the other device has failed on this one");
    assert_eq!(b.prove(1), None, "but not on that one");
    let sick = b.prove(0).unwrap();
    b.proved(sick, 0, Err(ProofFailure::Sick("gone".into())));
    let order = b.synth().unwrap();
    b.synth_done(order);
    assert_eq!(b.prove(1).map(|order| order.run.partition), Some(1));
    assert!(b.core.is_unfinished(key));
}

#[test]
fn two_critical_jobs_of_two_circuits_do_not_wait_for_each_other() {
    let mut b = crowded();
    let first = b.accept(at(Priority::Critical, other(1)));
    let second = b.accept(at(Priority::Critical, this(2)));
    assert_eq!(b.synth(), None);
    assert_eq!(b.core.take_effects(), [Effect::DropParams(CIRCUIT)], "though the second could use them");
    b.core.handle_params_dropped(CIRCUIT);
    assert_eq!(b.synth(), None);
    b.core.handle_params_loaded(OTHER, Ok(size(8 * MIB)), b.now);
    let order = b.synth().unwrap();
    assert_eq!(order.0, first);
    b.synth_done(order);
    assert!(b.core.is_unfinished(second));
}
