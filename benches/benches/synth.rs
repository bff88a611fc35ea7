//! From a C1 output to the prover's input, for 2 KiB: checks, witness, row values, each beside the plain synthesis that
//! bellperson's prover does.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use cuzk_synth::{
    circuit::{CircuitId, SectorSize},
    porep::{self, PorepTask},
    r1cs::Check,
    sample,
};

fn synth(c: &mut Criterion) {
    let sample = &sample::ALL[0];
    let check = || PorepTask::check(sample.c1, &sample.claims).expect("a good sample");
    let task = check();
    let r1cs = porep::record(CircuitId::porep(SectorSize::Kib2)).expect("a built circuit").expect("it can be recorded");
    let (witness, plain) = (task.witness(0).expect("values"), task.assignment(0).expect("values"));
    assert!(task.is_native(), "the native witness is not that of the circuit");
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

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(3));
    targets = synth
}
criterion_main!(benches);
