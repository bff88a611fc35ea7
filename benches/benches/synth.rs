//! From a C1 output to the prover's input, for 2 KiB: checks, witness, row values, each beside the plain synthesis that
//! bellperson's prover does. For 32 GiB: what its submission costs.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use cuzk_synth::{
    c1::{envelope, model},
    circuit::{CircuitId, SectorSize},
    phantom::PhantomSector,
    porep::{self, PorepTask},
    r1cs::Check,
    registered::{SealProof, Variant},
    sample,
};

fn synth(c: &mut Criterion) {
    let sample = &sample::ALL[0];
    let check = || PorepTask::check(sample.c1, &sample.claims).expect("a good sample");
    let task = check();
    let r1cs = porep::record(CircuitId::porep(SectorSize::Kib2)).expect("a built circuit").expect("it can be recorded");
    let (witness, plain) = (task.witness(0).expect("values"), task.assignment(0).expect("values"));
    assert_eq!(porep::is_native(task.circuit()), Ok(true), "the native witness is not that of the circuit");
    assert!(witness.to_plain() == plain.aux, "the witness is wrong");
    assert!(r1cs.multiply(&r1cs.a, &witness) == plain.a, "A·w is wrong");

    c.bench_function("c1_check/cuzk/2KiB", |bencher| bencher.iter(|| black_box(check())));
    c.bench_function("witness/cuzk/2KiB", |bencher| bencher.iter(|| black_box(task.witness(0))));
    c.bench_function("witness_by_gadgets/cuzk/2KiB", |bencher| {
        bencher.iter(|| black_box(task.witness_by_gadgets(0)));
    });
    c.bench_function("rows_a/cuzk/2KiB", |bencher| bencher.iter(|| black_box(r1cs.multiply(&r1cs.a, &witness))));
    c.bench_function("rows_b/cuzk/2KiB", |bencher| bencher.iter(|| black_box(r1cs.multiply(&r1cs.b, &witness))));
    for check in [Check::Sampled, Check::Full] {
        c.bench_function(&format!("satisfied_{check:?}/cuzk/2KiB"), |bencher| {
            bencher.iter(|| assert_eq!(r1cs.first_unsatisfied(&witness, check), None));
        });
    }
    // Witness and the rows of A, B and C in one, on one core: what all of the above replace.
    c.bench_function("witness/bellperson/2KiB", |bencher| bencher.iter(|| black_box(task.assignment(0))));
}

/// The C1 output of 32 GiB, which is that of a sector that does not exist: made, read, read and checked.
fn submission(c: &mut Criterion) {
    let seal = SealProof::new(SectorSize::Gib32, Variant::V1_1);
    let sector = PhantomSector { seal, miner_id: 1000, sector_number: 1, seed: "bench" };
    let make = || {
        let mut payload = Vec::new();
        let c1 = sector.c1_output().expect("interactive challenges are known beforehand");
        envelope::wrap(&mut payload, &c1, sector.sector_number, seal.size.bytes()).expect("memory takes it");
        payload
    };
    let payload = make();
    c.bench_function("c1_made_up/cuzk/32GiB", |bencher| bencher.iter(|| black_box(make())));
    c.bench_function("c1_read/cuzk/32GiB", |bencher| {
        bencher.iter(|| {
            let unwrapped = envelope::unwrap(&payload).expect("an envelope");
            black_box(model::parse(&unwrapped.json).expect("a C1 output"))
        });
    });
    c.bench_function("c1_check/cuzk/32GiB", |bencher| {
        bencher.iter(|| black_box(PorepTask::check(&payload, &sector.claims()).expect("it is consistent")));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(3));
    targets = synth, submission
}
criterion_main!(benches);
