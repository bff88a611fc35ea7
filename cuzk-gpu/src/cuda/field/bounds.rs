//! The worst case of F - S in the hybrid forms (`kernels/hybrid.cuh`): every operation of a product on intervals, in the
//! kernels' order. A column's double may be off by less than 2^31, else a split finds another integer than the sum, and
//! the result is wrong. Numbers here are unscaled; the kernels' scaling by powers of two changes no rounding.

/// A field's limbs.
#[derive(Clone, Copy)]
struct Shape {
    bits: i32,
    /// p and M = 2^-bits mod p in limbs, as in the header (see the tests of the constants).
    p: &'static [i64],
    m: &'static [i64],
    /// The top limb of a product is below 2^top, that of an unreduced number of memory's form below 2^top_unpacked.
    top: i32,
    top_unpacked: i32,
}

const FQ: Shape = Shape {
    bits: 39,
    p: &[
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
    ],
    m: &[
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
    ],
    top: 32,
    top_unpacked: 37,
};

const FR: Shape = Shape {
    bits: 38,
    p: &super::fr_limbs::R,
    m: &[68853694464, -2097126, -102525703407, 13494121123, 79668882111, 46274137526, -1899370],
    top: 32,
    top_unpacked: 37,
};

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

    /// What carries on into the next column: S = carry 2^bits + digit, for which F 2^-bits stands.
    fn carried(self, bits: i32) -> (f64, f64) {
        ((self.size + digit(bits)) / 2f64.powi(bits), 0.5 + self.error / 2f64.powi(bits))
    }
}

/// The largest digit.
fn digit(bits: i32) -> f64 {
    2f64.powi(bits - 1)
}

/// Magnitudes of an operand's limbs.
type Limbs = Vec<f64>;

impl Shape {
    /// Normalised: a product's result.
    fn normal(self) -> Limbs {
        self.with_top(self.top)
    }

    /// Normalised, with the unreduced number of memory's form, or a sum of it and a packed number.
    fn unpacked(self) -> Limbs {
        self.with_top(self.top_unpacked)
    }

    /// Of hybrid_half_normalise: what it leaves of limbs below 2^(bits + 5).
    fn half_normal(self) -> Limbs {
        self.normal().iter().map(|limb| limb + 32.0).collect()
    }

    /// a ± b, not normalised.
    fn difference(self) -> Limbs {
        self.normal().iter().map(|limb| 2.0 * limb).collect()
    }

    fn with_top(self, bits: i32) -> Limbs {
        let mut limbs = vec![digit(self.bits); self.p.len() - 1];
        limbs.push(2f64.powi(bits));
        limbs
    }
}

fn magnitudes(limbs: &[i64]) -> Limbs {
    limbs.iter().map(|limb| limb.unsigned_abs() as f64).collect()
}

/// In which order the terms come.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// All rows of the products, then all eliminations: hybrid_columns_mul, hybrid_columns_mul2.
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
fn worst(shape: Shape, order: Order, terms: &Terms<'_>, addends: &[Limbs]) -> f64 {
    let (limbs, count) = (shape.p.len(), 2 * shape.p.len() - 1);
    let accumulators = match terms {
        Terms::Products { operands, apart: true } => operands.len(),
        _ => 1,
    };
    let mut columns = vec![vec![Column::default(); count]; accumulators];
    let mut worst = 0f64;
    let add_row = |columns: &mut Vec<Vec<Column>>, i: usize| match terms {
        Terms::Products { operands, apart } => {
            for (number, (a, b)) in operands.iter().enumerate() {
                let accumulator = &mut columns[if *apart { number } else { 0 }];
                for (j, a) in a.iter().enumerate() {
                    accumulator[i + j] = accumulator[i + j].plus(a * b[i], 0.0);
                }
            }
        }
        Terms::Square(a) => {
            let i = limbs - 1 - i; // from the last row to the first, as the kernels do
            for j in i..limbs {
                let twice = if j > i { 2.0 } else { 1.0 };
                columns[0][i + j] = columns[0][i + j].plus(twice * a[i] * a[j], 0.0);
            }
        }
    };
    // What of the others' doubles is added to the first's before a split.
    let gather = |columns: &mut Vec<Vec<Column>>, k: usize| {
        for other in 1..columns.len() {
            let Column { size, error } = columns[other][k];
            columns[0][k] = columns[0][k].plus(size, error);
        }
    };
    let add_constant = |columns: &mut Vec<Vec<Column>>, k: usize, constant: &[f64]| {
        for (j, limb) in constant.iter().enumerate() {
            columns[0][k + j] = columns[0][k + j].plus(digit(shape.bits) * limb, 0.0);
        }
    };
    if order == Order::Separated {
        (0..limbs).for_each(|i| add_row(&mut columns, i));
    }
    for i in 0..limbs {
        if order == Order::Rows {
            add_row(&mut columns, i);
        }
        gather(&mut columns, i);
        worst = worst.max(columns[0][i].split());
        if i < limbs - 1 {
            let (size, error) = columns[0][i].carried(shape.bits);
            columns[0][i + 1] = columns[0][i + 1].plus(size, error);
            add_constant(&mut columns, i + 1, &magnitudes(shape.m));
        } else {
            let p = magnitudes(shape.p);
            let (size, error) = columns[0][i].plus(digit(shape.bits) * p[0], 0.0).carried(shape.bits);
            columns[0][i + 1] = columns[0][i + 1].plus(size, error);
            add_constant(&mut columns, i + 1, &p[1..]);
        }
    }
    for k in limbs..count {
        gather(&mut columns, k);
        for addend in addends {
            columns[0][k] = columns[0][k].plus(addend[k - limbs], 0.0);
        }
        if k > limbs {
            let (size, error) = columns[0][k - 1].carried(shape.bits);
            columns[0][k] = columns[0][k].plus(size, error);
        }
        worst = worst.max(columns[0][k].split());
    }
    worst
}

impl Shape {
    /// What is added to a result before it is split: a few elements, and up to 2^11 p, that of an unreduced number. Each
    /// addition is rounded.
    fn addends(self) -> Vec<Limbs> {
        let mut addends = vec![self.normal(); 4];
        addends.push(magnitudes(self.p).iter().map(|limb| 2048.0 * limb).collect());
        addends
    }

    fn product(self, order: Order, a: Limbs, b: Limbs, addends: &[Limbs]) -> f64 {
        worst(self, order, &Terms::Products { operands: &[(a, b)], apart: false }, addends)
    }

    fn square(self, a: Limbs, addends: &[Limbs]) -> f64 {
        worst(self, Order::Separated, &Terms::Square(a), addends)
    }

    /// Nothing is added to those.
    fn two(self, order: Order, operands: [(Limbs, Limbs); 2], apart: bool) -> f64 {
        worst(self, order, &Terms::Products { operands: &operands, apart }, &[])
    }
}

#[test]
fn the_shapes_that_kernels_use_are_safe() {
    use Order::{Rows, Separated};
    let (normal, unpacked, half, difference) = (FQ.normal(), FQ.unpacked(), FQ.half_normal(), FQ.difference());
    let normal = || normal.clone();
    let pair = || (normal(), normal());
    let shapes = [
        ("product", FQ.product(Separated, normal(), normal(), &FQ.addends())),
        ("product of an unpacked", FQ.product(Separated, unpacked.clone(), normal(), &FQ.addends())),
        ("product by an unpacked", FQ.product(Separated, normal(), unpacked, &FQ.addends())),
        ("square", FQ.square(normal(), &FQ.addends())),
        ("two products", FQ.two(Separated, [(half.clone(), normal()), pair()], true)),
        (
            "two products, the second's factor half normalised",
            FQ.two(Separated, [pair(), (normal(), half.clone())], true),
        ),
        ("Fq2 product", FQ.two(Rows, [pair(), pair()], true)),
        ("Fq2 square, sum by difference", FQ.product(Rows, half, difference.clone(), &[])),
        ("Fq2 square, one part by twice the other", FQ.product(Rows, normal(), difference, &[])),
        ("Fr product", FR.product(Separated, FR.normal(), FR.normal(), &FR.addends())),
        ("Fr product of an unpacked", FR.product(Separated, FR.unpacked(), FR.normal(), &FR.addends())),
        ("Fr product of two differences", FR.product(Separated, FR.difference(), FR.difference(), &FR.addends())),
        ("Fr square", FR.square(FR.normal(), &FR.addends())),
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
    let (normal, difference) = (FQ.normal(), FQ.difference());
    let pair = || (normal.clone(), normal.clone());
    let wide: Limbs = FR.normal().iter().map(|limb| 5.0 * limb).collect();
    let shapes = [
        (
            "product of a difference, with addends",
            FQ.product(Separated, difference.clone(), normal.clone(), &FQ.addends()),
        ),
        ("two differences", FQ.product(Rows, difference.clone(), difference.clone(), &[])),
        ("square of a difference", FQ.square(difference.clone(), &[])),
        ("two products in one double", FQ.two(Rows, [pair(), pair()], false)),
        ("two products, one of a difference", FQ.two(Separated, [(difference, normal.clone()), pair()], true)),
        ("Fr product of two sums of five", FR.product(Separated, wide.clone(), wide, &[])),
    ];
    for (name, bound) in shapes {
        println!("{name}: {bound:.2}");
        assert!(bound > 1.0, "{name}: {bound:.3}");
    }
}

/// The limbs of a header's table.
fn table(header: &str, name: &str) -> Vec<i64> {
    let rest =
        header.split_once(&format!("{name}[F")).and_then(|(_, rest)| rest.split_once("] = {")).expect("a table").1;
    let body = rest.split_once('}').expect("an end").0;
    body.split(',').map(|n| n.trim().trim_end_matches("* 0x1p-16").trim().parse().expect("a limb")).collect()
}

/// The limbs here are those of the header, and stand for p and for 2^-39.
#[test]
fn constants_of_fq() {
    use super::reference::{Field, from_number};
    let header = include_str!("../../../kernels/fq_hybrid.cuh");
    let value = |limbs: &[i64]| {
        let small = |x: u64| from_number([x, 0, 0, 0, 0, 0]);
        limbs.iter().rev().fold(small(0), |sum, limb| {
            let magnitude = small(limb.unsigned_abs());
            sum.mul(small(1 << 39)).add(if *limb < 0 { magnitude.neg() } else { magnitude })
        })
    };
    assert!(value(FQ.p).is_zero());
    assert_eq!(value(FQ.m).mul(from_number([1 << 39, 0, 0, 0, 0, 0])), from_number([1, 0, 0, 0, 0, 0]));
    assert_eq!(table(header, "FQH_P"), FQ.p);
    assert_eq!(table(header, "FQH_M"), FQ.m);
}

/// The same for r and 2^-38.
#[test]
fn constants_of_fr() {
    use super::{fr_limbs::value, limbs::to_words};
    use blstrs::Scalar;
    use ff::Field;
    let header = include_str!("../../../kernels/fr_hybrid.cuh");
    let limbs = |limbs: &[i64]| to_words::<7>(limbs.try_into().expect("seven limbs"));
    assert_eq!(value(&limbs(FR.p)), Scalar::ZERO);
    assert_eq!(value(&limbs(FR.m)) * Scalar::from(1 << 38), Scalar::ONE);
    assert_eq!(table(header, "FRH_P"), FR.p);
    assert_eq!(table(header, "FRH_M"), FR.m);
}
