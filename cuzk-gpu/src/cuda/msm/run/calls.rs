//! The calls, and what they are given.

use super::{Call, Msm};
use crate::cuda::{
    Arena, Args, CudaError, DeviceSlice, Gpu, Grid, Stream,
    msm::{fold::DeviceCurve, workspace::MAX_QUERIES},
};

/// A base on the device: a range of points, and behind it its tables of multiples, if the plan has any.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// Points, this base's among them.
    pub points: DeviceSlice<'a, u8>,
    /// Number of its first point. Table t begins at `first + t * len`.
    pub first: usize,
    /// Points of the base.
    pub len: usize,
}

/// Full scalars on the device, for the base's first points.
#[derive(Clone, Copy, Debug)]
pub struct Scalars<'a> {
    /// Eight words each.
    pub words: DeviceSlice<'a, u32>,
    /// How many count: the first ones.
    pub len: usize,
    /// Whether they are in Montgomery form, R = 2^256, as blst keeps them; else they are plain numbers below r.
    pub montgomery: bool,
}

/// A compact witness on the device. Bitmaps are in words of 32 variables; bits past the last variable are zero.
#[derive(Clone, Copy, Debug)]
pub struct Witness<'a> {
    /// Variables that are 1.
    pub ones: DeviceSlice<'a, u32>,
    /// Variables that are neither 0 nor 1.
    pub full: DeviceSlice<'a, u32>,
    /// Public inputs, then the values of the variables in `full`, in order: eight words each.
    pub values: DeviceSlice<'a, u32>,
    /// Values before the first of `full`: the number of public inputs.
    pub first_value: usize,
    /// As in [`Scalars`].
    pub montgomery: bool,
}

/// What a query takes of a witness: it has points for some public inputs, then for some other variables.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Number of its first point.
    pub first: usize,
    /// Its points: as many as `inputs`, then as many as bits are set in `mask`.
    pub len: usize,
    /// For each of its first points, the number of the public input.
    pub inputs: DeviceSlice<'a, u32>,
    /// The variables that it has points for, in order; all of them without a mask. Bits past the last variable are zero.
    pub mask: Option<DeviceSlice<'a, u32>>,
}

impl<C: DeviceCurve> Msm<C> {
    /// Fills the tables after the first, which holds the points themselves. Takes seconds at 2^27.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn fill_tables(&self, stream: &Stream, base: Base<'_>) -> Result<(), CudaError> {
        self.fits(stream.gpu(), 0, base)?;
        for table in 1..self.plan.windows.tables() {
            let to = base.first + table * base.len;
            let args = Args::new().slice(base.points).value((to - base.len) as u32).value(to as u32);
            let args = args.value(base.len as u32).value(self.plan.windows.table_bits());
            // SAFETY: the tables are inside of `points`, as was checked.
            unsafe { self.kernels.double.launch(stream, Grid::cover(base.len, 128), &args)? };
        }
        Ok(())
    }

    /// Queues the sum of scalars times points.
    ///
    /// # Errors
    /// More scalars or points than planned for, or what the driver reports.
    pub fn full(
        &mut self,
        stream: &Stream,
        arena: &Arena,
        base: Base<'_>,
        scalars: Scalars<'_>,
    ) -> Result<(), CudaError> {
        let call = Call { stream, arena };
        self.mark(&call, "begin")?;
        self.full_buckets(&call, base, scalars, 0)?;
        self.no_dealt(&call)?;
        self.finish(&call)
    }

    /// The same for points that come in parts, each of at most as many points as the plan's query has: `base` tells where a
    /// part's are, and may first let the stream wait for them; `used` is called when all work that reads them has been queued.
    /// Points on the device hide the copies of others if their parts come first, and so does a short first part.
    ///
    /// # Errors
    /// As [`Self::full`]; [`CudaError::Misuse`] if there are several parts and the plan is not for that, or if they hold fewer
    /// points than there are scalars.
    pub fn in_parts<'a>(
        &mut self,
        stream: &Stream,
        arena: &Arena,
        scalars: Scalars<'_>,
        parts: usize,
        mut base: impl FnMut(usize) -> Result<Base<'a>, CudaError>,
        mut used: impl FnMut(usize) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let call = Call { stream, arena };
        if parts > 1 && !self.plan.request.streamed {
            return self.misuse(stream.gpu(), format!("{parts} parts"));
        }
        self.mark(&call, "begin")?;
        let mut done = 0;
        for i in 0..parts {
            let base = base(i)?;
            let len = base.len.min(scalars.len - done);
            let words = scalars.words.range(8 * done..8 * (done + len))?;
            done += len;
            let target = if i == 0 { 0 } else { self.plan.part_buckets };
            self.full_buckets(&call, base, Scalars { words, len, ..scalars }, target)?;
            used(i)?;
            if i > 0 {
                self.add_part(&call)?;
            }
        }
        if done < scalars.len {
            return self.misuse(stream.gpu(), format!("{} scalars for {done} points in parts", scalars.len));
        }
        self.no_dealt(&call)?;
        self.finish(&call)
    }

    /// Queues the sums of several queries over one witness, in the order of the plan's. Their points are ranges of `points`.
    ///
    /// # Errors
    /// More scalars, variables or points than planned for, or what the driver reports.
    pub fn mixed(
        &mut self,
        stream: &Stream,
        arena: &Arena,
        points: DeviceSlice<'_, u8>,
        queries: &[Query<'_>],
        witness: Witness<'_>,
    ) -> Result<(), CudaError> {
        self.mixed_in_parts(stream, arena, points, 1, |_| Ok((queries.to_vec(), witness)), |_| Ok(()))
    }

    /// The same over the variables in parts: `of_part` tells what the queries and the witness are in one, and may first let
    /// the stream wait for its points; `used` is called when all work that reads them has been queued.
    ///
    /// # Errors
    /// As [`Self::mixed`]; [`CudaError::Misuse`] if there are several parts and the plan is not for that.
    pub fn mixed_in_parts<'a>(
        &mut self,
        stream: &Stream,
        arena: &Arena,
        points: DeviceSlice<'_, u8>,
        parts: usize,
        mut of_part: impl FnMut(usize) -> Result<(Vec<Query<'a>>, Witness<'a>), CudaError>,
        mut used: impl FnMut(usize) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        let call = Call { stream, arena };
        if parts > 1 && !self.plan.request.streamed {
            return self.misuse(stream.gpu(), format!("{parts} parts"));
        }
        self.mark(&call, "begin")?;
        for part in 0..parts {
            let (queries, witness) = of_part(part)?;
            let target = if part == 0 { 0 } else { self.plan.part_buckets };
            self.mixed_buckets(&call, points, &queries, witness, target)?;
            used(part)?;
            if part > 0 {
                self.add_part(&call)?;
                self.mark(&call, "add part")?;
            }
        }
        self.finish(&call)
    }

    /// Sums of a part's buckets and dealt segments, to the pool from point `target` on.
    fn mixed_buckets(
        &mut self,
        call: &Call<'_>,
        points: DeviceSlice<'_, u8>,
        queries: &[Query<'_>],
        witness: Witness<'_>,
        target: usize,
    ) -> Result<(), CudaError> {
        let gpu = call.stream.gpu();
        if queries.len() != self.plan.request.queries.len() {
            return self.misuse(gpu, format!("{} queries", queries.len()));
        }
        self.begin(call, [0; MAX_QUERIES])?;
        for (i, query) in queries.iter().enumerate() {
            self.fits(gpu, i, Base { points, first: query.first, len: query.len })?;
            self.full_values(call, i, *query, witness)?;
        }
        self.mark(call, "digits")?;
        if self.plan.pairs() > 0 {
            self.sort(call)?;
            self.add(call, points, target)?;
        }
        for (i, query) in queries.iter().enumerate() {
            self.ones(call, (i, target), points, *query, witness)?;
        }
        self.mark(call, "ones")
    }

    /// Sums of a part's buckets, to the pool from point `target` on.
    fn full_buckets(
        &mut self,
        call: &Call<'_>,
        base: Base<'_>,
        scalars: Scalars<'_>,
        target: usize,
    ) -> Result<(), CudaError> {
        let (gpu, n) = (call.stream.gpu(), scalars.len);
        self.fits(gpu, 0, base)?;
        if self.plan.request.queries.len() > 1
            || n > self.plan.request.queries[0].scalars
            || n > base.len
            || scalars.words.len() < 8 * n
        {
            return self.misuse(gpu, format!("{} words for {n} scalars, {} points", scalars.words.len(), base.len));
        }
        if self.plan.pairs() == 0 {
            return Ok(());
        }
        self.begin(call, [n as u32, 0, 0, 0])?;
        let windows = self.plan.windows.kernel_argument(base.len, base.first, 0);
        self.digits(call, 0, windows, (scalars.words, scalars.montgomery), None)?;
        self.mark(call, "digits")?;
        self.sort(call)?;
        self.add(call, base.points, target)
    }

    /// Whether the tables are inside of what the plan is for.
    fn fits(&self, gpu: &Gpu, query: usize, base: Base<'_>) -> Result<(), CudaError> {
        let end = base.first + self.plan.windows.tables() * base.len;
        if base.len > self.plan.request.queries[query].points || base.points.len() < end * C::POINT_BYTES {
            let Base { points, first, len } = base;
            let tables = self.plan.windows.tables();
            let what = format!("{tables} tables of {len} points, from {first} on, of {} bytes", points.len());
            return self.misuse(gpu, what);
        }
        Ok(())
    }
}
