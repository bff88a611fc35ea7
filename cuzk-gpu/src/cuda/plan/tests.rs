//! Plans for the cards and circuits that there are, and properties of all plans.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{BG2, Card, Config, Matrices, MemoryPlan, NoPlan, Room, Rows, Shape};
use crate::cuda::kernels::Arch;

const GIB: usize = 1 << 30;

/// A partition of a 32 GiB PoRep.
fn porep_32g() -> Shape {
    shape(328, 130_169_893, 130_278_869, [309_000_000, 130_000_000], 2_466, 33_100_000)
}

/// A 2 KiB PoRep.
fn porep_2k() -> Shape {
    shape(40, 2_685_673, 2_687_961, [6_420_000, 2_690_000], 2_466, 685_521)
}

fn shape(inputs: usize, aux: usize, rows: usize, entries: [usize; 2], coefficients: usize, b_points: usize) -> Shape {
    Shape {
        inputs,
        aux,
        rows,
        log_n: rows.next_power_of_two().trailing_zeros(),
        entries,
        coefficients,
        // Nearly every variable occurs in A.
        a_points: inputs + aux,
        b_points,
        room: Room::for_bits(inputs + aux, rows),
    }
}

/// Cards by what their drivers call their memory, in MiB.
fn cards() -> [(&'static str, Card); 6] {
    let card = |mib: usize, major, minor, sms| Card { memory: mib << 20, arch: Arch::new(major, minor), sms };
    [
        ("12 GB (RTX 4070)", card(12_282, 8, 9, 46)),
        ("16 GB (RTX 5070 Ti)", card(16_303, 12, 0, 70)),
        ("24 GB (RTX 4090)", card(24_564, 8, 9, 128)),
        ("48 GB (L40S)", card(46_068, 8, 9, 142)),
        ("80 GB (H100)", card(81_559, 9, 0, 132)),
        ("141 GB (H200)", card(143_771, 9, 0, 132)),
    ]
}

fn config() -> Config {
    Config {
        vram_limit: None,
        reserve: GIB / 2,
        workers: 2,
        b_g2: BG2::Cpu,
        rows: Rows::Matrices,
        pinned_limit: 96 * GIB,
    }
}

fn holds(plan: &MemoryPlan) {
    assert!(plan.device_bytes() <= plan.limit, "{plan}");
    assert!(plan.pinned_bytes() <= plan.config.pinned_limit, "{plan}");
    for vector in plan.vectors() {
        assert!(vector.resident <= vector.points);
        assert!(vector.tables == 1 || vector.is_resident(), "{plan}");
        // What is streamed comes in two parts at least, though a query with few points may have all of them in one.
        let items = if vector.name == "h" { vector.points } else { plan.shape.aux };
        assert!(vector.is_resident() || vector.part < items, "{plan}");
    }
}

fn choose(shape: &Shape, card: &Card, config: &Config) -> MemoryPlan {
    let plan = MemoryPlan::choose(shape, card, config).unwrap_or_else(|error| panic!("{card:?}: {error}"));
    holds(&plan);
    plan
}

fn resident(plan: &MemoryPlan) -> Vec<&'static str> {
    plan.vectors().filter(|vector| vector.is_resident()).map(|vector| vector.name).collect()
}

/// What stays of a 32 GiB PoRep on each card, and what is streamed.
#[test]
fn cards_prove_32_gib() {
    let streamed = [35..45, 30..45, 20..40, 3..20, 0..1, 0..1];
    for ((name, card), streamed) in cards().into_iter().zip(streamed) {
        let plan = choose(&porep_32g(), &card, &config());
        assert!(streamed.contains(&(plan.pinned_bytes() / GIB)), "{name}: {plan}");
        let all = resident(&plan) == ["h", "l", "a", "b_g1"] && plan.matrices == Matrices::Resident;
        assert_eq!(all, streamed.end == 1, "{name}: {plan}");
        // All that there is, but for less than a part of h, where there is too little.
        let spare = GIB.max(plan.h.most * plan.h.point_bytes);
        assert!(all || plan.limit - plan.device_bytes() < spare, "{name}: {plan}");
        // A whole table of factors takes 8 GiB.
        assert!(plan.limit > 16 * GIB || plan.table.bytes() < 3 * GIB, "{name}: {plan}");
    }
    let small = Card { memory: 8 * GIB, ..cards()[0].1 };
    let refused = MemoryPlan::choose(&porep_32g(), &small, &config());
    assert!(matches!(refused, Err(NoPlan::Device { log_n: 27, needed, limit, .. }) if needed > limit), "{refused:?}");
}

#[test]
fn every_card_keeps_all_of_2_kib() {
    for (name, card) in cards() {
        for rows in [Rows::Matrices, Rows::Planes] {
            let plan = choose(&porep_2k(), &card, &Config { rows, b_g2: BG2::Gpu, ..config() });
            assert_eq!(resident(&plan), ["h", "l", "a", "b_g1", "b_g2"], "{name}: {plan}");
            assert!(plan.h.tables > 1 && plan.device_bytes() < 8 * GIB, "{name}: {plan}");
        }
    }
}

#[test]
fn rows_that_come_with_the_witness_need_no_matrices() {
    for (name, card) in cards() {
        let [with, without] =
            [Rows::Matrices, Rows::Planes].map(|rows| choose(&porep_32g(), &card, &Config { rows, ..config() }));
        assert_eq!(without.matrices, Matrices::Absent, "{name}");
        assert!(without.seconds < with.seconds, "{name}: {without}");
        let of = |plan: &MemoryPlan, what: &str| {
            let line = plan.lines.iter().find(|line| line.what.starts_with(what)).expect("every plan has this line");
            (line.device, line.pinned)
        };
        assert_eq!(of(&without, "matrices"), (0, 0), "{name}: {without}");
        // 2 x 150 MB of planes for each of two workers.
        assert!(of(&without, "witnesses").1 > of(&with, "witnesses").1 + GIB / 2, "{name}: {without}");
    }
}

#[test]
fn a_limit_makes_a_big_card_small() {
    let (_, big) = cards()[5];
    let limited = Config { vram_limit: Some(24_564 << 20), ..config() };
    let plan = choose(&porep_32g(), &big, &limited);
    assert!(plan.device_bytes() <= (24_564 << 20) - config().reserve);
    let error = MemoryPlan::choose(&porep_32g(), &big, &Config { vram_limit: Some(8 * GIB), ..config() });
    let text = error.expect_err("the vectors alone take 8 GiB").to_string();
    assert!(text.contains("7.50 GiB may be used ([gpus] vram_limit, less the reserve of 512.0 MiB)"), "{text}");
}

#[test]
fn host_memory_is_a_limit_too() {
    // Half of the points do not fit this card.
    let error = MemoryPlan::choose(&porep_32g(), &cards()[2].1, &Config { pinned_limit: GIB, ..config() });
    let Err(NoPlan::Pinned { needed, pinned_limit, .. }) = error else { panic!("{error:?}") };
    assert!(needed > pinned_limit);
}

#[test]
fn b_g2_goes_where_it_was_told() {
    let on_device = |card: usize, b_g2| choose(&porep_32g(), &cards()[card].1, &Config { b_g2, ..config() }).b_g2;
    assert_eq!(on_device(5, BG2::Cpu), None);
    assert!(on_device(5, BG2::Gpu).is_some_and(|vector| vector.is_resident()));
    assert!(on_device(5, BG2::Auto).is_some_and(|vector| vector.is_resident()));
    assert!(on_device(3, BG2::Gpu).is_some());
    assert_eq!(on_device(3, BG2::Auto), None, "it would take room from points of h");
}

/// Post-conditions of all plans, and that more memory is never slower.
#[test]
fn more_memory_is_never_slower() {
    let seed = rand::random();
    println!("seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    for _ in 0..12 {
        let log_rows = rng.gen_range(2..28);
        let rows = rng.gen_range(2..1usize << log_rows);
        let aux = rng.gen_range(1..=rows);
        let inputs = rng.gen_range(1..=aux.min(400));
        let b_points = rng.gen_range(0..=aux);
        let entries = [rng.gen_range(aux..4 * rows), rng.gen_range(0..2 * rows)];
        let shape = shape(inputs, aux, rows, entries, 10, b_points);
        let config = Config {
            vram_limit: rng.r#gen::<bool>().then(|| rng.gen_range(0..96) * GIB),
            reserve: rng.gen_range(0..GIB),
            workers: rng.gen_range(1..4),
            b_g2: [BG2::Cpu, BG2::Gpu, BG2::Auto][rng.gen_range(0..3)],
            rows: [Rows::Matrices, Rows::Planes][rng.gen_range(0..2)],
            pinned_limit: rng.gen_range(0..128) * GIB,
        };
        let mut sizes: Vec<usize> = (0..8).map(|_| rng.gen_range(0..96 * GIB) >> rng.gen_range(0..6)).collect();
        sizes.sort_unstable();
        let mut before = f64::INFINITY;
        for memory in sizes {
            let card = Card { memory, ..cards()[5].1 };
            match MemoryPlan::choose(&shape, &card, &config) {
                Ok(plan) => {
                    holds(&plan);
                    assert!(plan.seconds <= before, "{shape:?} {config:?}: {before} s with less memory than {plan}");
                    before = plan.seconds;
                }
                Err(error) => assert_eq!(before, f64::INFINITY, "{shape:?} {config:?}: {error}"),
            }
        }
    }
}

#[test]
fn the_table_adds_up() {
    let plan = choose(&porep_32g(), &cards()[2].1, &config());
    let text = plan.to_string();
    for line in &plan.lines {
        assert!(text.contains(&line.what), "{text}");
    }
    let points: usize = plan.vectors().map(|vector| vector.device_bytes()).sum();
    let lines: usize = plan.lines.iter().filter(|l| l.what.starts_with("points")).map(|l| l.device).sum();
    assert_eq!(points, lines);
}
