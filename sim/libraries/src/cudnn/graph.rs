//! What a graph of operations means: its tensors, convolutions, and what is done to their results
//! element by element.
//!
//! Owns reading it from descriptors, the bytes that it touches, and computing it. An operation that
//! is not known is refused by its name.

use std::collections::HashMap;
use std::ffi::c_int;

use super::attributes::Descriptor;
use super::pointwise::{Function, broadcast};
use super::{BAD_PARAM, Res, not_simulated};
use crate::model::block::Block;
use crate::model::launch::Call;
use crate::numerics::convolution::{Axis, Convolution, Share};
use crate::numerics::memory::Memory;
use crate::numerics::number::{Type, load};
use crate::numerics::tensor::Tensor;

/// Most tensors of a graph.
pub(super) const TENSORS: usize = 16;

/// A tensor of a graph.
#[derive(Debug)]
pub(super) struct Place {
    pub unique: i64,
    pub tensor: Tensor,
    /// It lies nowhere: one operation hands it to another.
    is_virtual: bool,
    /// The program's pointer is to one element on the host.
    by_value: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Filter,
    Data,
}

#[derive(Debug)]
enum Step {
    /// `to = alpha * f(first, second) + beta * to`: of images and filter, of images and slopes, or
    /// of filter and slopes.
    Convolve { direction: Direction, shape: Convolution, first: usize, second: usize, to: usize, factors: [f64; 2] },
    /// `to = f(alpha[0] * first, alpha[1] * second)`.
    Map { function: Function, first: usize, second: Option<usize>, to: usize, factors: [f64; 2] },
}

/// A graph that can be computed.
#[derive(Debug)]
pub(super) struct Graph {
    pub places: Vec<Place>,
    /// In an order in which they can be taken.
    steps: Vec<Step>,
    /// How its launches are named.
    pub name: &'static str,
}

/// Numbers of attributes (`cudnnBackendAttributeName_t`) and of kinds of descriptors.
mod number {
    use std::ffi::c_int;
    pub(super) const FORWARD: c_int = 10;
    pub(super) const BACKWARD_FILTER: c_int = 11;
    pub(super) const BACKWARD_DATA: c_int = 12;
    pub(super) const POINTWISE: c_int = 13;
    pub(super) const DATA_TYPE: c_int = 901;
    pub(super) const DIMENSIONS: c_int = 902;
    pub(super) const STRIDES: c_int = 903;
    pub(super) const VECTOR_COUNT: c_int = 904;
    pub(super) const UNIQUE_ID: c_int = 906;
    pub(super) const IS_VIRTUAL: c_int = 907;
    pub(super) const IS_BY_VALUE: c_int = 908;
    pub(super) const RAGGED: c_int = 913;
}

fn element(number: i32) -> Res<Type> {
    Ok(match number {
        0 => Type::F32,
        1 => Type::F64,
        2 => Type::F16,
        3 => Type::I8,
        4 => Type::I32,
        9 => Type::Bf16,
        _ => return Err(not_simulated(&format!("cudnnDataType_t {number}"))),
    })
}

/// The tensors found so far.
#[derive(Default)]
struct Places(Vec<Place>);

impl Places {
    /// The place of a tensor, which several operations may name.
    fn of(&mut self, descriptor: &Descriptor) -> Res<usize> {
        let unique = *descriptor.ints(number::UNIQUE_ID).first().ok_or(BAD_PARAM)?;
        if let Some(at) = self.0.iter().position(|place| place.unique == unique) {
            return Ok(at);
        }
        if descriptor.ints(number::VECTOR_COUNT).first().is_some_and(|count| *count > 1) {
            return Err(not_simulated("a tensor of vectors (NCHW_VECT_C)"));
        }
        if !descriptor.descriptors(number::RAGGED).is_empty() {
            return Err(not_simulated("a ragged tensor"));
        }
        let kind = element(descriptor.number(number::DATA_TYPE).unwrap_or(-1))?;
        let dims = descriptor.ints(number::DIMENSIONS);
        let strides = descriptor.ints(number::STRIDES);
        if dims.len() != strides.len() || dims.iter().chain(&strides).any(|number| *number < 0) {
            return Err(BAD_PARAM);
        }
        let tensor = Tensor { kind, dims: dims.iter().map(|count| *count as usize).collect(), strides };
        let (is_virtual, by_value) = (descriptor.is(number::IS_VIRTUAL), descriptor.is(number::IS_BY_VALUE));
        if !is_virtual && tensor.block_dims().is_none() {
            return Err(not_simulated("a tensor with gaps in four dimensions"));
        }
        if by_value && tensor.count() != 1 || self.0.len() == TENSORS {
            return Err(not_simulated("a graph of this size"));
        }
        self.0.push(Place { unique, tensor, is_virtual, by_value });
        Ok(self.0.len() - 1)
    }
}

/// The shape of a convolution, by its descriptor, and the tensors of images, filter and result.
fn shape(with: &Descriptor, x: &Tensor, w: &Tensor, y: &Tensor) -> Res<Convolution> {
    let [dilations, strides, after, before] = [102, 103, 104, 105].map(|name| with.ints(name));
    let spatial = strides.len();
    if [&dilations, &after, &before].iter().any(|list| list.len() != spatial)
        || [x, w, y].iter().any(|tensor| tensor.dims.len() != spatial + 2)
    {
        return Err(BAD_PARAM);
    }
    let turned = with.number(101) == Some(0);
    let axis = |at: usize| Axis {
        image: x.dims[at + 2],
        taps: w.dims[at + 2],
        result: y.dims[at + 2],
        before: before[at],
        stride: strides[at],
        dilation: dilations[at],
        turned,
    };
    let groups = x.dims[1].checked_div(w.dims[1]).unwrap_or(0);
    let fits = |at: usize| {
        let reach = dilations[at] * (w.dims[at + 2] as i64 - 1) + 1;
        let results = (x.dims[at + 2] as i64 + before[at] + after[at] - reach) / strides[at].max(1) + 1;
        strides[at] > 0 && dilations[at] > 0 && y.dims[at + 2] as i64 == results.max(0)
    };
    if groups == 0
        || x.dims[1] != groups * w.dims[1]
        || !w.dims[0].is_multiple_of(groups)
        || y.dims[1] != w.dims[0]
        || x.dims[0] != y.dims[0]
        || !(0..spatial).all(fits)
    {
        return Err(BAD_PARAM);
    }
    Ok(Convolution { n: x.dims[0], c: x.dims[1], k: w.dims[0], groups, axes: (0..spatial).map(axis).collect() })
}

impl Graph {
    /// The graph of these operations.
    pub(super) fn new<'d>(operations: impl Iterator<Item = &'d Descriptor>) -> Res<Graph> {
        let (mut places, mut steps, mut name) = (Places::default(), Vec::new(), "cudnnPointwise");
        for operation in operations {
            let step = match operation.kind {
                number::FORWARD => convolution(operation, Direction::Forward, &mut places)?,
                number::BACKWARD_FILTER => convolution(operation, Direction::Filter, &mut places)?,
                number::BACKWARD_DATA => convolution(operation, Direction::Data, &mut places)?,
                number::POINTWISE => {
                    let function = Function::of(operation.descriptor(750)?)?;
                    let first = places.of(operation.descriptor(751)?)?;
                    let second = operation.descriptors(752).first().filter(|_| function.is_binary());
                    let second = second.map(|descriptor| places.of(descriptor)).transpose()?;
                    let to = places.of(operation.descriptor(753)?)?;
                    let factors = [754, 755].map(|name| operation.real(name).unwrap_or(1.0));
                    if function.is_binary() != second.is_some() {
                        return Err(BAD_PARAM);
                    }
                    Step::Map { function, first, second, to, factors }
                }
                other => return Err(not_simulated(&format!("an operation of {}", kind_name(other)))),
            };
            if let Step::Convolve { direction, .. } = &step {
                name = match direction {
                    Direction::Forward => "cudnnConvolutionForward",
                    Direction::Filter => "cudnnConvolutionBackwardFilter",
                    Direction::Data => "cudnnConvolutionBackwardData",
                };
            }
            steps.push(step);
        }
        let places = places.0;
        check(&places, &steps)?;
        Ok(Graph { steps: sorted(&places, steps)?, places, name })
    }

    /// What launching it touches, at these addresses of its tensors.
    pub(super) fn blocks(&self, at: &[u64; TENSORS]) -> Vec<Block> {
        let mut out = Vec::new();
        for (index, place) in self.wanted().filter(|(_, place)| !place.by_value) {
            let (tensor, at) = (&place.tensor, at[index]);
            for step in &self.steps {
                match step {
                    Step::Convolve { direction, shape, first, second, to, factors } => {
                        let reads = match direction {
                            Direction::Forward => [0, 1],
                            Direction::Filter => [0, 2],
                            Direction::Data => [1, 2],
                        };
                        for (of, what) in [first, second].into_iter().zip(reads) {
                            let parts: Vec<Share> = shape.axes.iter().map(|axis| axis.parts()[what]).collect();
                            out.extend((*of == index).then(|| tensor.read_parts(at, &parts)).flatten());
                        }
                        out.extend((*to == index).then(|| tensor.write_block(at, factors[1] != 0.0)).flatten());
                    }
                    Step::Map { first, second, to, .. } => {
                        let reads = *first == index || *second == Some(index);
                        out.extend(reads.then(|| tensor.read_block(at)).flatten());
                        out.extend((*to == index).then(|| tensor.write_block(at, false)).flatten());
                    }
                }
            }
        }
        out
    }

    fn run(&self, memory: &Memory<'_>, at: &[u64; TENSORS]) -> Option<()> {
        let mut passed: HashMap<usize, Vec<f64>> = HashMap::new();
        for step in &self.steps {
            let (to, values) = match step {
                Step::Convolve { direction, shape, first, second, to, factors } => {
                    let first = self.values(memory, at, &mut passed, *first)?;
                    let second = self.values(memory, at, &mut passed, *second)?;
                    let mut values = match direction {
                        Direction::Forward => shape.forward(&first, &second),
                        Direction::Filter => shape.backward_filter(&first, &second),
                        Direction::Data => shape.backward_data(&first, &second),
                    };
                    let [alpha, beta] = *factors;
                    values.iter_mut().for_each(|value| *value *= alpha);
                    if beta != 0.0 {
                        let before = self.values(memory, at, &mut passed, *to)?;
                        values.iter_mut().zip(before).for_each(|(value, before)| *value += beta * before);
                    }
                    (*to, values)
                }
                Step::Map { function, first, second, to, factors } => {
                    let dims = &self.places[*to].tensor.dims;
                    let mut spread = |of: usize| {
                        let values = self.values(memory, at, &mut passed, of)?;
                        Some(broadcast(values, &self.places[of].tensor.dims, dims))
                    };
                    let mut values = spread(*first)?;
                    values.iter_mut().for_each(|value| *value *= factors[0]);
                    match second {
                        Some(second) => {
                            let second = spread(*second)?;
                            let both = values.iter_mut().zip(second);
                            both.for_each(|(value, other)| *value = function.at(*value, factors[1] * other));
                        }
                        None => values.iter_mut().for_each(|value| *value = function.at(*value, 0.0)),
                    }
                    (*to, values)
                }
            };
            if !self.places[to].is_virtual {
                self.places[to].tensor.store(memory, at[to], &values)?;
            }
            passed.insert(to, values);
        }
        Some(())
    }

    /// The elements of a tensor.
    fn values(
        &self,
        memory: &Memory<'_>,
        at: &[u64; TENSORS],
        passed: &mut HashMap<usize, Vec<f64>>,
        of: usize,
    ) -> Option<Vec<f64>> {
        if let Some(values) = passed.get(&of) {
            return Some(values.clone());
        }
        match &self.places[of] {
            place if place.by_value => Some(vec![f64::from_bits(at[of])]),
            place => place.tensor.load(memory, at[of]),
        }
    }

    /// What a launch gets for a pointer of the program: the address, or the value at it.
    ///
    /// # Safety
    /// An element lies at the pointer of a tensor by value.
    pub(super) unsafe fn argument(&self, index: usize, pointer: u64) -> u64 {
        let place = &self.places[index];
        match place.by_value && pointer != 0 {
            // SAFETY: the caller's promise.
            true => unsafe { load::<f64>(pointer as *const u8, place.tensor.kind) }.to_bits(),
            false => pointer,
        }
    }

    /// The tensors that need an address.
    pub(super) fn wanted(&self) -> impl Iterator<Item = (usize, &Place)> {
        self.places.iter().enumerate().filter(|(_, place)| !place.is_virtual)
    }
}

fn convolution(operation: &Descriptor, direction: Direction, places: &mut Places) -> Res<Step> {
    // Of alpha, beta, descriptor, images, filter and result.
    let [alpha, beta, with, x, w, y] = match direction {
        Direction::Forward => [700, 701, 702, 704, 703, 705],
        Direction::Data => [706, 707, 708, 710, 709, 711],
        Direction::Filter => [712, 713, 714, 716, 715, 717],
    };
    let factors = [operation.real(alpha).unwrap_or(1.0), operation.real(beta).unwrap_or(0.0)];
    let [x, w, y] = [x, w, y].map(|name| operation.descriptor(name).and_then(|tensor| places.of(tensor)));
    let (x, w, y) = (x?, w?, y?);
    let tensor = |at: usize| &places.0[at].tensor;
    let shape = shape(operation.descriptor(with)?, tensor(x), tensor(w), tensor(y))?;
    let (first, second, to) = match direction {
        Direction::Forward => (x, w, y),
        Direction::Filter => (x, y, w),
        Direction::Data => (w, y, x),
    };
    Ok(Step::Convolve { direction, shape, first, second, to, factors })
}

/// Steps write each tensor once, and elements are there to be spread.
fn check(places: &[Place], steps: &[Step]) -> Res<()> {
    let mut written = vec![false; places.len()];
    for step in steps {
        let (Step::Convolve { to, .. } | Step::Map { to, .. }) = step;
        if std::mem::replace(&mut written[*to], true) || places[*to].by_value {
            return Err(BAD_PARAM);
        }
        if let Step::Map { first, second, to, .. } = step {
            let dims = &places[*to].tensor.dims;
            for of in std::iter::once(first).chain(second) {
                let from = &places[*of].tensor.dims;
                if from.len() != dims.len() || from.iter().zip(dims).any(|(one, all)| one != all && *one != 1) {
                    return Err(BAD_PARAM);
                }
            }
        }
    }
    Ok(())
}

/// The steps so that what one reads was written before.
fn sorted(places: &[Place], mut steps: Vec<Step>) -> Res<Vec<Step>> {
    let mut out: Vec<Step> = Vec::new();
    while !steps.is_empty() {
        let writes = |step: &Step, of: usize| {
            let (Step::Convolve { to, .. } | Step::Map { to, .. }) = step;
            *to == of
        };
        let is_ready = |at: usize| {
            let reads = match &steps[at] {
                Step::Convolve { first, second, .. } => [Some(*first), Some(*second)],
                Step::Map { first, second, .. } => [Some(*first), *second],
            };
            let waits = |of: usize| steps.iter().enumerate().any(|(other, step)| other != at && writes(step, of));
            let known = |of: usize| !places[of].is_virtual || out.iter().any(|step| writes(step, of));
            reads.into_iter().flatten().all(|of| !waits(of) && known(of))
        };
        let next = (0..steps.len()).find(|at| is_ready(*at)).ok_or(BAD_PARAM)?;
        out.push(steps.remove(next));
    }
    Ok(out)
}

/// What a kind of descriptor is called.
pub(super) fn kind_name(kind: c_int) -> String {
    let name = match kind {
        14 => "GEN_STATS",
        19 => "MATMUL",
        20 => "BN_FINALIZE_STATISTICS",
        22 => "REDUCTION",
        23 => "BN_BWD_WEIGHTS",
        25 => "RESAMPLE_FWD",
        26 => "RESAMPLE_BWD",
        27 => "CONCAT",
        28 => "SIGNAL",
        29 => "NORM_FORWARD",
        30 => "NORM_BACKWARD",
        31 => "RESHAPE",
        33 => "RNG",
        41 => "SDPA_FWD",
        _ => return format!("cudnnBackendDescriptorType_t {kind}"),
    };
    format!("CUDNN_BACKEND_OPERATION_{name}_DESCRIPTOR")
}

/// A launch of a graph.
#[derive(Clone, Copy)]
pub(super) struct Launch {
    pub graph: &'static Graph,
    pub at: [u64; TENSORS],
}

impl Call for Launch {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        self.graph.run(memory, &self.at)
    }
}
