//! Every function that copies, between every two kinds of sides, against a model of a few lines:
//! which bytes the op in the trace reads and writes.
//!
//! The calls are generated and made under the driver without a GPU.

use std::collections::{BTreeMap, BTreeSet};

use cuda_sys::*;
use tests::build;
use tests::scripted::{Random, Script};
use trace::{ArrayId, Op, Region};

/// An opaque array of the program.
#[derive(Clone, Copy)]
struct Array {
    handle: u64,
    element: u64,
    row: u64,
    rows: u64,
    slices: u64,
}

/// Where one side of a copy is.
#[derive(Clone, Copy)]
enum Place {
    Memory { kind: CUmemorytype, base: u64, pitch: u64, height: u64 },
    Array(Array),
}

/// One side: where, and from which byte, row and slice on.
#[derive(Clone, Copy)]
struct Side {
    place: Place,
    at: (u64, u64, u64),
}

/// Which memory bytes belong to: an array's handle, or 0.
type Bytes = (u64, BTreeSet<u64>);

/// THE MODEL: each byte of the extent by its own address.
fn bytes(side: &Side, (width, rows, slices): (u64, u64, u64)) -> Bytes {
    let (home, start, pitch, slice) = match side.place {
        Place::Memory { base, pitch, height, .. } => (0, base, pitch, pitch * height),
        Place::Array(a) => (a.handle, 0, a.row, a.row * a.rows),
    };
    let mut all = BTreeSet::new();
    for z in 0..slices {
        for y in 0..rows {
            for x in 0..width {
                all.insert(start + (side.at.2 + z) * slice + (side.at.1 + y) * pitch + side.at.0 + x);
            }
        }
    }
    (home, all)
}

/// The bytes of an op's region.
fn recorded(region: &Region, arrays: &BTreeMap<ArrayId, u64>) -> Bytes {
    let mut all = BTreeSet::new();
    for z in 0..u64::from(region.depth) {
        for y in 0..u64::from(region.height) {
            let start = region.start + z * region.slice_pitch + y * region.pitch;
            all.extend(start..start + region.width);
        }
    }
    (arrays.get(&region.array).copied().unwrap_or(0), all)
}

/// The arrays: of each kind, of some formats, and made by each function or unseen.
fn arrays(script: &mut Script, random: &mut Random) -> Vec<Array> {
    let formats = [
        (CU_AD_FORMAT_UNSIGNED_INT8, 1),
        (CU_AD_FORMAT_HALF, 2),
        (CU_AD_FORMAT_FLOAT, 4),
        (CU_AD_FORMAT_SNORM_INT16X2, 2),
        (CU_AD_FORMAT_UNORM_INT8X4, 1),
    ];
    // Of one, two and three dimensions; layers of one and of two dimensions; a cube; layers of
    // cubes.
    let extents =
        [(40, 0, 0, 0), (17, 5, 0, 0), (9, 4, 3, 0), (24, 0, 5, 1), (12, 6, 4, 1), (8, 8, 6, 4), (6, 6, 12, 5)];
    let mut made = Vec::new();
    for (index, (width, rows, slices, flags)) in extents.into_iter().enumerate() {
        for (format, channel) in formats {
            let channels = if format == CU_AD_FORMAT_SNORM_INT16X2 { 2 } else { random.of(&[1, 2, 4]) };
            let mut d = CUDA_ARRAY3D_DESCRIPTOR::zeroed();
            (d.Width, d.Height, d.Depth) = (width, rows, slices);
            (d.Format, d.NumChannels, d.Flags) = (format, channels, flags);
            // The driver without a GPU reads an array's descriptor where its handle points.
            let handle = script.put(&d);
            let out = script.put(&handle);
            match (made.len() % 4, slices) {
                // Another API made it: the shim meets it in a copy.
                (0, _) => {}
                (1, 0) => {
                    let mut d = CUDA_ARRAY_DESCRIPTOR::zeroed();
                    (d.Width, d.Height, d.Format, d.NumChannels) = (width, rows, format, channels);
                    let d = script.put(&d);
                    script.answered("cuArrayCreate_v2", 0, &[out, d]);
                }
                (2, 0) => {
                    let mut d = CUDA_ARRAY_DESCRIPTOR_v1::zeroed();
                    (d.Width, d.Height, d.Format, d.NumChannels) = (width as u32, rows as u32, format, channels);
                    let d = script.put(&d);
                    script.answered("cuArrayCreate", 0, &[out, d]);
                }
                (3, _) => {
                    let mut d = CUDA_ARRAY3D_DESCRIPTOR_v1::zeroed();
                    (d.Width, d.Height, d.Depth) = (width as u32, rows as u32, slices as u32);
                    (d.Format, d.NumChannels, d.Flags) = (format, channels, flags);
                    let d = script.put(&d);
                    script.answered("cuArray3DCreate", 0, &[out, d]);
                }
                _ => script.answered("cuArray3DCreate_v2", 0, &[out, handle]),
            }
            let element = channel * u64::from(channels);
            let (row, rows, slices) = (width as u64 * element, rows.max(1) as u64, slices.max(1) as u64);
            assert!(index < 7 && row > 0);
            made.push(Array { handle, element, row, rows, slices });
        }
    }
    made
}

/// A box that both sides hold, and the sides.
fn sides(random: &mut Random, arrays: &[Array], three: bool, kinds: &[CUmemorytype]) -> ((u64, u64, u64), Side, Side) {
    let first = random.of(arrays);
    // Elements of two arrays have one size.
    let same: Vec<Array> = arrays.iter().copied().filter(|a| a.element == first.element).collect();
    let chosen = [first, random.of(&same)];
    let is_array = [random.below(2) == 0, random.below(2) == 0];
    let of_arrays = |get: fn(&Array) -> u64, most: u64| {
        chosen.iter().zip(is_array).filter(|(_, is)| *is).map(|(a, _)| get(a)).min().unwrap_or(most)
    };
    let element = if is_array.contains(&true) { first.element } else { 1 };
    let width = element * (1 + random.below(of_arrays(|a| a.row, 24) / element));
    let rows = 1 + random.below(of_arrays(|a| a.rows, 5));
    let slices = if three { 1 + random.below(of_arrays(|a| a.slices, 3)) } else { 1 };
    let mut make = |index: usize| {
        // Half of the rectangles begin at 0.
        let mut offset = |most: u64| if random.below(2) == 0 { 0 } else { random.below(most + 1) };
        if is_array[index] {
            let a = chosen[index];
            let x = element * offset((a.row - width) / element);
            let at = (x, offset(a.rows - rows), if three { offset(a.slices - slices) } else { 0 });
            return Side { place: Place::Array(a), at };
        }
        let at = (offset(9), offset(3), if three { offset(2) } else { 0 });
        let (pitch, height) = (at.0 + width + offset(13), at.1 + rows + offset(2));
        let base = (0x1000_0000 << index) + 4096 * offset(64);
        Side { place: Place::Memory { kind: random.of(kinds), base, pitch, height }, at }
    };
    let (to, from) = (make(0), make(1));
    ((width, rows, slices), to, from)
}

/// Fills in a descriptor; those of two dimensions have no slices.
macro_rules! descriptor {
    ($script:ident, $ty:ty, $size:ty, $pointer:ty, $depth:tt, $extent:ident, $to:ident, $from:ident, $random:ident) => {{
        let mut d = <$ty>::zeroed();
        (d.WidthInBytes, d.Height) = ($extent.0 as $size, $extent.1 as $size);
        // What a descriptor says of the pitch of an array is nothing.
        let nonsense = $random.below(1000) as $size;
        match $to.place {
            Place::Memory { kind, base, pitch, height: _height } => {
                d.dstMemoryType = kind;
                if kind == CU_MEMORYTYPE_HOST { d.dstHost = base as *mut c_void } else { d.dstDevice = base as $pointer }
                d.dstPitch = pitch as $size;
                descriptor!(@slices $depth d.dstHeight = _height as $size);
            }
            Place::Array(a) => {
                (d.dstMemoryType, d.dstArray, d.dstPitch) = (CU_MEMORYTYPE_ARRAY, CUarray(a.handle as *mut _), nonsense);
                descriptor!(@slices $depth d.dstHeight = nonsense);
            }
        }
        match $from.place {
            Place::Memory { kind, base, pitch, height: _height } => {
                d.srcMemoryType = kind;
                if kind == CU_MEMORYTYPE_HOST { d.srcHost = base as *const c_void } else { d.srcDevice = base as $pointer }
                d.srcPitch = pitch as $size;
                descriptor!(@slices $depth d.srcHeight = _height as $size);
            }
            Place::Array(a) => {
                (d.srcMemoryType, d.srcArray, d.srcPitch) = (CU_MEMORYTYPE_ARRAY, CUarray(a.handle as *mut _), nonsense);
                descriptor!(@slices $depth d.srcHeight = nonsense);
            }
        }
        (d.dstXInBytes, d.dstY) = ($to.at.0 as $size, $to.at.1 as $size);
        (d.srcXInBytes, d.srcY) = ($from.at.0 as $size, $from.at.1 as $size);
        descriptor!(@slices $depth d.dstZ = $to.at.2 as $size);
        descriptor!(@slices $depth d.srcZ = $from.at.2 as $size);
        descriptor!(@slices $depth d.Depth = $extent.2 as $size);
        $script.put(&d)
    }};
    (@slices yes $($set:tt)*) => { $($set)* };
    (@slices no $($set:tt)*) => {};
}

/// An operand of the batched copies: in elements.
fn operand(side: &Side, element: u64) -> CUmemcpy3DOperand {
    let mut o = CUmemcpy3DOperand::zeroed();
    match side.place {
        Place::Memory { base, pitch, height, .. } => {
            // It has no offsets of its own.
            o.type_ = CU_MEMCPY_OPERAND_TYPE_POINTER;
            let ptr = base + side.at.0 + side.at.1 * pitch + side.at.2 * pitch * height;
            let mut part = CUmemcpy3DOperand_v1_op_ptr::zeroed();
            (part.ptr, part.rowLength, part.layerHeight) = (ptr, (pitch / element) as usize, height as usize);
            o.op.ptr = part;
        }
        Place::Array(a) => {
            o.type_ = CU_MEMCPY_OPERAND_TYPE_ARRAY;
            let offset = CUoffset3D { x: (side.at.0 / element) as usize, y: side.at.1 as usize, z: side.at.2 as usize };
            o.op.array = CUmemcpy3DOperand_v1_op_array { array: CUarray(a.handle as *mut _), offset };
        }
    }
    o
}

/// An address of memory as a side of one row.
fn linear(base: u64) -> Side {
    Side { place: Place::Memory { kind: CU_MEMORYTYPE_UNIFIED, base, pitch: 1 << 20, height: 1 }, at: (0, 0, 0) }
}

/// What a call must leave: its symbol, and the two sides of each of its copies.
type Wanted = (&'static str, Vec<(Bytes, Bytes)>);

struct Cases {
    script: Script,
    random: Random,
    arrays: Vec<Array>,
    stream: u64,
    wanted: Vec<Wanted>,
}

impl Cases {
    fn call(&mut self, symbol: &'static str, arguments: &[u64], copies: &[((u64, u64, u64), Side, Side)]) {
        self.script.answered(symbol, 0, arguments);
        let copies = copies.iter().map(|(extent, to, from)| (bytes(to, *extent), bytes(from, *extent)));
        self.wanted.push((symbol, copies.collect()));
    }

    /// A copy with a descriptor.
    fn boxed(&mut self, symbol: &'static str, row: &str) {
        let three = row.contains("3D");
        let kinds: &[CUmemorytype] = if row.contains("Peer") {
            &[CU_MEMORYTYPE_DEVICE]
        } else {
            &[CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_UNIFIED]
        };
        let Self { script, random, arrays, .. } = self;
        let (extent, to, from) = sides(random, arrays, three, kinds);
        let d = if row.contains("Peer") {
            descriptor!(script, CUDA_MEMCPY3D_PEER, usize, u64, yes, extent, to, from, random)
        } else {
            match (three, row.ends_with("_v2")) {
                (true, true) => descriptor!(script, CUDA_MEMCPY3D, usize, u64, yes, extent, to, from, random),
                (true, false) => descriptor!(script, CUDA_MEMCPY3D_v1, u32, u32, yes, extent, to, from, random),
                (false, true) => descriptor!(script, CUDA_MEMCPY2D, usize, u64, no, extent, to, from, random),
                (false, false) => descriptor!(script, CUDA_MEMCPY2D_v1, u32, u32, no, extent, to, from, random),
            }
        };
        self.call(symbol, &[d, self.stream], &[(extent, to, from)]);
    }

    /// A batch of copies in three dimensions, or one.
    fn boxes_of_elements(&mut self, symbol: &'static str, row: &str) {
        let one = row.contains("WithAttributes");
        let count = if one { 1 } else { 1 + self.random.below(3) };
        let (mut ops, mut copies) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let ((mut width, rows, slices), mut to, mut from) =
                sides(&mut self.random, &self.arrays, true, &[CU_MEMORYTYPE_UNIFIED]);
            let element =
                [to, from].iter().find_map(|s| if let Place::Array(a) = s.place { Some(a.element) } else { None });
            let element = element.unwrap_or(1);
            width = width / element * element;
            for side in [&mut to, &mut from] {
                if let Place::Memory { pitch, .. } = &mut side.place {
                    *pitch = pitch.next_multiple_of(element);
                }
            }
            let mut op = CUDA_MEMCPY3D_BATCH_OP::zeroed();
            (op.dst, op.src) = (operand(&to, element), operand(&from, element));
            op.extent = CUextent3D { width: (width / element) as usize, height: rows as usize, depth: slices as usize };
            op.srcAccessOrder = self.random.of(&[
                CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
                CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
                CU_MEMCPY_SRC_ACCESS_ORDER_ANY,
            ]);
            ops.push(op);
            copies.push(((width, rows, slices), to, from));
        }
        let ops = self.script.put_all(&ops);
        let arguments = match row {
            "cuMemcpy3DWithAttributesAsync" => vec![ops, 0, self.stream],
            "cuMemcpy3DBatchAsync" => vec![count, ops, 0, 0, self.stream],
            _ => vec![count, ops, 0, self.stream],
        };
        self.call(symbol, &arguments, &copies);
    }

    /// A batch of linear copies.
    fn batch(&mut self, symbol: &'static str, row: &str) {
        let count = 1 + self.random.below(4);
        let lengths: Vec<u64> = (0..count).map(|_| 1 + self.random.below(300)).collect();
        let address = |base: u64, i: u64| base + 4096 * i + 8;
        let to = self.script.put_all(&(0..count).map(|i| address(0x1000_0000, i)).collect::<Vec<_>>());
        let from = self.script.put_all(&(0..count).map(|i| address(0x2000_0000, i)).collect::<Vec<_>>());
        let sizes = self.script.put_all(&lengths);
        let mut attributes = CUmemcpyAttributes::zeroed();
        attributes.srcAccessOrder =
            self.random.of(&[CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, CU_MEMCPY_SRC_ACCESS_ORDER_ANY]);
        let (attributes, starts) = (self.script.put(&attributes), self.script.put(&0_u64));
        let mut arguments = vec![to, from, sizes, count, attributes, starts, 1];
        arguments.extend((!row.ends_with("_v2")).then_some(0));
        arguments.push(self.stream);
        let copies: Vec<_> = (0..count)
            .map(|i| ((lengths[i as usize], 1, 1), linear(address(0x1000_0000, i)), linear(address(0x2000_0000, i))))
            .collect();
        self.call(symbol, &arguments, &copies);
    }

    /// A copy of bytes in a row.
    fn row_of_bytes(&mut self, symbol: &'static str, row: &str) {
        let single: Vec<Array> = self.arrays.iter().copied().filter(|a| a.rows == 1 && a.slices == 1).collect();
        let (name, stream) = (row.trim_end_matches("_v2").trim_start_matches("cuMemcpy"), self.stream);
        let (a, b) = (self.random.of(&single), self.random.of(&single));
        let letters: Vec<char> = name.trim_end_matches("Async").chars().collect();
        let is_array = |at: usize| letters.len() == 4 && letters[at] == 'A';
        let least = [(a, 0), (b, 3)].iter().filter(|(_, at)| is_array(3 - at)).map(|(a, _)| a.row).min().unwrap_or(500);
        let len = 1 + self.random.below(least);
        let mut arguments = Vec::new();
        let mut side = |at: usize, array: Array, base: u64, random: &mut Random| {
            if is_array(at) {
                let x = random.below(array.row - len + 1);
                arguments.extend([array.handle, x]);
                return Side { place: Place::Array(array), at: (x, 0, 0) };
            }
            let base = base + 8 * random.below(100);
            arguments.push(base);
            if name.starts_with("Peer") {
                arguments.push(0);
            }
            linear(base)
        };
        let to = side(3, a, 0x1000_0000, &mut self.random);
        let from = side(0, b, 0x2000_0000, &mut self.random);
        arguments.push(len);
        if name == "WithAttributesAsync" {
            let attributes = CUmemcpyAttributes::zeroed();
            arguments.push(self.script.put(&attributes));
        }
        arguments.push(stream);
        self.call(symbol, &arguments, &[((len, 1, 1), to, from)]);
    }
}

#[test]
fn each_copy_reads_and_writes_the_bytes_that_the_manual_says() {
    let mut script = Script::default();
    let mut random = Random(0x5eed_0001);
    let arrays = arrays(&mut script, &mut random);
    // A stream that the shim meets in a copy: any memory.
    let stream = script.zeros(256);
    let mut cases = Cases { script, random, arrays, stream, wanted: Vec::new() };
    let copies = DRIVER_FUNCTIONS.iter().filter(|f| f.name.starts_with("cuMemcpy"));
    for function in copies {
        let (symbol, row) = (function.name, function.row);
        let is_boxed = ["cuMemcpy2D", "cuMemcpy3D"].iter().any(|name| row.starts_with(name));
        for _ in 0..if is_boxed { 60 } else { 8 } {
            match row {
                _ if row.contains("3DBatch") || row.contains("3DWith") => cases.boxes_of_elements(symbol, row),
                _ if is_boxed => cases.boxed(symbol, row),
                _ if row.contains("Batch") => cases.batch(symbol, row),
                _ => cases.row_of_bytes(symbol, row),
            }
        }
    }
    let (mut ids, mut got) = (BTreeMap::new(), Vec::<Wanted>::new());
    let folder = build::scratch("copied-bytes");
    let mut done: Vec<(String, Region, Region)> = Vec::new();
    cases.script.record(&folder, |call, op| match *op {
        Op::ArrayCreate { array, handle, .. } => {
            ids.insert(array, handle);
        }
        Op::Copy { dst, src, .. } | Op::AttributedCopy { dst, src, .. } => done.push((call.to_owned(), dst, src)),
        _ => {}
    });
    let mut done = done.into_iter();
    for (symbol, copies) in &cases.wanted {
        let mut of_call = Vec::new();
        for _ in copies {
            let (call, dst, src) = done.next().unwrap_or_else(|| panic!("{symbol}: no op"));
            assert_eq!(call, *symbol);
            of_call.push((recorded(&dst, &ids), recorded(&src, &ids)));
        }
        assert!(of_call == *copies, "{symbol}, call {}:\n{of_call:?}\nwanted\n{copies:?}", got.len());
        got.push((symbol, of_call));
    }
    assert!(done.next().is_none());
    println!("{} calls of {} symbols", got.len(), got.iter().map(|(s, _)| s).collect::<BTreeSet<_>>().len());
    assert!(got.len() > 1500);
}
