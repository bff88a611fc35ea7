//! The quotient in both backends: against schoolbook polynomial arithmetic, and against the usual seven transforms.

use blstrs::Scalar;
use ff::{Field, PrimeField};
use rand::{SeedableRng, rngs::StdRng};

use crate::arith::backend::Backend;
use crate::arith::fr_vec::{FrVec, quotient_h};

fn root(log_n: u32) -> Scalar {
    (log_n..Scalar::S).fold(Scalar::ROOT_OF_UNITY, |w, _| w.square())
}

fn random(n: usize, rng: &mut StdRng) -> Vec<Scalar> {
    (0..n).map(|_| Scalar::random(&mut *rng)).collect()
}

/// In-place radix-2 transform in natural order, with bit reversal first: nothing in common with the code under test.
fn transform(x: &mut [Scalar], w: Scalar) {
    let n = x.len();
    let log_n = n.trailing_zeros();
    for i in 0..n {
        let j = i.reverse_bits() >> (usize::BITS - log_n);
        if i < j {
            x.swap(i, j);
        }
    }
    for s in 1..=log_n {
        let (m, step) = (1 << s, (s..log_n).fold(w, |w, _| w.square()));
        for block in x.chunks_mut(m) {
            let (low, high) = block.split_at_mut(m / 2);
            let mut factor = Scalar::ONE;
            for (a, b) in low.iter_mut().zip(high) {
                let t = *b * factor;
                (*a, *b) = (*a + t, *a - t);
                factor *= step;
            }
        }
    }
}

fn interpolate(x: &mut [Scalar]) {
    transform(x, root(x.len().trailing_zeros()).invert().unwrap());
    let n = Scalar::from(x.len() as u64).invert().unwrap();
    x.iter_mut().for_each(|x| *x *= n);
}

fn scale(x: &mut [Scalar], g: Scalar) {
    let mut power = Scalar::ONE;
    for x in x {
        *x *= power;
        power *= g;
    }
}

/// H by transforms of a, b and c to the coset and one back.
fn seven_transforms(a: &[Scalar], b: &[Scalar]) -> Vec<Scalar> {
    let n = a.len();
    let g = Scalar::MULTIPLICATIVE_GENERATOR;
    let c: Vec<Scalar> = a.iter().zip(b).map(|(a, b)| a * b).collect();
    let [a, b, c] = [a, b, &c].map(|x| {
        let mut x = x.to_vec();
        interpolate(&mut x);
        scale(&mut x, g);
        transform(&mut x, root(n.trailing_zeros()));
        x
    });
    let z = (g.pow_vartime([n as u64]) - Scalar::ONE).invert().unwrap();
    let mut h: Vec<Scalar> = (0..n).map(|i| (a[i] * b[i] - c[i]) * z).collect();
    interpolate(&mut h);
    scale(&mut h, g.invert().unwrap());
    assert_eq!(h.pop(), Some(Scalar::ZERO));
    h
}

fn quotient(backend: Backend, a: &[Scalar], b: &[Scalar], log_n: u32) -> Vec<Scalar> {
    quotient_h(FrVec::with_backend(backend, a, log_n), FrVec::with_backend(backend, b, log_n), None)
}

#[test]
fn equals_schoolbook_division() {
    let mut rng = StdRng::seed_from_u64(6);
    for log_n in 1..=8 {
        let n = 1usize << log_n;
        let (a, b) = (random(n, &mut rng), random(n, &mut rng));
        let [pa, pb] = [&a, &b].map(|x| {
            let mut x = x.clone();
            interpolate(&mut x);
            x
        });
        let mut product = vec![Scalar::ZERO; 2 * n];
        for (i, x) in pa.iter().enumerate() {
            for (j, y) in pb.iter().enumerate() {
                product[i + j] += x * y;
            }
        }
        // A B = L + X^n H, and C = L + H: the quotient is the upper half.
        for backend in Backend::available() {
            assert!(quotient(backend, &a, &b, log_n) == product[n..2 * n - 1], "{backend:?}, 2^{log_n}");
        }
    }
}

#[test]
fn equals_seven_transforms() {
    let mut rng = StdRng::seed_from_u64(7);
    for log_n in [7, 8, 9, 10, 11, 12, 13, 14, 16, 17] {
        let n = 1usize << log_n;
        let (mut a, mut b) = (random(n, &mut rng), random(n - n / 3, &mut rng));
        for i in 0..n / 8 {
            a[3 * i] = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE][i % 3];
            b[5 * i] = [-Scalar::ONE, Scalar::ONE, Scalar::ZERO, Scalar::from(i as u64)][i % 4];
        }
        let padded: Vec<Scalar> = b.iter().copied().chain(std::iter::repeat(Scalar::ZERO)).take(n).collect();
        let expected = seven_transforms(&a, &padded);
        for backend in Backend::available() {
            assert!(quotient(backend, &a, &b, log_n) == expected, "{backend:?}, 2^{log_n}");
        }
    }
}

#[test]
fn c_may_be_given() {
    let mut rng = StdRng::seed_from_u64(8);
    let (a, b) = (random(1 << 9, &mut rng), random(1 << 9, &mut rng));
    let c: Vec<Scalar> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
    for backend in Backend::available() {
        let [va, vb, vc] = [&a, &b, &c].map(|x| FrVec::with_backend(backend, x, 9));
        assert!(quotient_h(va, vb, Some(vc)) == quotient(backend, &a, &b, 9));
    }
}

#[test]
fn conversion_and_back() {
    let mut rng = StdRng::seed_from_u64(9);
    let mut scalars = random(301, &mut rng);
    scalars[1] = Scalar::ZERO;
    scalars[2] = -Scalar::ONE;
    for backend in Backend::available() {
        let back = FrVec::with_backend(backend, &scalars, 9).to_scalars();
        assert_eq!(back[..301], scalars);
        assert!(back[301..].iter().all(|s| *s == Scalar::ZERO));
    }
}

#[test]
fn interpolation_is_the_plain_inverse_transform_in_reversed_order() {
    let mut rng = StdRng::seed_from_u64(11);
    for backend in Backend::available() {
        for log_n in [1, 2, 7, 9, 13] {
            let mut values = random(1 << log_n, &mut rng);
            let found = FrVec::with_backend(backend, &values, log_n).interpolate().to_scalars();
            interpolate(&mut values);
            let n = Scalar::from(1 << log_n);
            let place = |k: usize| k.reverse_bits() >> (usize::BITS - log_n);
            assert!((0..1 << log_n).all(|k| found[place(k)] == values[k] * n), "{backend:?}, 2^{log_n}");
        }
    }
}
