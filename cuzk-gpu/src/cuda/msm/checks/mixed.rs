//! Compact witnesses: ones and full scalars, one query and several.

use blstrs::Scalar;
use cuzk_synth::bitmap::Bitmap;
use ff::Field;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use super::{Outcome, bytes, expected, random_points, request, words};
use crate::{
    arith::G1,
    cuda::{
        Arena, CudaError, DeviceBuffer, Gpu, Layout, Stream,
        msm::{DeviceCurve, Msm, Plan, Query, Request, Size, Witness},
    },
};

/// Values, and the queries over them.
struct Case<C: DeviceCurve> {
    inputs: Vec<Scalar>,
    values: Vec<Scalar>,
    queries: Vec<CaseQuery<C>>,
}

struct CaseQuery<C: DeviceCurve> {
    points: Vec<C::Affine>,
    /// Numbers of the public inputs.
    inputs: Vec<u32>,
    mask: Option<Vec<bool>>,
}

impl<C: DeviceCurve> CaseQuery<C> {
    /// How many of these variables it has points for.
    fn variables(&self, begin: usize, end: usize) -> usize {
        self.mask.as_ref().map_or(end - begin, |mask| mask[begin..end].iter().filter(|m| **m).count())
    }
}

fn is_full(value: &Scalar) -> bool {
    *value != Scalar::ZERO && *value != Scalar::ONE
}

impl<C: DeviceCurve> Case<C> {
    /// `zeros` and `ones` of ten values are zeros and ones.
    fn new(rng: &mut ChaCha8Rng, variables: usize, zeros: u32, ones: u32) -> Self {
        let values = (0..variables)
            .map(|_| match rng.gen_range(0..10) {
                d if d < zeros => Scalar::ZERO,
                d if d < zeros + ones => Scalar::ONE,
                _ => Scalar::random(&mut *rng),
            })
            .collect();
        let inputs = vec![Scalar::ONE, Scalar::ZERO, Scalar::random(&mut *rng), Scalar::random(&mut *rng)];
        Self { inputs, values, queries: Vec::new() }
    }

    /// Adds a query with points, drawn from a few, for these inputs and the variables in `mask`.
    fn with_query(mut self, few: &[C::Affine], inputs: &[u32], mask: Option<Vec<bool>>) -> Self {
        let variables = mask.as_ref().map_or(self.values.len(), |mask| mask.iter().filter(|m| **m).count());
        let first = self.queries.len();
        let points = (0..inputs.len() + variables).map(|i| few[(i * i + first) % few.len()]).collect();
        self.queries.push(CaseQuery { points, inputs: inputs.to_vec(), mask });
        self
    }

    fn expected(&self) -> Vec<C::Projective> {
        let query = |query: &CaseQuery<C>| {
            let kept = (0..self.values.len()).filter(|i| query.mask.as_ref().is_none_or(|m| m[*i]));
            let inputs = query.inputs.iter().map(|i| self.inputs[*i as usize]);
            let scalars: Vec<Scalar> = inputs.chain(kept.map(|i| self.values[i])).collect();
            expected::<C>(&query.points, &scalars)
        };
        self.queries.iter().map(query).collect()
    }

    /// Twice in a row, without waiting in between, with `part` variables at a time: a multiple of 64, or all.
    fn on_device(&self, gpu: &Gpu, part: usize) -> Result<Vec<C::Projective>, CudaError> {
        let stream = Stream::new(gpu)?;
        let upload = |bit: &dyn Fn(usize) -> bool| {
            let mut bitmap = Bitmap::default();
            (0..self.values.len()).for_each(|i| bitmap.push(bit(i)));
            let words: Vec<u32> = bitmap.words().iter().flat_map(|w| [*w as u32, (*w >> 32) as u32]).collect();
            DeviceBuffer::from_host(&stream, &words, "a check's bitmap")
        };
        let ones = upload(&|i| self.values[i] == Scalar::ONE)?;
        let full = upload(&|i| is_full(&self.values[i]))?;
        let values = self.inputs.iter().chain(self.values.iter().filter(|value| is_full(value)));
        let values = words(&values.copied().collect::<Vec<_>>());
        let values = DeviceBuffer::from_host(&stream, &values, "a check's values")?;
        let mut points = Vec::new();
        let mut held = Vec::new();
        for query in &self.queries {
            let mask = query.mask.as_ref().map(|mask| upload(&|i| mask[i])).transpose()?;
            let inputs = DeviceBuffer::from_host(&stream, &query.inputs, "a check's inputs")?;
            held.push((points.len() / C::POINT_BYTES, inputs, mask));
            points.extend(bytes::<C>(&query.points));
        }
        let points = DeviceBuffer::from_host(&stream, &points, "a check's points")?;
        let ends = |i: usize| [i * part, self.values.len().min((i + 1) * part)];
        let of_part = |i: usize| {
            let [begin, end] = ends(i);
            let words = begin / 32..2 * end.div_ceil(64);
            let queries = held.iter().zip(&self.queries).map(|((first, inputs, mask), query)| {
                // The points of inputs come first.
                let skipped = if i == 0 { 0 } else { query.inputs.len() };
                Ok(Query {
                    first: first + skipped + query.variables(0, begin),
                    len: query.inputs.len() - skipped + query.variables(begin, end),
                    inputs: inputs.all().range(skipped..)?,
                    mask: mask.as_ref().map(|mask| mask.all().range(words.clone())).transpose()?,
                })
            });
            let count = |end: usize| self.values[..end].iter().filter(|value| is_full(value)).count();
            let skipped = if i == 0 { 0 } else { self.inputs.len() + count(begin) };
            let witness = Witness {
                ones: ones.all().range(words.clone())?,
                full: full.all().range(words.clone())?,
                values: values.all().range(8 * skipped..8 * (self.inputs.len() + count(end)))?,
                first_value: if i == 0 { self.inputs.len() } else { 0 },
                montgomery: true,
            };
            Ok((queries.collect::<Result<Vec<_>, CudaError>>()?, witness))
        };

        let listed = values.len() / 8;
        let size = |query: &CaseQuery<C>| Size { points: query.points.len(), scalars: listed, bits: part };
        let queries_of_plan = self.queries.iter().map(size).collect();
        let parts = self.values.len().div_ceil(part);
        let request = Request { queries: queries_of_plan, streamed: parts > 1, ..request::<C>(gpu, Size::default()) };
        let plan = Plan::choose(request).ok_or_else(|| CudaError::NoDevice("no plan".to_owned()))?;
        let mut layout = Layout::new();
        let mut msm = Msm::<C>::new(&stream, plan, &mut layout)?;
        let arena = Arena::new(gpu, &layout, "a check's workspace")?;
        arena.slice(Layout::new().add::<u8>(layout.bytes()))?.fill_bytes(&stream, 0xdb)?;
        for _ in 0..2 {
            msm.mixed_in_parts(&stream, &arena, points.all(), parts, of_part, |_| Ok(()))?;
        }
        msm.sums()
    }

    fn compare(&self, gpu: &Gpu, part: usize) -> Outcome {
        let (found, expected) = (self.on_device(gpu, part).map_err(|e| e.to_string())?, self.expected());
        match (0..expected.len()).find(|i| found[*i] != expected[*i]) {
            None => Ok(()),
            Some(i) => Err(format!(
                "{} variables, {part} at a time, query {i} of {} points, mask: {}: a wrong sum",
                self.values.len(),
                self.queries[i].points.len(),
                self.queries[i].mask.is_some()
            )),
        }
    }
}

/// Number of variables, and how many of ten are zeros and ones.
const SHAPES: [(usize, u32, u32); 6] =
    [(1, 0, 1), (70, 3, 3), (3000, 5, 4), (3000, 10, 0), (2049, 0, 10), (100_000, 5, 5)];

fn mask(rng: &mut ChaCha8Rng, variables: usize, of_three: u32) -> Option<Vec<bool>> {
    Some((0..variables).map(|_| rng.gen_range(0..3) < of_three).collect())
}

/// One query, with and without a mask, few and many variables, only zeros, only ones.
pub(super) fn selected<C: DeviceCurve>(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let few = random_points::<C>(rng, 100);
    for (variables, zeros, ones) in SHAPES {
        for mask in [None, mask(rng, variables, 2)] {
            Case::<C>::new(rng, variables, zeros, ones)
                .with_query(&few, &[0, 1, 2, 3], mask)
                .compare(gpu, variables)?;
        }
    }
    Ok(())
}

/// Queries of different density over one witness, as l, a and b are, and one that has no variables at all.
pub(super) fn three_queries(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let few = random_points::<G1>(rng, 100);
    for (variables, zeros, ones) in SHAPES {
        let masks = [2, 1, 0].map(|of_three| mask(rng, variables, of_three));
        let [dense, sparse, none] = masks;
        Case::<G1>::new(rng, variables, zeros, ones)
            .with_query(&few, &[], None)
            .with_query(&few, &[0, 1, 2, 3], dense)
            .with_query(&few, &[2], sparse)
            .compare(gpu, variables)?;
        Case::<G1>::new(rng, variables, zeros, ones)
            .with_query(&few, &[1, 3], none)
            .with_query(&few, &[], None)
            .compare(gpu, variables)?;
    }
    Ok(())
}

/// The same with the variables in parts, some of which may have no full value or no point.
pub(super) fn in_parts<C: DeviceCurve>(gpu: &Gpu, rng: &mut ChaCha8Rng) -> Outcome {
    let few = random_points::<C>(rng, 100);
    for (variables, zeros, ones) in SHAPES {
        for part in [64, 1024, variables.div_ceil(2).next_multiple_of(64)] {
            if variables.div_ceil(part) > 50 {
                continue;
            }
            let mut late = mask(rng, variables, 2);
            late.iter_mut().flat_map(|mask| mask.iter_mut().take(part)).for_each(|selected| *selected = false);
            Case::<C>::new(rng, variables, zeros, ones)
                .with_query(&few, &[], None)
                .with_query(&few, &[0, 1, 2, 3], late)
                .compare(gpu, part)?;
        }
    }
    Ok(())
}
