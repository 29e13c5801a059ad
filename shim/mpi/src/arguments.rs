//! The arguments of a call, as words, and how to read them in C and in Fortran.
//!
//! Owns nothing but that. In C an argument is its word; the variants with large counts
//! (`MPI_Send_c`) have 64 bits where the others have 32. In Fortran each argument is an address;
//! integers have 32 bits, addresses and displacements 64.

use std::ffi::c_int;

use super::abi::{self, Abi, HandleKind, Marker};

/// How a function takes its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// C.
    C,
    /// C, with `MPI_Count` for counts and `MPI_Aint` for displacements.
    LargeCount,
    /// Fortran: `mpif.h`, `use mpi`, and `use mpi_f08` of Open MPI. That of MPICH calls C.
    Fortran,
}

/// The arguments of one call.
pub struct Arguments<'a> {
    /// The library.
    pub abi: &'static Abi,
    /// The language of the function.
    pub language: Language,
    words: &'a [usize],
}

impl<'a> Arguments<'a> {
    /// # Safety
    /// The words are those of a call of MPI that the program has just made, by this language.
    pub unsafe fn new(abi: &'static Abi, language: Language, words: &'a [usize]) -> Self {
        Self { abi, language, words }
    }

    /// An argument's word.
    pub fn word(&self, at: usize) -> usize {
        self.words.get(at).copied().unwrap_or(0)
    }

    fn read<T: Copy>(address: usize) -> Option<T> {
        // SAFETY: an address that the program passes to MPI for a value to be read or filled in:
        // what `new` promises. Null stands for none (MPI_UNWEIGHTED and its like are not read).
        (address != 0).then(|| unsafe { (address as *const T).read_unaligned() })
    }

    /// A rank, a flag or another small number.
    pub fn int(&self, at: usize) -> c_int {
        match self.language {
            Language::Fortran => Self::read(self.word(at)).unwrap_or(0),
            Language::C | Language::LargeCount => self.word(at) as c_int,
        }
    }

    /// A count of elements; negative ones count as none.
    pub fn count(&self, at: usize) -> u64 {
        let count = match self.language {
            Language::LargeCount => self.word(at) as i64,
            Language::C | Language::Fortran => i64::from(self.int(at)),
        };
        u64::try_from(count).unwrap_or(0)
    }

    /// An element of an array of counts.
    pub fn count_in(&self, at: usize, index: usize) -> u64 {
        u64::try_from(self.displacement_in(at, index)).unwrap_or(0)
    }

    /// An element of an array of displacements.
    pub fn displacement_in(&self, at: usize, index: usize) -> i64 {
        let array = self.word(at);
        if array == 0 {
            return 0;
        }
        match self.language {
            Language::LargeCount => Self::read(array + 8 * index).unwrap_or(0),
            Language::C | Language::Fortran => Self::read::<c_int>(array + 4 * index).map_or(0, i64::from),
        }
    }

    /// An element of an array of `MPI_Aint`, in every language.
    pub fn address_in(&self, at: usize, index: usize) -> i64 {
        match self.word(at) {
            0 => 0,
            array => Self::read(array + 8 * index).unwrap_or(0),
        }
    }

    /// An element of an array of `int` that the call has filled in; in Fortran it counts from 1.
    pub fn index_in(&self, at: usize, index: usize) -> c_int {
        let filled = Self::read(self.word(at).wrapping_add(4 * index)).unwrap_or(self.abi.undefined);
        self.zero_based(filled)
    }

    /// An `int` that the call has filled in.
    pub fn filled(&self, at: usize) -> c_int {
        Self::read(self.word(at)).unwrap_or(0)
    }

    /// An index that counts from 0, from one of this language; negative ones stay.
    pub fn zero_based(&self, index: c_int) -> c_int {
        if self.language == Language::Fortran && index > 0 { index - 1 } else { index }
    }

    /// A handle.
    pub fn handle(&self, at: usize, kind: HandleKind) -> usize {
        let word = match self.language {
            Language::Fortran => self.int(at) as usize,
            Language::C | Language::LargeCount => self.word(at),
        };
        self.abi.handle_of(self.language, kind, word)
    }

    /// A handle that an argument is the address of, in C as in Fortran; or an element of an array.
    pub fn handle_in(&self, at: usize, index: usize, kind: HandleKind) -> usize {
        let array = self.word(at);
        let word = if self.language == Language::Fortran || self.abi.handle == 4 {
            Self::read::<u32>(array.wrapping_add(4 * index)).unwrap_or(0) as usize
        } else {
            Self::read::<usize>(array.wrapping_add(8 * index)).unwrap_or(0)
        };
        self.abi.handle_of(self.language, kind, word)
    }

    /// A number of 64 bits in every language: counts of partitions' elements.
    pub fn long(&self, at: usize) -> i64 {
        match self.language {
            Language::Fortran => Self::read(self.word(at)).unwrap_or(0),
            Language::C | Language::LargeCount => self.word(at) as i64,
        }
    }

    /// An offset in bytes that an argument is the address of: where packing has come to.
    pub fn position(&self, at: usize) -> i64 {
        match self.language {
            Language::LargeCount => Self::read(self.word(at)).unwrap_or(0),
            Language::C | Language::Fortran => Self::read::<c_int>(self.word(at)).map_or(0, i64::from),
        }
    }

    /// A handle's own word: what tells files apart, in each language by itself.
    pub fn raw_handle(&self, at: usize) -> usize {
        match self.language {
            Language::Fortran => self.int(at) as u32 as usize,
            Language::C | Language::LargeCount => self.word(at),
        }
    }

    /// The address of a buffer, as it would be in C: `MPI_BOTTOM` is 0.
    pub fn buffer(&self, at: usize) -> usize {
        let word = self.word(at);
        if self.language == Language::Fortran && abi::is_marker(word, Marker::Bottom) { 0 } else { word }
    }

    /// Whether a buffer is `MPI_IN_PLACE`.
    pub fn is_in_place(&self, at: usize) -> bool {
        match self.language {
            Language::Fortran => abi::is_marker(self.word(at), Marker::InPlace),
            Language::C | Language::LargeCount => self.word(at) == self.abi.in_place,
        }
    }
}
