//! The benches of `src/rooms` in criterion, peers included: `cargo bench -p cuzk-benches -- FILTER`. Nothing is compared with
//! a baseline here; `cargo run --release -p cuzk-benches -- compare` does that.

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use cuzk_benches::rooms::{self, Tier};

fn all(c: &mut Criterion) {
    // Criterion filters only after a bench is set up, and some take long: what does not match is not set up.
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let wanted = |id: &str| filter.as_ref().is_none_or(|filter| id.contains(filter.as_str()));
    for operation in rooms::all() {
        let peers =
            ["arkworks", "bellperson", "blst", "filecoin-proofs", "memory"].map(|peer| operation.bench_id(peer));
        if operation.tier == Tier::Counted || !operation.ours().chain(peers).any(|id| wanted(&id)) {
            continue;
        }
        for mut candidate in operation.prepare(true).expect("results are right") {
            c.bench_function(&operation.bench_id(&candidate.implementation), |bencher| {
                bencher.iter_custom(|iterations| (0..iterations).map(|_| candidate.run()).sum());
            });
        }
    }
}

criterion_group! {
    name = benches;
    // Few samples: the longest take seconds each.
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(2));
    targets = all
}
criterion_main!(benches);
