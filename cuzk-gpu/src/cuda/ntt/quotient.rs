//! The quotient H = (A B - C) / (X^N - 1), N = 2^n, by six transforms in one sequence of passes.
//!
//! On the domain the values of C are those of A times those of B, so A B = H (X^N - 1) + C with C the interpolation
//! of that product. On the coset, where X^N = -1, the interpolation of A B is X = C - 2 H. So
//!
//!   H = (C - X) / 2.
//!
//! 1. The values of C are made from those of A and B, small ones bit by bit.
//! 2. A: values to coefficients, those to values on the coset; left where the threads that computed them find them.
//! 3. B: likewise, then the products with A's values, and their coefficients but for the passes after the first.
//! 4. C: values to coefficients.
//! 5. The passes left of X, the last of which takes the result from C.
//!
//! The inverse of the transform's factor N, the half, and the 2^256 that a Montgomery product takes away are all in
//! the values that small codes stand for: 1/N for A, 2^256 / (2 N^2) for B, 1/(2 N) for C. No pass scales anything.

use blstrs::Scalar;
use ff::{Field, PrimeField};

use super::{
    plan::{self, Pass, padded_len},
    planes::{PlanesRegion, RawPlanes, words},
    transform::{Ntt, Points},
};
use crate::cuda::{
    arena::{Arena, Layout, Region},
    error::CudaError,
    fr::{self, Element, plain},
    gpu::Gpu,
    launch::{Args, Function, Grid},
    memory::{DeviceBuffer, DeviceSlice, Plain},
    stream::Stream,
};

/// The kernels of H and its constants, for one size on one device.
#[derive(Debug)]
pub struct Quotient {
    log_n: u32,
    kernels: Kernels,
    /// Factors of A, B, C; then 0, 1, 2, -1 times each of them.
    constants: DeviceBuffer<Element>,
}

#[derive(Debug)]
struct Kernels {
    planes_reverse: Function,
    planes_multiply: Function,
    planes_multiply_list: Function,
    planes_scale_list: Function,
}

/// Where H finds its inputs and keeps its vectors: 64 bytes a point, and less than 2 for all planes. The planes of A and B
/// may be in another arena.
#[derive(Clone, Copy, Debug)]
pub struct Workspace {
    /// The values of A on the domain. Its list is used up.
    pub a: PlanesRegion,
    /// The values of B on the domain. Its list is used up.
    pub b: PlanesRegion,
    c: PlanesRegion,
    rows: Region<u32>,
    reversed: [Region<u32>; 3],
    vectors: [Region<Element>; 2],
}

/// `struct ntt_planes` of `kernels/ntt.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct RawInput {
    low: u64,
    high: u64,
    exceptional: u64,
    natural: RawPlanes,
    values: u64,
}

// SAFETY: integers without padding between them.
unsafe impl Plain for RawInput {}

/// One of the three polynomials.
#[derive(Clone, Copy)]
enum Which {
    A,
    B,
    C,
}

impl Workspace {
    /// Room for 2^log_n points, of each of A, B and C `capacity` of which may be other than 0, 1, 2 and -1. H comes out in
    /// `h`, of [`padded_len`] elements: given from outside, so that what follows H can overlay all the rest.
    pub fn plan(h: Region<Element>, layout: &mut Layout, log_n: u32, capacity: usize) -> Self {
        let rows = [(); 2].map(|()| PlanesRegion::plan(layout, log_n, capacity));
        Self::with_rows(rows, h, layout, log_n, capacity)
    }

    /// The same with the planes of A and B in another arena, whose layout gave `rows`: for [`Quotient::from_rows`].
    pub fn with_rows(
        [a, b]: [PlanesRegion; 2],
        h: Region<Element>,
        layout: &mut Layout,
        log_n: u32,
        capacity: usize,
    ) -> Self {
        Self {
            a,
            b,
            c: PlanesRegion::plan(layout, log_n, capacity),
            rows: layout.add(capacity),
            reversed: std::array::from_fn(|_| layout.add(words(log_n))),
            vectors: [layout.add(padded_len(log_n)), h],
        }
    }

    /// The planes of A, B and C, each with the number of its exceptions.
    pub fn planes(&self) -> [PlanesRegion; 3] {
        [self.a, self.b, self.c]
    }

    /// Whether the lists could hold so many exceptions of A, B and C: else H is wrong.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] with both numbers if not.
    pub fn had_room(&self, gpu: &Gpu, found: [u32; 3]) -> Result<(), CudaError> {
        let mut lists = self.planes().into_iter().zip(["A", "B", "C"]).zip(found);
        match lists.find(|((planes, _), found)| *found as usize > planes.capacity()) {
            None => Ok(()),
            Some(((planes, what), found)) => {
                let room = planes.capacity();
                Err(gpu.misuse(format!("{what}: {found} values are not small, the workspace has room for {room}")))
            }
        }
    }

    /// Waits for the numbers of exceptions, and says whether the lists could hold them: else H is wrong.
    ///
    /// # Errors
    /// As [`PlanesRegion::check`].
    pub fn check(&self, stream: &Stream, arena: &Arena) -> Result<(), CudaError> {
        [(self.a, "A"), (self.b, "B")].iter().try_for_each(|(p, what)| p.check(stream, arena, what))?;
        self.check_product(stream, arena)
    }

    /// As [`Self::check`], after [`Quotient::from_rows`] of planes that are known to be whole.
    ///
    /// # Errors
    /// As [`PlanesRegion::check`].
    pub fn check_product(&self, stream: &Stream, arena: &Arena) -> Result<(), CudaError> {
        self.c.check(stream, arena, "C")
    }
}

impl Quotient {
    /// Loads the kernels, and the constants for 2^log_n points.
    ///
    /// # Errors
    /// What the driver reports.
    pub fn new(stream: &Stream, log_n: u32) -> Result<Self, CudaError> {
        let gpu = stream.gpu();
        let kernels = Kernels {
            planes_reverse: gpu.function("planes", "planes_reverse")?,
            planes_multiply: gpu.function("planes", "planes_multiply")?,
            planes_multiply_list: gpu.function("planes", "planes_multiply_list")?,
            planes_scale_list: gpu.function("planes", "planes_scale_list")?,
        };
        let constants = DeviceBuffer::from_host(stream, &constants(log_n), "constants of the quotient")?;
        Ok(Self { log_n, kernels, constants })
    }

    /// log2 of its points.
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// Queues H from the planes of A and B in the workspace: N coefficients (the last is 0), canonical numbers in plain
    /// form, in natural order. [`Workspace::check`] tells afterwards whether all exceptions had room.
    ///
    /// # Errors
    /// [`CudaError::Misuse`] if the table of `ntt` is too small, the arena is not of the workspace's layout, or what
    /// the driver reports.
    pub fn from_planes<'a>(
        &self,
        stream: &Stream,
        ntt: &Ntt,
        arena: &'a Arena,
        workspace: &Workspace,
    ) -> Result<DeviceSlice<'a, Element>, CudaError> {
        let rows = [workspace.a.raw(arena)?, workspace.b.raw(arena)?];
        self.from_rows(stream, ntt, arena, workspace, rows)
    }

    /// As [`Self::from_planes`], with the planes of A and B where the caller has them, of the workspace's size. Their
    /// lists are used up.
    ///
    /// # Errors
    /// As [`Self::from_planes`].
    pub fn from_rows<'a>(
        &self,
        stream: &Stream,
        ntt: &Ntt,
        arena: &'a Arena,
        workspace: &Workspace,
        [a, b]: [RawPlanes; 2],
    ) -> Result<DeviceSlice<'a, Element>, CudaError> {
        let planes = [a, b, workspace.c.raw(arena)?];
        let [x, y] = [arena.slice(workspace.vectors[0])?, arena.slice(workspace.vectors[1])?];
        self.multiply_planes(stream, arena, workspace, planes)?;
        let first = |which: Which, data: DeviceSlice<'_, Element>| {
            self.first_from_planes(stream, ntt, (arena, workspace), (which, planes[which as usize]), data)
        };
        self.sequence(stream, ntt, [x, y, x], first)?;
        Ok(y)
    }

    /// Steps 2 to 5. `first` queues the first pass of the inverse transform of a polynomial's values into a vector.
    fn sequence(
        &self,
        stream: &Stream,
        ntt: &Ntt,
        [a, b, c]: [DeviceSlice<'_, Element>; 3],
        first: impl Fn(Which, DeviceSlice<'_, Element>) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        for data in [a, b, c] {
            ntt.fits(stream.gpu(), data, self.log_n)?;
        }
        let (domain, coset) = (self.passes(ntt, Points::Domain), self.passes(ntt, Points::Coset));
        let Some((&bottom, strided)) = coset.split_last() else {
            // A and B are constants, their product is C.
            return b.fill_bytes(stream, 0);
        };
        let to_coset = |which, data| {
            first(which, data)?;
            for pass in domain[..strided.len()].iter().skip(1).rev() {
                ntt.inverse_pass(stream, data, *pass)?;
            }
            for (i, pass) in strided.iter().enumerate() {
                match i {
                    0 => ntt.queue(stream, &ntt.fused.turn, Args::new().slice(data), *pass)?,
                    _ => ntt.forward_pass(stream, data, *pass)?,
                }
            }
            Ok::<_, CudaError>(())
        };
        to_coset(Which::A, a)?;
        ntt.queue(stream, &ntt.fused.park, Args::new().slice(a), bottom)?;
        to_coset(Which::B, b)?;
        ntt.queue(stream, &ntt.fused.multiply, Args::new().slice(b).slice(a), bottom)?;

        first(Which::C, c)?;
        for pass in domain[..strided.len()].iter().rev() {
            ntt.inverse_pass(stream, c, *pass)?;
        }
        for pass in strided.iter().skip(1).rev() {
            ntt.inverse_pass(stream, b, *pass)?;
        }
        let last = strided.first().copied().unwrap_or(plan::nothing(self.log_n, ntt.table.shape()));
        ntt.queue(stream, &ntt.fused.subtract, Args::new().slice(b).slice(c), last)
    }

    /// Passes from the largest distance to the contiguous one.
    fn passes(&self, ntt: &Ntt, points: Points) -> Vec<Pass> {
        plan::forward(self.log_n, points == Points::Coset, ntt.table.shape())
    }

    /// Step 1: the planes of C, and the lists of all three in plain form and with their factors.
    fn multiply_planes(
        &self,
        stream: &Stream,
        arena: &Arena,
        workspace: &Workspace,
        [a, b, c]: [RawPlanes; 3],
    ) -> Result<(), CudaError> {
        let kernels = &self.kernels;
        let rows = arena.slice(workspace.rows)?;
        let words = words(self.log_n);
        workspace.c.clear(stream, arena)?;
        let args = Args::new().value(a).value(b).value(c).slice(rows).value(words as u32);
        let list_args = Args::new().value(a).value(b).value(c).slice(rows).value(self.factor(Which::C)?);
        // SAFETY: all planes have `words` words, lists are used up to their capacities, and `rows` has that of C's.
        unsafe {
            kernels.planes_multiply.launch(stream, Grid::cover(words, 256), &args)?;
            kernels.planes_multiply_list.launch(stream, LIST_GRID, &list_args)?;
            for (planes, which) in [(a, Which::A), (b, Which::B)] {
                let args = Args::new().value(planes).value(self.factor(which)?);
                kernels.planes_scale_list.launch(stream, LIST_GRID, &args)?;
            }
        }
        Ok(())
    }

    fn first_from_planes(
        &self,
        stream: &Stream,
        ntt: &Ntt,
        (arena, workspace): (&Arena, &Workspace),
        (which, natural): (Which, RawPlanes),
        data: DeviceSlice<'_, Element>,
    ) -> Result<(), CudaError> {
        let Some(&bottom) = self.passes(ntt, Points::Domain).last() else {
            return Ok(());
        };
        let mut reversed = [0; 3];
        for (address, region) in reversed.iter_mut().zip(workspace.reversed) {
            *address = arena.slice(region)?.address();
        }
        let [low, high, exceptional] = reversed;
        let args = Args::new().value(natural).value(low).value(high).value(exceptional).value(self.log_n);
        // A warp transposes 32 words at a time.
        let grid = Grid { blocks: [Grid::cover(words(self.log_n), 256).blocks[0], 3, 1], threads: 256, shared: 0 };
        // SAFETY: all planes have as many words as 2^log_n values need, at least 16.
        unsafe { self.kernels.planes_reverse.launch(stream, grid, &args)? };
        let values = self.constants.all().range(3 + 4 * which as usize..)?.address();
        let input = RawInput { low, high, exceptional, natural, values };
        ntt.queue(stream, &ntt.fused.from_planes, Args::new().slice(data).value(input), bottom)
    }

    /// Address of a factor.
    fn factor(&self, which: Which) -> Result<u64, CudaError> {
        Ok(self.constants.all().range(which as usize..)?.address())
    }
}

/// Blocks that share the exceptions of a list, of which the host does not know how many there are.
const LIST_GRID: Grid = Grid { blocks: [1024, 1, 1], threads: 128, shared: 0 };

/// Factors of A, B, C; then 0, 1, 2, -1 times each of them. Plain form.
fn constants(log_n: u32) -> Vec<Element> {
    let n_inverse = Scalar::TWO_INV.pow_vartime([log_n.into()]);
    let half = Scalar::TWO_INV;
    let factors = [n_inverse, fr::r() * half * n_inverse.square(), half * n_inverse];
    let small = factors.iter().flat_map(|f| [Scalar::ZERO, *f, f.double(), -f]);
    factors.iter().copied().chain(small).map(|value| plain(&value)).collect()
}
