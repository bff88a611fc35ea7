//! Points and scalars, more than a host could make from random ones.

use blstrs::{G1Affine, G1Projective, Scalar};
use ff::Field;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::{
    arith::{Backend, G1, Table},
    cuda::{Args, CudaError, DeviceBuffer, Grid, Stream, msm::checks::multiples},
};

/// Points of the fine table, by which the device makes as many as are wanted.
const FINE: usize = 1 << 16;

/// Points on the device, made from few: number i is fine[i mod 2^16] + coarse[i div 2^16].
pub(super) struct Points {
    fine: Vec<G1Affine>,
    coarse: Vec<G1Affine>,
    pub(super) device: DeviceBuffer<u8>,
}

impl Points {
    pub(super) fn new(stream: &Stream, rng: &mut ChaCha8Rng, n: usize, tables: usize) -> Result<Self, CudaError> {
        let gpu = stream.gpu();
        let (fine, coarse) = (multiples(rng, FINE), multiples(rng, n.div_ceil(FINE)));
        let device = DeviceBuffer::new(gpu, n * tables * 96, "a bench's points")?;
        let upload = |points: &[G1Affine]| {
            // SAFETY: affine points of blst are their coordinates and nothing else.
            let bytes = unsafe { std::slice::from_raw_parts(points.as_ptr().cast::<u8>(), size_of_val(points)) };
            DeviceBuffer::from_host(stream, bytes, "a bench's points")
        };
        let (fine_bytes, coarse_bytes) = (upload(&fine)?, upload(&coarse)?);
        let args = Args::new().slice(device.all()).value(n as u32).slice(fine_bytes.all()).slice(coarse_bytes.all());
        // SAFETY: `n` points have room, and their numbers stay inside of both tables.
        unsafe { gpu.function("msm_sums", "msm_fill_g1")?.launch(stream, Grid::cover(n, 128), &args)? };
        stream.wait()?;
        Ok(Self { fine, coarse, device })
    }

    /// The sum of scalars times points, from sums of scalars.
    pub(super) fn expected(&self, n: usize, scalar: impl Fn(usize) -> Scalar + Sync) -> G1Projective {
        let chunk = |c: usize| {
            let mut fine = vec![Scalar::ZERO; FINE];
            let mut coarse = Scalar::ZERO;
            for i in c * FINE..n.min((c + 1) * FINE) {
                let s = scalar(i);
                fine[i % FINE] += s;
                coarse += s;
            }
            (fine, vec![(c, coarse)])
        };
        let join = |(mut a, mut list): (Vec<Scalar>, Vec<(usize, Scalar)>), (b, more): (Vec<Scalar>, Vec<_>)| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            list.extend(more);
            (a, list)
        };
        let none = || (vec![Scalar::ZERO; FINE], Vec::new());
        let (mut scalars, coarse) = (0..n.div_ceil(FINE)).into_par_iter().map(chunk).reduce(none, join);
        let points: Vec<G1Affine> =
            self.fine.iter().copied().chain(coarse.iter().map(|(c, _)| self.coarse[*c])).collect();
        scalars.extend(coarse.iter().map(|(_, s)| *s));
        let indices: Vec<u32> = (0..scalars.len() as u32).collect();
        Table::<G1>::with_backend(Backend::current(), &points).msm_indexed(&indices, &scalars)
    }
}

/// Random full scalars, on the host and on the device.
pub(super) struct Scalars {
    pub(super) host: Vec<[u64; 4]>,
    pub(super) device: DeviceBuffer<[u64; 4]>,
}

impl Scalars {
    pub(super) fn new(stream: &Stream, rng: &mut ChaCha8Rng, n: usize) -> Result<Self, CudaError> {
        let seed = rng.r#gen();
        let mut host = vec![[0; 4]; n];
        host.par_chunks_mut(FINE).enumerate().for_each(|(i, chunk)| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(i as u64);
            // Below r: its top word begins with 0x73ed.
            let mut below_r = || [rng.r#gen(), rng.r#gen(), rng.r#gen(), rng.gen_range(0..0x73ed_0000_0000_0000)];
            chunk.iter_mut().for_each(|s| *s = below_r());
        });
        let device = DeviceBuffer::from_host(stream, &host, "a bench's scalars")?;
        Ok(Self { host, device })
    }

    /// Scalar number i.
    pub(super) fn get(&self, i: usize) -> Scalar {
        Scalar::from_u64s_le(&self.host[i]).unwrap_or(Scalar::ZERO)
    }
}
