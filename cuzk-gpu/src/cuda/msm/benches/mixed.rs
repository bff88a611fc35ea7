//! Compact witnesses.

use std::cmp::Ordering;

use blstrs::Scalar;
use ff::Field;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{
    chosen,
    inputs::{self, Points},
    measure, request,
};
use crate::{
    arith::G1,
    cuda::{
        Arena, CudaError, DeviceBuffer, Gpu, Layout, Stream,
        harness::Measurement,
        msm::{Msm, Query, Size, Witness},
    },
};

/// 130 million bits, half of them ones, and no other values.
pub(super) fn bits(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Result<Vec<Measurement>, String> {
    let n = 130_000_000 / 64 * 64;
    let mut run = || {
        let stream = Stream::new(gpu)?;
        let points = Points::new(&stream, rng, n, 1)?;
        let words: Vec<u32> = (0..n / 32).map(|_| rng.r#gen()).collect();
        let ones = DeviceBuffer::from_host(&stream, &words, "a bench's bits")?;
        let none = DeviceBuffer::from_host(&stream, &vec![0u32; n / 32], "a bench's bits")?;
        let expected = points.expected(n, |i| Scalar::from(u64::from(words[i / 32] >> (i % 32) & 1)));
        let plan = chosen(request(gpu, vec![Size { points: n, scalars: 0, bits: n }]))?;
        let mut layout = Layout::new();
        let mut msm = Msm::<G1>::new(&stream, plan, &mut layout)?;
        let arena = Arena::new(gpu, &layout, "a bench's workspace")?;
        let nothing = none.all().range(..0)?;
        let witness = Witness { ones: ones.all(), full: none.all(), values: nothing, first_value: 0, montgomery: true };
        let query = Query { first: 0, len: n, inputs: nothing, mask: None };
        Ok::<_, CudaError>(measure(&mut msm, "msm bits g1", ("130 M, half ones", n), Some(19e-3), expected, |msm| {
            msm.mixed(&stream, &arena, points.device.all(), &[query], witness)
        }))
    };
    run().map_err(|e| e.to_string())?
}

/// The three queries of a proof over one witness of a PoRep's density: 1.3 of a hundred values are full, half of the rest
/// are ones; l has points for all variables, a for most, b for a quarter. Their points overlap, which no sum notices.
pub(super) fn mixed(gpu: &Gpu, rng: &mut ChaCha8Rng, size: &str, n: usize) -> Result<Vec<Measurement>, String> {
    let mut run = || {
        let stream = Stream::new(gpu)?;
        let points = Points::new(&stream, rng, n, 1)?;
        let words = n.div_ceil(64) * 2;
        let inside = |i: usize| match i.cmp(&(n / 32)) {
            Ordering::Less => u32::MAX,
            Ordering::Equal => (1 << (n % 32)) - 1,
            Ordering::Greater => 0,
        };
        let mut full = vec![0u32; words];
        (0..n / 77).for_each(|_| {
            let i = rng.gen_range(0..n);
            full[i / 32] |= 1 << (i % 32);
        });
        let ones: Vec<u32> = (0..words).map(|i| rng.r#gen::<u32>() & !full[i] & inside(i)).collect();
        let dense: Vec<u32> = (0..words).map(|i| (rng.r#gen::<u32>() | rng.r#gen::<u32>()) & inside(i)).collect();
        let sparse: Vec<u32> = (0..words).map(|i| rng.r#gen::<u32>() & rng.r#gen::<u32>() & inside(i)).collect();
        let count = |mask: &[u32]| mask.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let bit = |mask: &[u32], i: usize| mask[i / 32] >> (i % 32) & 1 == 1;
        let drawn = inputs::Scalars::new(&stream, rng, count(&full))?;
        let mut next = 0..drawn.host.len();
        let all: Vec<Scalar> = (0..n)
            .map(|i| match bit(&full, i) {
                true => next.next().map_or(Scalar::ZERO, |i| drawn.get(i)),
                false => Scalar::from(u64::from(bit(&ones, i))),
            })
            .collect();
        let mut expected = vec![points.expected(n, |i| all[i])];
        for mask in [&dense, &sparse] {
            let kept: Vec<Scalar> = (0..n).filter(|i| bit(mask, *i)).map(|i| all[i]).collect();
            expected.push(points.expected(kept.len(), |i| kept[i]));
        }
        let upload = |words: &[u32]| DeviceBuffer::from_host(&stream, words, "a bench's bitmap");
        let (ones, full, dense_on, sparse_on) = (upload(&ones)?, upload(&full)?, upload(&dense)?, upload(&sparse)?);
        let lens = [n, count(&dense), count(&sparse)];
        let sizes = lens.map(|points| Size { points, scalars: drawn.host.len(), bits: n });
        let plan = chosen(request(gpu, sizes.to_vec()))?;
        let shape = format!("{size}, {}/1", plan.windows.count());
        let mut layout = Layout::new();
        let mut msm = Msm::<G1>::new(&stream, plan, &mut layout)?;
        let arena = Arena::new(gpu, &layout, "a bench's workspace")?;
        let masks = [None, Some(dense_on.all()), Some(sparse_on.all())];
        let nothing = full.all().range(..0)?;
        let queries = [0, 1, 2].map(|i| Query { first: 0, len: lens[i], inputs: nothing, mask: masks[i] });
        let values = drawn.device.all().cast()?;
        let witness = Witness { ones: ones.all(), full: full.all(), values, first_value: 0, montgomery: false };
        msm.mixed(&stream, &arena, points.device.all(), &queries, witness)?;
        if msm.sums()? != expected {
            return Ok(Err(format!("{shape}: a wrong sum")));
        }
        let name = "msm mixed g1: l, a, b";
        Ok::<_, CudaError>(measure(&mut msm, name, (&shape, lens.iter().sum()), None, expected[0], |msm| {
            msm.mixed(&stream, &arena, points.device.all(), &queries, witness)
        }))
    };
    run().map_err(|e| e.to_string())?
}
