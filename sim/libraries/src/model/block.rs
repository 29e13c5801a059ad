//! A block of elements in up to three dimensions, as a launch of a model gets it.
//!
//! Owns the normal form: dimensions that join up become one, and the longest comes first, because a
//! grid has room for many blocks in x only.

/// How elements are touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Touch {
    /// Read.
    Read,
    /// Written, and read before where the launch says so.
    Write,
    /// Perhaps written: a buffer that the library may use as it likes.
    Scratch,
    /// Perhaps read: some of its elements have no part in what is computed.
    Part,
}

/// Which part of a square of rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// All of it.
    Full,
    /// Rows not above the diagonal.
    Lower,
    /// Rows not below the diagonal.
    Upper,
}

/// What the PTX of a model is generated from: how one block is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Shape {
    /// How.
    pub touch: Touch,
    /// Bytes of an element: 1, 2, 4, 8 or 16.
    pub bytes: u8,
    /// Which elements of the first two dimensions.
    pub part: Part,
    /// The base is an array of addresses, one for each index of the third dimension.
    pub by_pointer: bool,
}

/// One dimension: how many, and how many bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim {
    /// Number of indices.
    pub count: u64,
    /// Bytes from one to the next.
    pub stride: i64,
}

/// A block of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// How its elements are touched.
    pub shape: Shape,
    /// Address of the first element, or of the array of addresses.
    pub base: u64,
    /// Rows, columns, batch.
    pub dims: [Dim; 3],
    /// For [`Touch::Write`]: the elements are read too.
    pub reads: bool,
    /// For triangles: how far from the diagonal elements begin. 1 leaves the diagonal out.
    pub skip: u32,
}

/// A dimension of one index.
pub const ONE: Dim = Dim { count: 1, stride: 0 };

/// Bytes of a block in the parameters of a model.
pub const BYTES: usize = 56;

impl Block {
    /// A block that is read.
    pub fn read(base: u64, bytes: u8, dims: [Dim; 3]) -> Block {
        Block::new(Touch::Read, base, bytes, dims)
    }

    /// A block that is written; `reads`: and read before.
    pub fn write(base: u64, bytes: u8, dims: [Dim; 3], reads: bool) -> Block {
        Block { reads, ..Block::new(Touch::Write, base, bytes, dims) }
    }

    /// A buffer of which any byte may be written.
    pub fn scratch(base: u64, size: u64) -> Block {
        Block::new(Touch::Scratch, base, 4, [Dim { count: size / 4, stride: 4 }, ONE, ONE])
    }

    /// The same block where some of its elements may not be read.
    pub fn in_part(mut self) -> Block {
        self.shape.touch = Touch::Part;
        self
    }

    fn new(touch: Touch, base: u64, bytes: u8, dims: [Dim; 3]) -> Block {
        let shape = Shape { touch, bytes, part: Part::Full, by_pointer: false };
        Block { shape, base, dims, reads: false, skip: 0 }
    }

    /// The same where the base is an array of addresses.
    pub fn by_pointer(mut self, by_pointer: bool) -> Block {
        self.shape.by_pointer = by_pointer;
        self
    }

    /// The same of a triangle only, whose diagonal counts if `diagonal`.
    pub fn part(mut self, part: Part, diagonal: bool) -> Block {
        self.shape.part = part;
        self.skip = u32::from(!diagonal);
        self
    }

    /// Nothing is touched.
    pub fn is_empty(&self) -> bool {
        self.base == 0 || self.dims.iter().any(|dim| dim.count == 0)
    }

    /// The normal form: what joins up is one dimension, negative strides are turned round, the
    /// longest dimension comes first.
    pub fn normal(mut self) -> Block {
        if self.is_empty() {
            return Block { dims: [Dim { count: 0, stride: 0 }; 3], ..self };
        }
        if self.shape.part != Part::Full {
            return self;
        }
        // The addresses of a batch stay apart from what lies at each.
        let free = if self.shape.by_pointer { 2 } else { 3 };
        if !self.shape.by_pointer {
            for dim in self.dims.iter_mut().filter(|dim| dim.stride < 0) {
                self.base = self.base.wrapping_add_signed(dim.stride * (dim.count as i64 - 1));
                dim.stride = -dim.stride;
            }
        }
        let mut dims: Vec<Dim> = self.dims[..free].iter().copied().filter(|dim| dim.count > 1).collect();
        dims.sort_by_key(|dim| dim.stride);
        let mut joined: Vec<Dim> = Vec::new();
        for dim in dims {
            match joined.last_mut() {
                Some(last) if last.stride * last.count as i64 == dim.stride => last.count *= dim.count,
                // The same elements over and over.
                _ if dim.stride == 0 => {}
                _ => joined.push(dim),
            }
        }
        joined.sort_by_key(|dim| std::cmp::Reverse(dim.count));
        // A stride that is not zero, although nothing is multiplied by it: so an index that decides
        // whether an element is touched is part of its address, and the address is exact.
        joined.resize(free, Dim { count: 1, stride: i64::from(self.shape.bytes) });
        self.dims[..free].copy_from_slice(&joined);
        self
    }

    /// The form in the parameters of a launch; see `text` for the fields.
    pub fn param(&self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        out[..8].copy_from_slice(&self.base.to_le_bytes());
        for (at, dim) in self.dims.iter().enumerate() {
            out[8 + 8 * at..][..8].copy_from_slice(&dim.stride.to_le_bytes());
            let count = u32::try_from(dim.count).unwrap_or(u32::MAX);
            out[32 + 4 * at..][..4].copy_from_slice(&count.to_le_bytes());
        }
        out[44..48].copy_from_slice(&u32::from(self.reads).to_le_bytes());
        out[48..52].copy_from_slice(&self.skip.to_le_bytes());
        out
    }
}
