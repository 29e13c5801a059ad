//! Plans: what they are, and the functions that make, change and destroy them.

use std::collections::HashMap;
use std::ffi::{c_int, c_longlong, c_void};
use std::sync::{Mutex, PoisonError};

use cuda_sys::{CUdeviceptr, CUstream};
use sim_driver_link::refused;

use super::{Res, Status, answer};
use crate::cublas::handle::ensure_context;
use crate::numerics::fourier::{Precision, Side};

/// Which sides are complex.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Complex,
    RealToComplex,
    ComplexToReal,
}

/// How one side lies in memory, where the program has said it.
#[derive(Clone, Copy, Debug)]
struct Layout {
    embed: [u64; 3],
    stride: u64,
    distance: u64,
}

/// What a plan transforms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub kind: Kind,
    pub size: [u64; 3],
    pub batch: u64,
    part: Precision,
    /// For input and output; none: packed.
    layouts: Option<[Layout; 2]>,
    /// Bytes of the work area.
    work: u64,
}

/// A plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub made: Option<Made>,
    pub stream: CUstream,
    /// Address and bytes; the library's own where it has allocated one.
    pub work: (u64, u64),
    owns_work: bool,
    auto: bool,
}

static PLANS: Mutex<Option<HashMap<c_int, Plan>>> = Mutex::new(None);

/// Runs a body with a plan.
pub(super) fn with<T>(handle: c_int, body: impl FnOnce(&mut Plan) -> Result<T, Status>) -> Result<T, Status> {
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    body(plans.get_or_insert_default().get_mut(&handle).ok_or(Status::INVALID_PLAN)?)
}

fn create(to: *mut c_int) -> Res {
    if to.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    ensure_context().map_err(|_| Status::SETUP_FAILED)?;
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    let plans = plans.get_or_insert_default();
    let handle = (1..).find(|number| !plans.contains_key(number)).ok_or(Status::ALLOC_FAILED)?;
    let plan = Plan { made: None, stream: CUstream::NULL, work: (0, 0), owns_work: false, auto: true };
    plans.insert(handle, plan);
    // SAFETY: the C interface: a non-null output pointer is writable.
    unsafe { to.write(handle) };
    Ok(())
}

impl Plan {
    fn free_work(&mut self) {
        if std::mem::take(&mut self.owns_work) {
            let _ = cu!(cuMemFree_v2(self.work.0));
        }
        self.work = (0, 0);
    }

    /// Describes what is transformed. Answers the bytes of the work area.
    fn make(&mut self, made: Made) -> Result<u64, Status> {
        if self.made.is_some() {
            return Err(Status::INVALID_PLAN);
        }
        if self.auto && made.work > 0 {
            let mut at: CUdeviceptr = 0;
            cu!(cuMemAlloc_v2(&mut at, made.work as usize))?;
            (self.work, self.owns_work) = ((at, made.work), true);
        }
        self.made = Some(made);
        Ok(made.work)
    }
}

impl Made {
    /// `layouts`: strides, distances and the sizes that rows are embedded in, if the program has
    /// given any.
    fn new(
        (kind, part): (Kind, Precision),
        size: &[i64],
        batch: i64,
        layouts: Option<[(&[i64], i64, i64); 2]>,
    ) -> Result<Made, Status> {
        if size.is_empty() || size.len() > 3 || size.iter().any(|&n| n < 1) || batch < 1 {
            return Err(Status::INVALID_SIZE);
        }
        let three = |list: &[i64]| {
            let mut out = [1; 3];
            out[3 - list.len()..].iter_mut().zip(list).for_each(|(to, &n)| *to = n as u64);
            out
        };
        let layouts = match layouts {
            None => None,
            Some(sides) if sides.iter().any(|(_, stride, distance)| *stride < 1 || *distance < 0) => {
                return Err(Status::INVALID_VALUE);
            }
            Some(sides) => Some(sides.map(|(embed, stride, distance)| Layout {
                embed: three(embed),
                stride: stride as u64,
                distance: distance as u64,
            })),
        };
        let size = three(size);
        let mut made = Made { kind, size, batch: batch as u64, part, layouts, work: 0 };
        // As many bytes as the spectrum has: the library's own sizes differ by release and device.
        made.work = made.side(0, true, false).bytes() * size.iter().product::<u64>() * made.batch;
        Ok(made)
    }

    /// The bytes of one side. `is_input`, and whether both sides are the same memory.
    pub(super) fn side(&self, base: u64, is_input: bool, in_place: bool) -> Side {
        let [x, y, z] = self.size;
        let half = z / 2 + 1;
        let complex = match self.kind {
            Kind::Complex => true,
            Kind::RealToComplex => !is_input,
            Kind::ComplexToReal => is_input,
        };
        let size = [x, y, if complex && self.kind != Kind::Complex { half } else { z }];
        let layout = self.layouts.map(|layouts| layouts[usize::from(!is_input)]);
        let layout = layout.unwrap_or_else(|| {
            // In place, rows of real numbers have room for their spectrum.
            let row = if complex || !in_place { size[2] } else { 2 * half };
            Layout { embed: [x, y, row], stride: 1, distance: x * y * row }
        });
        let [_, rows, row] = layout.embed;
        let stride = [rows * row * layout.stride, row * layout.stride, layout.stride];
        Side { base, part: self.part, complex, size, stride, distance: layout.distance }
    }
}

/// A `cufftType`.
fn of_type(number: c_int) -> Result<(Kind, Precision), Status> {
    Ok(match number {
        0x2a => (Kind::RealToComplex, Precision::F32),
        0x2c => (Kind::ComplexToReal, Precision::F32),
        0x29 => (Kind::Complex, Precision::F32),
        0x6a => (Kind::RealToComplex, Precision::F64),
        0x6c => (Kind::ComplexToReal, Precision::F64),
        0x69 => (Kind::Complex, Precision::F64),
        _ => return Err(Status::INVALID_TYPE),
    })
}

/// The kind of a pair of `cudaDataType`s.
fn of_data(input: c_int, output: c_int) -> Result<(Kind, Precision), Status> {
    // Real, then complex.
    const PARTS: [(c_int, c_int, Precision); 4] =
        [(2, 6, Precision::F16), (14, 15, Precision::Bf16), (0, 4, Precision::F32), (1, 5, Precision::F64)];
    let found = PARTS.iter().find_map(|&(real, complex, part)| match (input == complex, output == complex) {
        (true, true) => Some((Kind::Complex, part)),
        (false, true) if input == real => Some((Kind::RealToComplex, part)),
        (true, false) if output == real => Some((Kind::ComplexToReal, part)),
        _ => None,
    });
    found.ok_or_else(|| {
        refused(&format!("cuFFT: a transform of cudaDataType {input} to {output} is not simulated"));
        Status::INVALID_TYPE
    })
}

/// Reads a list of the interface.
///
/// # Safety
/// `from` is null or holds `count` numbers.
unsafe fn list<T: Copy + Into<i64>>(from: *const T, count: c_int) -> Result<Option<Vec<i64>>, Status> {
    let count = usize::try_from(count).ok().filter(|&count| (1..=3).contains(&count)).ok_or(Status::INVALID_SIZE)?;
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    Ok(Some((0..count).map(|at| unsafe { from.add(at).read() }.into()).collect()))
}

/// The two layouts of a plan of many transforms: ignored where there are no sizes.
fn layouts<'a>(
    input: &'a Option<Vec<i64>>,
    output: &'a Option<Vec<i64>>,
    numbers: [i64; 4],
) -> Option<[(&'a [i64], i64, i64); 2]> {
    let [istride, idist, ostride, odist] = numbers;
    Some([(input.as_deref()?, istride, idist), (output.as_deref()?, ostride, odist)])
}

/// Hands the bytes of the work area out.
fn put_work(to: *mut usize, bytes: u64) {
    if !to.is_null() {
        // SAFETY: the C interface: a non-null output pointer is writable.
        unsafe { to.write(bytes as usize) };
    }
}

fn make(handle: c_int, made: Result<Made, Status>, work: *mut usize) -> c_int {
    answer(made.and_then(|made| with(handle, |plan| plan.make(made))).map(|bytes| put_work(work, bytes)))
}

/// Creates a plan and makes it.
fn create_made(to: *mut c_int, made: Result<Made, Status>) -> c_int {
    let created = made.and_then(|made| {
        create(to)?;
        // SAFETY: just written.
        let handle = unsafe { to.read() };
        with(handle, |plan| plan.make(made)).map(|_| ()).inspect_err(|_| _ = cufftDestroy(handle))
    });
    answer(created)
}

/// The work area that a plan would have.
fn size(made: Result<Made, Status>, work: *mut usize) -> c_int {
    answer(made.map(|made| put_work(work, made.work)))
}

fn packed(size: &[c_int], kind: c_int, batch: c_int) -> Result<Made, Status> {
    let size: Vec<i64> = size.iter().map(|&n| n.into()).collect();
    Made::new(of_type(kind)?, &size, batch.into(), None)
}

/// # Safety
/// The lists are null or hold `rank` numbers.
unsafe fn many<T: Copy + Into<i64>>(
    rank: c_int,
    n: *const T,
    (inembed, istride, idist): (*const T, T, T),
    (onembed, ostride, odist): (*const T, T, T),
    kind: Result<(Kind, Precision), Status>,
    batch: T,
) -> Result<Made, Status> {
    // SAFETY: the caller's promise.
    let (n, inembed, onembed) = unsafe { (list(n, rank)?, list(inembed, rank)?, list(onembed, rank)?) };
    let numbers = [istride.into(), idist.into(), ostride.into(), odist.into()];
    let n = n.ok_or(Status::INVALID_VALUE)?;
    Made::new(kind?, &n, batch.into(), layouts(&inembed, &onembed, numbers))
}

macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => { $(
        /// # Safety
        /// As cuFFT's.
        // SAFETY: cuFFT's name and signature.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> c_int $body
    )* };
}

functions! {
    fn cufftCreate(to: *mut c_int) { answer(create(to)) }
    fn cufftPlan1d(to: *mut c_int, n: c_int, kind: c_int, batch: c_int) { create_made(to, packed(&[n], kind, batch)) }
    fn cufftPlan2d(to: *mut c_int, x: c_int, y: c_int, kind: c_int) { create_made(to, packed(&[x, y], kind, 1)) }
    fn cufftPlan3d(to: *mut c_int, x: c_int, y: c_int, z: c_int, kind: c_int) {
        create_made(to, packed(&[x, y, z], kind, 1))
    }
    fn cufftPlanMany(
        to: *mut c_int, rank: c_int, n: *const c_int, inembed: *const c_int, istride: c_int, idist: c_int,
        onembed: *const c_int, ostride: c_int, odist: c_int, kind: c_int, batch: c_int,
    ) {
        // SAFETY: the C interface: lists of `rank` numbers.
        create_made(to, unsafe {
            many(rank, n, (inembed, istride, idist), (onembed, ostride, odist), of_type(kind), batch)
        })
    }
    fn cufftMakePlan1d(plan: c_int, n: c_int, kind: c_int, batch: c_int, work: *mut usize) {
        make(plan, packed(&[n], kind, batch), work)
    }
    fn cufftMakePlan2d(plan: c_int, x: c_int, y: c_int, kind: c_int, work: *mut usize) {
        make(plan, packed(&[x, y], kind, 1), work)
    }
    fn cufftMakePlan3d(plan: c_int, x: c_int, y: c_int, z: c_int, kind: c_int, work: *mut usize) {
        make(plan, packed(&[x, y, z], kind, 1), work)
    }
    fn cufftMakePlanMany(
        plan: c_int, rank: c_int, n: *const c_int, inembed: *const c_int, istride: c_int, idist: c_int,
        onembed: *const c_int, ostride: c_int, odist: c_int, kind: c_int, batch: c_int, work: *mut usize,
    ) {
        // SAFETY: as above.
        make(plan, unsafe {
            many(rank, n, (inembed, istride, idist), (onembed, ostride, odist), of_type(kind), batch)
        }, work)
    }
    fn cufftMakePlanMany64(
        plan: c_int, rank: c_int, n: *const c_longlong, inembed: *const c_longlong, istride: c_longlong,
        idist: c_longlong, onembed: *const c_longlong, ostride: c_longlong, odist: c_longlong, kind: c_int,
        batch: c_longlong, work: *mut usize,
    ) {
        // SAFETY: as above.
        make(plan, unsafe {
            many(rank, n, (inembed, istride, idist), (onembed, ostride, odist), of_type(kind), batch)
        }, work)
    }
    fn cufftXtMakePlanMany(
        plan: c_int, rank: c_int, n: *const c_longlong, inembed: *const c_longlong, istride: c_longlong,
        idist: c_longlong, input: c_int, onembed: *const c_longlong, ostride: c_longlong, odist: c_longlong,
        output: c_int, batch: c_longlong, work: *mut usize, _computes: c_int,
    ) {
        // SAFETY: as above.
        make(plan, unsafe {
            many(rank, n, (inembed, istride, idist), (onembed, ostride, odist), of_data(input, output), batch)
        }, work)
    }
    fn cufftEstimate1d(n: c_int, kind: c_int, batch: c_int, work: *mut usize) { size(packed(&[n], kind, batch), work) }
    fn cufftEstimate2d(x: c_int, y: c_int, kind: c_int, work: *mut usize) { size(packed(&[x, y], kind, 1), work) }
    fn cufftEstimate3d(x: c_int, y: c_int, z: c_int, kind: c_int, work: *mut usize) {
        size(packed(&[x, y, z], kind, 1), work)
    }
    fn cufftEstimateMany(
        rank: c_int, n: *const c_int, inembed: *const c_int, istride: c_int, idist: c_int, onembed: *const c_int,
        ostride: c_int, odist: c_int, kind: c_int, batch: c_int, work: *mut usize,
    ) {
        // SAFETY: as above.
        size(unsafe {
            many(rank, n, (inembed, istride, idist), (onembed, ostride, odist), of_type(kind), batch)
        }, work)
    }
    fn cufftGetSize1d(_plan: c_int, n: c_int, kind: c_int, batch: c_int, work: *mut usize) {
        size(packed(&[n], kind, batch), work)
    }
    fn cufftGetSize2d(_plan: c_int, x: c_int, y: c_int, kind: c_int, work: *mut usize) {
        size(packed(&[x, y], kind, 1), work)
    }
    fn cufftGetSize3d(_plan: c_int, x: c_int, y: c_int, z: c_int, kind: c_int, work: *mut usize) {
        size(packed(&[x, y, z], kind, 1), work)
    }
    fn cufftGetSizeMany(
        _plan: c_int, rank: c_int, n: *const c_int, inembed: *const c_int, istride: c_int, idist: c_int,
        onembed: *const c_int, ostride: c_int, odist: c_int, kind: c_int, batch: c_int, work: *mut usize,
    ) {
        // SAFETY: as above.
        size(unsafe {
            many(rank, n, (inembed, istride, idist), (onembed, ostride, odist), of_type(kind), batch)
        }, work)
    }
    fn cufftGetSizeMany64(
        _plan: c_int, rank: c_int, n: *const c_longlong, inembed: *const c_longlong, istride: c_longlong,
        idist: c_longlong, onembed: *const c_longlong, ostride: c_longlong, odist: c_longlong, kind: c_int,
        batch: c_longlong, work: *mut usize,
    ) {
        // SAFETY: as above.
        size(unsafe {
            many(rank, n, (inembed, istride, idist), (onembed, ostride, odist), of_type(kind), batch)
        }, work)
    }
    fn cufftXtGetSizeMany(
        _plan: c_int, rank: c_int, n: *const c_longlong, inembed: *const c_longlong, istride: c_longlong,
        idist: c_longlong, input: c_int, onembed: *const c_longlong, ostride: c_longlong, odist: c_longlong,
        output: c_int, batch: c_longlong, work: *mut usize, _computes: c_int,
    ) {
        // SAFETY: as above.
        size(unsafe {
            many(rank, n, (inembed, istride, idist), (onembed, ostride, odist), of_data(input, output), batch)
        }, work)
    }
    fn cufftGetSize(plan: c_int, work: *mut usize) {
        let bytes = with(plan, |plan| plan.made.map(|made| made.work).ok_or(Status::INVALID_PLAN));
        answer(bytes.map(|bytes| put_work(work, bytes)))
    }
    fn cufftSetStream(plan: c_int, stream: *mut c_void) {
        answer(with(plan, |plan| {
            plan.stream = CUstream::from_bits(stream as usize);
            Ok(())
        }))
    }
    fn cufftSetAutoAllocation(plan: c_int, on: c_int) {
        answer(with(plan, |plan| {
            plan.auto = on != 0;
            Ok(())
        }))
    }
    fn cufftSetWorkArea(plan: c_int, area: *mut c_void) {
        answer(with(plan, |plan| {
            plan.free_work();
            let bytes = plan.made.map_or(0, |made| made.work);
            plan.work = if area.is_null() { (0, 0) } else { (area as u64, bytes) };
            Ok(())
        }))
    }
}

// SAFETY: cuFFT's name and signature.
#[unsafe(no_mangle)]
extern "C" fn cufftDestroy(plan: c_int) -> c_int {
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    match plans.get_or_insert_default().remove(&plan) {
        Some(mut plan) => {
            drop(plans);
            plan.free_work();
            0
        }
        None => Status::INVALID_PLAN.0,
    }
}
