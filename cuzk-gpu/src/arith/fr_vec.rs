//! Vectors of scalars in the form of a backend, and the quotient polynomial.

use blstrs::Scalar;
use rayon::prelude::*;

use crate::arith::backend::Backend;
use crate::arith::ifma::Fr;
use crate::arith::ifma::ntt::MIN_LOG_N;
use crate::arith::memory::{huge_filled, huge_vec};
use crate::arith::{ifma, portable};

/// 2^log_n elements of Fr, in natural order.
pub struct FrVec {
    log_n: u32,
    form: Form,
}

enum Form {
    /// Vector v holds elements 8 v .. 8 v + 8, normalised and below 8r.
    Ifma(Vec<Fr>),
    Portable(Vec<Scalar>),
}

impl FrVec {
    /// A vector in the form of [`Backend::current`]: the scalars, and zeros up to 2^log_n.
    pub fn new(scalars: &[Scalar], log_n: u32) -> Self {
        Self::with_backend(Backend::current(), scalars, log_n)
    }

    /// A vector in the form of `backend`; in the portable form where the machine lacks the instructions, and for sizes
    /// below 2^7. In parallel, about 4 ns per element and thread.
    pub fn with_backend(backend: Backend, scalars: &[Scalar], log_n: u32) -> Self {
        assert!(scalars.len() <= 1 << log_n, "{} scalars for 2^{log_n} places", scalars.len());
        Self::from_fn(backend, log_n, |first, values| {
            let rest = scalars.get(first..).unwrap_or(&[]);
            let count = rest.len().min(values.len());
            values[..count].copy_from_slice(&rest[..count]);
            values[count..].fill(Scalar::default());
        })
    }

    /// As [`FrVec::with_backend`], of values that `fill` writes: element `first` and those after it. It is called for
    /// chunks of a few thousand elements, in parallel, so that the values are converted while they are in the cache and
    /// no other copy of the vector ever exists.
    pub fn from_fn(backend: Backend, log_n: u32, fill: impl Fn(usize, &mut [Scalar]) + Sync) -> Self {
        let form = match backend.checked() {
            // SAFETY: `checked` saw the instructions. So it was for every vector of this form, in what follows.
            Backend::Ifma if log_n >= MIN_LOG_N => Form::Ifma(unsafe { load(log_n, fill) }),
            _ => {
                let mut values = huge_filled(1 << log_n, Scalar::default());
                values.par_chunks_mut(8 * CHUNK).enumerate().for_each(|(i, values)| fill(8 * CHUNK * i, values));
                Form::Portable(values)
            }
        };
        Self { log_n, form }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        1 << self.log_n
    }

    /// Never: there is at least one element.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Which backend this vector is for.
    pub fn backend(&self) -> Backend {
        match self.form {
            Form::Ifma(_) => Backend::Ifma,
            Form::Portable(_) => Backend::Portable,
        }
    }

    /// n times the coefficients of the polynomial that has these values on the domain of the n-th roots of unity, in
    /// bit-reversed order: one of the six transforms of [`quotient_h`], as it is made there.
    pub fn interpolate(mut self) -> Self {
        match &mut self.form {
            // SAFETY: the vector exists, so the instructions do.
            Form::Ifma(values) => unsafe {
                ifma::ntt::passes::natural_to_reversed(values, &ifma::ntt::twiddles::Twiddles::shared(self.log_n));
            },
            Form::Portable(values) => portable::quotient::interpolate(values),
        }
        self
    }

    /// The elements as scalars.
    pub fn to_scalars(&self) -> Vec<Scalar> {
        match &self.form {
            // SAFETY: the vector exists, so the instructions do.
            Form::Ifma(vectors) => unsafe { store(vectors) },
            Form::Portable(scalars) => scalars.clone(),
        }
    }
}

/// The n - 1 coefficients of H = (A B - C) / (X^n - 1), in natural order, where A, B and C have degree below n and these
/// values on the domain of the n-th roots of unity (natural order). Without `c`, C is taken to be the interpolation of the
/// pointwise product a b, as it is for a satisfied system; with another `c` there is no such polynomial.
///
/// Six transforms, see [`ifma::ntt::quotient`]. All arguments have the same size and form. n >= 2.
pub fn quotient_h(a: FrVec, b: FrVec, c: Option<FrVec>) -> Vec<Scalar> {
    let log_n = a.log_n;
    assert!(
        log_n >= 1 && b.log_n == log_n && c.as_ref().is_none_or(|c| c.log_n == log_n),
        "sizes are equal, at least 2"
    );
    let mut h = match (a.form, b.form, c.map(|c| c.form)) {
        // SAFETY: the vectors exist, so the instructions do.
        (Form::Ifma(a), Form::Ifma(b), None) => unsafe { ifma::ntt::quotient::quotient_h(a, b, None) },
        // SAFETY: as above.
        (Form::Ifma(a), Form::Ifma(b), Some(Form::Ifma(c))) => unsafe {
            ifma::ntt::quotient::quotient_h(a, b, Some(c))
        },
        (Form::Portable(a), Form::Portable(b), None) => portable::quotient::quotient_h(a, b, None),
        (Form::Portable(a), Form::Portable(b), Some(Form::Portable(c))) => {
            portable::quotient::quotient_h(a, b, Some(c))
        }
        _ => panic!("vectors of different backends"),
    };
    h.truncate((1 << log_n) - 1);
    h
}

/// Vectors per task.
const CHUNK: usize = 1 << 9;

unsafe fn load(log_n: u32, fill: impl Fn(usize, &mut [Scalar]) + Sync) -> Vec<Fr> {
    let n = 1usize << (log_n - 3);
    let mut vectors: Vec<Fr> = huge_vec(n);
    let scratch = || vec![Scalar::default(); 8 * CHUNK.min(n)];
    vectors.spare_capacity_mut()[..n].par_chunks_mut(CHUNK).enumerate().for_each_init(
        scratch,
        |scratch, (i, places)| {
            let values = &mut scratch[..8 * places.len()];
            fill(8 * CHUNK * i, values);
            for (eight, place) in values.chunks_exact(8).zip(places) {
                // SAFETY: the caller vouches for the features; eight scalars, which are transparent over blst's.
                unsafe { Fr::from_blst_to(eight.as_ptr().cast(), place.as_mut_ptr()) };
            }
        },
    );
    // SAFETY: every place was written just now.
    unsafe { vectors.set_len(n) };
    vectors
}

unsafe fn store(vectors: &[Fr]) -> Vec<Scalar> {
    let n = 8 * vectors.len();
    let mut scalars: Vec<Scalar> = huge_vec(n);
    scalars.spare_capacity_mut()[..n].par_chunks_mut(8 * CHUNK).zip(vectors.par_chunks(CHUNK)).for_each(
        |(to, from)| {
            for (to, from) in to.chunks_exact_mut(8).zip(from) {
                // SAFETY: the caller vouches for the features; eight places, transparent over blst's.
                unsafe { Fr::to_blst_from(from, to.as_mut_ptr().cast()) };
            }
        },
    );
    // SAFETY: every place was written just now.
    unsafe { scalars.set_len(n) };
    scalars
}
