//! What fails, and what is done about it: attempts, sick devices, stalls.

use super::{
    Effect, Interest, Limits, NewJob, ProofFailure, Refused, SynthesisFailure,
    job::JobStatus,
    tests::{Bench, CIRCUIT, job, limits, secs},
};

fn three() -> Limits {
    Limits { attempts: 3, ..limits() }
}

impl Bench {
    /// Synthesizes the next partition and proves it on a device, with this result.
    fn try_next(&mut self, device: usize, result: Result<u8, ProofFailure>) -> Option<Vec<u8>> {
        let order = self.synth().expect("a partition waits");
        assert!(self.synth_done(order));
        let proof = self.prove(device).expect("a partition is ready");
        self.proved(proof, device, result)
    }
}

#[test]
fn only_the_bad_partition_is_tried_again_and_elsewhere() {
    let mut b = Bench::new(three(), 2);
    let key = b.accept(NewJob { partitions: 2, ..job(1, 1) });
    for _ in 0..2 {
        let order = b.synth().unwrap();
        b.synth_done(order);
    }
    let (bad, good) = (b.prove(0).unwrap(), b.prove(1).unwrap());
    b.proved(good, 1, Ok(1));
    assert_eq!(b.proved(bad, 0, Err(ProofFailure::BadProof)), None);
    let retried = |e: &Effect| matches!(e, Effect::Retried { partition: Some(0), .. });
    assert!(b.core.take_effects().iter().any(retried));
    assert_eq!(b.synth(), Some((key, 0)), "only the bad one");
    b.synth_done((key, 0));
    assert_eq!(b.prove(0), None, "not where it went wrong");
    let again = b.prove(1).unwrap();
    assert_eq!((again.run.partition, again.run.attempt), (0, 1));
    b.proved(again, 1, Err(ProofFailure::Device("out of memory".into())));
    // Every device has failed on it now, so any may try.
    b.try_next(0, Err(ProofFailure::Panic("the prover panicked: index".into())));
    assert_eq!(
        b.outcome(key).error,
        "partition 0 of 2: attempt 1: device gpu-0: the proof does not verify; \
         attempt 2: device gpu-1: out of memory; attempt 3: device gpu-0: the prover panicked: index"
    );
    assert_eq!((b.outcome(key).status, b.core.ledger().used()), (JobStatus::Failed, 0));
}

#[test]
fn a_lone_device_tries_again_itself() {
    let mut b = Bench::new(limits(), 1);
    let key = b.accept(job(1, 1));
    b.try_next(0, Err(ProofFailure::Device("out of memory".into())));
    b.finish_all(9);
    assert_eq!(b.outcome(key).proof[..], [9; 192]);
}

#[test]
fn what_no_device_can_prove_is_not_tried_again() {
    let mut b = Bench::new(three(), 2);
    let key = b.accept(job(1, 1));
    b.try_next(0, Err(ProofFailure::Input("constraint 7".into())));
    assert_eq!(b.outcome(key).error, "partition 0 of 1: device gpu-0: constraint 7");
}

#[test]
fn a_synthesis_that_panics_is_tried_again() {
    let mut b = Bench::new(limits(), 1);
    let key = b.accept(job(1, 1));
    let run = b.core.poll_synthesis(b.now).unwrap();
    assert!(!b.core.handle_synthesized(run, Err(SynthesisFailure::Panic("index".into())), secs(1), b.now));
    assert_eq!(b.core.ledger().used(), 0);
    b.finish_all(2);
    assert_eq!(b.outcome(key).proof[..], [2; 192]);
}

#[test]
fn a_wrong_whole_is_proven_again_and_never_returned() {
    let mut b = Bench::new(limits(), 1);
    let key = b.accept(NewJob { partitions: 2, ..job(1, 1) });
    for attempt in 1..=2 {
        b.try_next(0, Ok(1));
        let whole = b.try_next(0, Ok(1)).expect("that was the last partition");
        assert!(b.core.is_unfinished(key), "attempt {attempt}");
        b.core.handle_whole_verified(key, whole, Err("it does not verify".into()), b.now);
    }
    let outcome = b.outcome(key);
    assert_eq!((outcome.status, outcome.proof.len()), (JobStatus::Failed, 0));
    assert!(outcome.error.ends_with("it does not verify (2 attempts)"), "{}", outcome.error);
}

#[test]
fn a_sick_device_gets_no_work_until_it_is_revived() {
    let mut b = Bench::new(three(), 2);
    let key = b.accept(NewJob { partitions: 2, ..job(1, 1) });
    b.try_next(0, Err(ProofFailure::Sick("context lost".into())));
    assert_eq!(b.core.fence_of(0).map(|f| f.reason.as_str()), Some("context lost"));
    assert!(b.core.status(b.now).fenced[0].contains("device gpu-0 gets no work since 0 s: context lost"));
    for _ in 0..2 {
        let order = b.synth().unwrap();
        b.synth_done(order);
    }
    assert_eq!(b.prove(0), None);
    b.core.take_effects();
    b.pass(secs(2));
    assert_eq!(b.core.take_effects(), [Effect::Revive(0)]);
    b.core.handle_revived(0, Err("no answer".into()), b.now);
    b.pass(secs(3));
    assert_eq!(b.core.take_effects(), [], "the pause doubles");
    b.pass(secs(1));
    assert_eq!(b.core.take_effects(), [Effect::Revive(0)]);
    b.core.handle_revived(0, Ok(()), b.now);
    assert_eq!(b.core.take_effects(), [Effect::Revived { device: 0, out_for: secs(6) }]);
    let again = b.prove(0).expect("well again, and not the device that failed on this partition");
    assert_eq!(again.run.partition, 1);
    assert!(b.core.is_unfinished(key));
}

#[test]
fn two_bad_proofs_in_a_row_make_a_device_sick() {
    let mut b = Bench::new(Limits { attempts: 9, ..limits() }, 1);
    b.accept(NewJob { partitions: 4, ..job(1, 1) });
    b.try_next(0, Err(ProofFailure::BadProof));
    b.try_next(0, Ok(1));
    b.try_next(0, Err(ProofFailure::BadProof));
    assert_eq!(b.core.fence_of(0), None, "one may be a flipped bit");
    b.try_next(0, Err(ProofFailure::BadProof));
    assert_eq!(b.core.fence_of(0).map(|f| f.reason.as_str()), Some("its proofs do not verify"));
}

#[test]
fn with_no_device_left_jobs_are_refused_and_those_that_wait_end_some_day() {
    let mut b = Bench::new(three(), 1);
    let key = b.accept(job(1, 1));
    b.try_next(0, Err(ProofFailure::Sick("gone".into())));
    let refused = b.submit(job(2, 1), Interest::Detached).unwrap_err();
    assert_eq!(refused, Refused::NoDevice { circuit: CIRCUIT, reason: "device gpu-0: gone".into() });
    assert_eq!(b.synth(), None, "nothing is synthesized for nobody");
    b.pass(secs(299));
    assert!(b.core.is_unfinished(key));
    b.pass(secs(1));
    assert_eq!(b.outcome(key).error, "no device for porep-2k: device gpu-0: gone");
}

#[test]
fn a_stalled_prover_is_not_waited_for() {
    let mut b = Bench::new(Limits { stage_limit: secs(100), ..limits() }, 2);
    let key = b.accept(job(1, 1));
    let order = b.synth().unwrap();
    b.synth_done(order);
    // Any time in the hand-over is no stall: the devices may be busy.
    b.pass(secs(400));
    let stuck = b.prove(1).unwrap();
    b.pass(secs(99));
    assert_eq!(b.core.fence_of(1), None);
    b.pass(secs(1));
    let status = b.core.status(b.now);
    assert_eq!(status.stalled, ["device gpu-1 has not answered for 100 s (partition 0)"]);
    assert!(b.core.fence_of(1).is_some());
    let order = b.synth().expect("another attempt");
    b.synth_done(order);
    let again = b.prove(0).unwrap();
    assert_eq!(b.core.ledger().iter().count(), 2, "the stuck one still holds its memory");
    b.pass(secs(10));
    let stalls = b.core.take_effects().into_iter().filter(|e| matches!(e, Effect::Stalled { .. }));
    assert_eq!(stalls.count(), 1, "said once");
    // What the stuck one brings in the end is dropped, and its memory is free.
    assert_eq!(b.proved(stuck, 1, Ok(7)), None);
    assert!(b.core.status(b.now).stalled.is_empty());
    let whole = b.proved(again, 0, Ok(1)).expect("the only partition");
    assert_eq!(whole[..], [1; 192]);
    assert!(b.core.is_unfinished(key));
}

#[test]
fn a_stalled_verification_is_no_fault_of_the_device() {
    let mut b = Bench::new(Limits { stage_limit: secs(100), ..limits() }, 1);
    b.accept(job(1, 1));
    let order = b.synth().unwrap();
    b.synth_done(order);
    let stuck = b.prove(0).unwrap();
    b.pass(secs(60));
    b.core.handle_made(stuck, 0, b.now);
    assert_eq!((b.core.ledger().used(), b.core.ledger().on_device(0)), (0, 0), "the device is free");
    b.pass(secs(99));
    assert!(b.core.status(b.now).stalled.is_empty(), "its time begins with the verification");
    b.pass(secs(1));
    assert_eq!(b.core.status(b.now).stalled, ["a verification thread has not answered for 100 s (partition 0)"]);
    assert_eq!(b.core.fence_of(0), None);
    let order = b.synth().expect("another attempt");
    b.synth_done(order);
    let again = b.prove(0).expect("the same device");
    assert_eq!(b.proved(stuck, 0, Ok(7)), None, "too late");
    let whole = b.proved(again, 0, Ok(1)).expect("the only partition");
    assert_eq!(whole[..], [1; 192]);
}
