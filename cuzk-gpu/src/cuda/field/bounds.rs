//! The worst case of F - S in the hybrid form (`kernels/fq_hybrid.cuh`): every operation of a product on intervals, in the
//! kernels' order. A column's double may be off by less than 2^31, else a split finds another integer than the sum, and
//! the result is wrong. Numbers here are unscaled; the kernels' scaling by powers of two changes no rounding.

const LIMBS: usize = 10;
const COLUMNS: usize = 2 * LIMBS - 1;
const DIGIT: f64 = (1u64 << 38) as f64;

/// p and M = 2^-39 mod p in limbs, as in the header (see the test of the constants).
const P: [i64; LIMBS] = [
    -21845,
    -9175552,
    206158087504,
    229909799157,
    -41019430385,
    -66061295016,
    -89290891821,
    59388928422,
    246958955083,
    872555476,
];
const M: [i64; LIMBS] = [
    154747013120,
    67379591199,
    -86334727040,
    -245224433186,
    -186982857910,
    250740039427,
    -190652481256,
    267872615262,
    -18799078427,
    -20450831,
];

/// A column: the largest magnitude of its sum so far, and of the error of the double that stands for it.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    size: f64,
    error: f64,
}

/// Half a unit in the last place of the largest double of this magnitude.
fn rounding(size: f64) -> f64 {
    if size == 0.0 { 0.0 } else { (size.log2().floor() - 53.0).exp2() }
}

impl Column {
    /// After a multiply-add of a term, or an addition, and its rounding.
    fn plus(self, size: f64, error: f64) -> Self {
        let size = self.size + size;
        let error = self.error + error;
        Self { size, error: error + rounding(size + error) }
    }

    /// The error that a split meets, in units of what it can bear. It subtracts 2^52 + L first, which is rounded.
    fn split(self) -> f64 {
        assert!(self.size < 2f64.powi(82), "the quotient must fit the mantissa");
        (self.error + rounding(self.size + self.error + 2f64.powi(53))) / 2f64.powi(31)
    }

    /// What carries on into the next column: S = carry 2^39 + digit, for which F 2^-39 stands.
    fn carried(self) -> (f64, f64) {
        ((self.size + DIGIT) / 2f64.powi(39), 0.5 + self.error / 2f64.powi(39))
    }
}

/// Magnitudes of an operand's limbs.
type Limbs = [f64; LIMBS];

/// Normalised: a product's result, whose top limb is below 2^32.
fn normal() -> Limbs {
    with_top(32)
}

/// Normalised, with the unreduced 64 x of 48 bytes of memory, or a sum of it and a packed number.
fn unpacked() -> Limbs {
    with_top(37)
}

/// Of fqh_half_normalise: what it leaves of limbs below 2^44.
fn half_normal() -> Limbs {
    normal().map(|limb| limb + 32.0)
}

fn with_top(bits: i32) -> Limbs {
    std::array::from_fn(|i| if i < LIMBS - 1 { DIGIT } else { 2f64.powi(bits) })
}

/// a ± b, not normalised.
fn sum(a: Limbs, b: Limbs) -> Limbs {
    std::array::from_fn(|i| a[i] + b[i])
}

fn magnitudes(limbs: [i64; LIMBS]) -> Limbs {
    limbs.map(|limb| limb.unsigned_abs() as f64)
}

/// In which order the terms come.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// All rows of the products, then all eliminations: fqh_columns_mul, fqh_columns_mul2.
    Separated,
    /// A row of each product, then an elimination: fqh2_columns_mul.
    Rows,
}

/// What is multiplied.
enum Terms<'a> {
    /// Products that share a reduction: each adds to doubles of its own, added up when a column is split, or all to the
    /// first's.
    Products { operands: &'a [(Limbs, Limbs)], apart: bool },
    /// A square, each product of different limbs once, doubled.
    Square(Limbs),
}

/// The largest error that any split meets, over what it can bear: below 1, or the shape is not safe. `addends` are added
/// to the upper columns before they are split.
fn worst(order: Order, terms: &Terms<'_>, addends: &[Limbs]) -> f64 {
    let accumulators = match terms {
        Terms::Products { operands, apart: true } => operands.len(),
        _ => 1,
    };
    let mut columns = vec![[Column::default(); COLUMNS]; accumulators];
    let mut worst = 0f64;
    let add_row = |columns: &mut Vec<[Column; COLUMNS]>, i: usize| match terms {
        Terms::Products { operands, apart } => {
            for (number, (a, b)) in operands.iter().enumerate() {
                let accumulator = &mut columns[if *apart { number } else { 0 }];
                for (j, a) in a.iter().enumerate() {
                    accumulator[i + j] = accumulator[i + j].plus(a * b[i], 0.0);
                }
            }
        }
        Terms::Square(a) => {
            let i = LIMBS - 1 - i; // from the last row to the first, as the kernels do
            for j in i..LIMBS {
                let twice = if j > i { 2.0 } else { 1.0 };
                columns[0][i + j] = columns[0][i + j].plus(twice * a[i] * a[j], 0.0);
            }
        }
    };
    // What of the others' doubles is added to the first's before a split.
    let gather = |columns: &mut Vec<[Column; COLUMNS]>, k: usize| {
        for other in 1..columns.len() {
            let Column { size, error } = columns[other][k];
            columns[0][k] = columns[0][k].plus(size, error);
        }
    };
    let add_constant = |columns: &mut Vec<[Column; COLUMNS]>, k: usize, constant: &[f64]| {
        for (j, limb) in constant.iter().enumerate() {
            columns[0][k + j] = columns[0][k + j].plus(DIGIT * limb, 0.0);
        }
    };
    if order == Order::Separated {
        (0..LIMBS).for_each(|i| add_row(&mut columns, i));
    }
    for i in 0..LIMBS {
        if order == Order::Rows {
            add_row(&mut columns, i);
        }
        gather(&mut columns, i);
        worst = worst.max(columns[0][i].split());
        if i < LIMBS - 1 {
            let (size, error) = columns[0][i].carried();
            columns[0][i + 1] = columns[0][i + 1].plus(size, error);
            add_constant(&mut columns, i + 1, &magnitudes(M));
        } else {
            let p = magnitudes(P);
            let (size, error) = columns[0][i].plus(DIGIT * p[0], 0.0).carried();
            columns[0][i + 1] = columns[0][i + 1].plus(size, error);
            add_constant(&mut columns, i + 1, &p[1..]);
        }
    }
    for k in LIMBS..COLUMNS {
        gather(&mut columns, k);
        for addend in addends {
            columns[0][k] = columns[0][k].plus(addend[k - LIMBS], 0.0);
        }
        if k > LIMBS {
            let (size, error) = columns[0][k - 1].carried();
            columns[0][k] = columns[0][k].plus(size, error);
        }
        worst = worst.max(columns[0][k].split());
    }
    worst
}

/// What is added to a result before it is split: a few elements, and up to 128 p. Each addition is rounded.
fn addends() -> [Limbs; 5] {
    let [a, b, c, d] = [normal(); 4];
    [a, b, c, d, magnitudes(P).map(|limb| 128.0 * limb)]
}

fn product(order: Order, a: Limbs, b: Limbs, addends: &[Limbs]) -> f64 {
    worst(order, &Terms::Products { operands: &[(a, b)], apart: false }, addends)
}

/// Nothing is added to those.
fn two(order: Order, operands: [(Limbs, Limbs); 2], apart: bool) -> f64 {
    worst(order, &Terms::Products { operands: &operands, apart }, &[])
}

#[test]
fn the_shapes_that_kernels_use_are_safe() {
    use Order::{Rows, Separated};
    let difference = sum(normal(), normal());
    let pair = (normal(), normal());
    let shapes = [
        ("product", product(Separated, normal(), normal(), &addends())),
        ("product of an unpacked", product(Separated, unpacked(), normal(), &addends())),
        ("product by an unpacked", product(Separated, normal(), unpacked(), &addends())),
        ("square", worst(Separated, &Terms::Square(normal()), &addends())),
        ("two products", two(Separated, [(half_normal(), normal()), pair], true)),
        ("two products, the second's factor half normalised", two(Separated, [pair, (normal(), half_normal())], true)),
        ("Fq2 product", two(Rows, [pair, pair], true)),
        ("Fq2 square, sum by difference", product(Rows, half_normal(), difference, &[])),
        ("Fq2 square, one part by twice the other", product(Rows, normal(), difference, &[])),
    ];
    for (name, bound) in shapes {
        println!("{name}: {bound:.2}");
        assert!(bound < 1.0, "{name}: {bound:.3}");
    }
}

/// Were these below 1 as well, the computation above would be too kind.
#[test]
fn the_shapes_that_kernels_avoid_are_not() {
    use Order::{Rows, Separated};
    let difference = sum(normal(), normal());
    let pair = (normal(), normal());
    let shapes = [
        ("product of a difference, with addends", product(Separated, difference, normal(), &addends())),
        ("two differences", product(Rows, difference, difference, &[])),
        ("square of a difference", worst(Separated, &Terms::Square(difference), &[])),
        ("two products in one double", two(Rows, [pair, pair], false)),
        ("two products, one of a difference", two(Separated, [(difference, normal()), pair], true)),
    ];
    for (name, bound) in shapes {
        println!("{name}: {bound:.2}");
        assert!(bound > 1.0, "{name}: {bound:.3}");
    }
}

/// The limbs here are those of the header, and stand for p and for 2^-39.
#[test]
fn constants() {
    use super::reference::{Field, from_number};
    let header = include_str!("../../../kernels/fq_hybrid.cuh");
    let value = |limbs: [i64; LIMBS]| {
        let small = |x: u64| from_number([x, 0, 0, 0, 0, 0]);
        limbs.iter().rev().fold(small(0), |sum, limb| {
            let magnitude = small(limb.unsigned_abs());
            sum.mul(small(1 << 39)).add(if *limb < 0 { magnitude.neg() } else { magnitude })
        })
    };
    assert!(value(P).is_zero());
    assert_eq!(value(M).mul(from_number([1 << 39, 0, 0, 0, 0, 0])), from_number([1, 0, 0, 0, 0, 0]));
    let numbers = |text: &str| -> Vec<i64> {
        let body = text.split_once('{').and_then(|(_, rest)| rest.split_once('}')).expect("a list").0;
        body.split(',').map(|n| n.trim().trim_end_matches("* FQH_SCALE").trim().parse().expect("a limb")).collect()
    };
    let after = |mark: &str| header.split_once(mark).expect("the header has it").1;
    assert_eq!(numbers(after("FQH_P[FQH_LIMBS] =")), P);
    assert_eq!(numbers(after("FQH_M[FQH_LIMBS] =")), M);
}
