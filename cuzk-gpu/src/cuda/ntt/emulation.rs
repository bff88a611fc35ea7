//! The transforms' kernels, compiled for the host and run there thread by thread, with the plan's passes.

use blstrs::Scalar;
use ff::Field;
use libloading::{Library, Symbol};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{
    Points,
    checks::{random, transform},
    plan::{self, Pass, padded_len},
    table::{TableShape, bases, low_bits},
};
use crate::cuda::{
    emulation::{function, with_library, with_two_levels},
    fr::{Element, from_plain, plain},
};

/// Sixteen bytes, with the alignment that kernels read with.
#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Part([u32; 4]);

type MakeTable = unsafe extern "C" fn(*mut Part, *const Part, *const Part, u32, u32, u32);
type RunPass = unsafe extern "C" fn(*mut Part, *const Part, *const Pass, u32);

fn split(elements: &[Element]) -> Vec<Part> {
    elements.iter().flat_map(|e| [Part([e[0], e[1], e[2], e[3]]), Part([e[4], e[5], e[6], e[7]])]).collect()
}

fn join(parts: &[Part]) -> Vec<Scalar> {
    let element = |p: &[Part]| std::array::from_fn(|i| p[i / 4].0[i % 4]);
    parts.chunks_exact(2).map(|p| from_plain(element(p)).expect("canonical")).collect()
}

#[test]
fn kernels_transform_on_the_host() {
    with_library(|library| transform_every_size(library, TableShape::whole(13)));
}

#[test]
fn kernels_transform_with_two_levels_on_the_host() {
    with_two_levels(|library| {
        for log_direct in [5, 9, 12] {
            transform_every_size(library, TableShape::two_levels(13, log_direct));
        }
    });
}

fn transform_every_size(library: &'static Library, shape: TableShape) {
    // SAFETY: these are the types of the functions in host_grid.cpp.
    let (make_table, forward, inverse): (Symbol<MakeTable>, Symbol<RunPass>, Symbol<RunPass>) = unsafe {
        (function(library, "grid_table"), function(library, "grid_forward"), function(library, "grid_inverse"))
    };
    let mut table = vec![Part([0xdbdb_dbdb; 4]); shape.parts()];
    let [low, high] = bases(shape.log_n()).map(|base| split(&base));
    // SAFETY: the bases are those that belong to the number of bits, and the table has all parts.
    unsafe {
        let low_bits = low_bits(shape.log_n());
        make_table(table.as_mut_ptr(), low.as_ptr(), high.as_ptr(), low_bits, shape.log_n(), shape.log_direct());
    }

    let seed = rand::thread_rng().r#gen();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for log_n in 0..=shape.log_n() {
        for points in [Points::Domain, Points::Coset] {
            let x: Vec<Scalar> = (0..1 << log_n).map(|_| random(&mut rng)).collect();
            let mut elements = vec![[0xdbdb_dbdb; 8]; padded_len(log_n)];
            elements.iter_mut().zip(&x).for_each(|(element, value)| *element = plain(value));
            let mut data = split(&elements);
            let mut run = |kernel: &RunPass, mut passes: Vec<Pass>| {
                if let Some(last) = passes.last_mut() {
                    last.canonical = 1;
                }
                for pass in &passes {
                    // SAFETY: the vector is padded, the table is for more points, and the pass is of the plan.
                    unsafe { kernel(data.as_mut_ptr(), table.as_ptr(), pass, plan::blocks(log_n)) };
                }
                join(&data[..2 << log_n])
            };
            let coset = points == Points::Coset;
            let values = run(&forward, plan::forward(log_n, coset, shape));
            assert!(values == transform(&x, points), "2^{log_n}, forward, {points:?}, {shape:?}, seed {seed}");
            let back = run(&inverse, plan::inverse(log_n, coset, shape));
            let n = Scalar::from(2).pow_vartime([log_n.into()]);
            assert!(
                back.iter().zip(&x).all(|(back, x)| *back == x * n),
                "2^{log_n}, inverse, {points:?}, {shape:?}, seed {seed}"
            );
        }
    }
}
