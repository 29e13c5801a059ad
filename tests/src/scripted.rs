//! Calls of the driver that a test writes down, made by one small program under the driver without
//! a GPU: thousands of generated calls cost one process.
//!
//! Owns the script (the calls, and the memory that their arguments point to) and running it. The
//! program is `tests/programs/scripted.c`.

use std::path::{Path, PathBuf};

use crate::run::{Ended, record_with};
use crate::{build, recorded};

/// Where the script's memory is mapped.
const IMAGE: u64 = 0x1000_0000_0000;

/// Arguments of a call: more than any function of the driver has.
const ARGUMENTS: usize = 16;

/// The calls and their memory.
#[derive(Default)]
pub struct Script {
    calls: Vec<u8>,
    image: Vec<u8>,
    count: usize,
}

impl Script {
    /// Puts a structure of the driver into the program's memory. Returns its address.
    pub fn put<T: Copy>(&mut self, value: &T) -> u64 {
        self.image.resize(self.image.len().next_multiple_of(16), 0);
        let at = IMAGE + self.image.len() as u64;
        // SAFETY: the bytes of a plain structure. The tests start from zeroed ones, so those
        // between the members are zeros.
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) };
        self.image.extend_from_slice(bytes);
        at
    }

    /// Puts several of them in a row. Returns the address of the first.
    pub fn put_all<T: Copy>(&mut self, values: &[T]) -> u64 {
        self.image.resize(self.image.len().next_multiple_of(16), 0);
        let at = IMAGE + self.image.len() as u64;
        for value in values {
            // SAFETY: as in [`Script::put`].
            let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast::<u8>(), size_of::<T>()) };
            self.image.extend_from_slice(bytes);
        }
        at
    }

    /// As many zeros.
    pub fn zeros(&mut self, len: usize) -> u64 {
        self.put_all(&vec![0_u8; len])
    }

    /// A call that the driver carries out, and that succeeds.
    pub fn call(&mut self, symbol: &str, arguments: &[u64]) {
        self.push(symbol, -1, 0, arguments);
    }

    /// A call that the driver answers with this, and does not carry out.
    pub fn answered(&mut self, symbol: &str, answer: u32, arguments: &[u64]) {
        self.push(symbol, i64::from(answer), i64::from(answer), arguments);
    }

    fn push(&mut self, symbol: &str, answer: i64, wanted: i64, arguments: &[u64]) {
        assert!(symbol.len() < 64 && arguments.len() <= ARGUMENTS, "{symbol}");
        let mut name = [0; 64];
        name[..symbol.len()].copy_from_slice(symbol.as_bytes());
        self.calls.extend_from_slice(&name);
        self.calls.extend([answer, wanted].iter().flat_map(|n| n.to_le_bytes()));
        let mut all = [0; ARGUMENTS];
        all[..arguments.len()].copy_from_slice(arguments);
        self.calls.extend(all.iter().flat_map(|n| n.to_le_bytes()));
        self.count += 1;
    }

    /// How many calls it has.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The program, and the two files that it reads, written into a folder.
    pub fn written(&self, folder: &Path) -> (PathBuf, [PathBuf; 2]) {
        let files = [folder.join("calls"), folder.join("image")];
        std::fs::write(&files[0], &self.calls).expect("written");
        std::fs::write(&files[1], &self.image).expect("written");
        (build::c_program("scripted.c", &[]), files)
    }

    /// Makes the calls under the shim, and reads what was recorded of them.
    pub fn record(&self, folder: &Path, each: impl FnMut(&str, &trace::Op<'_>)) {
        let (program, files) = self.written(folder);
        let args = files.each_ref().map(|file| file.to_str().expect("a path of our own"));
        let (ended, _) = record_with(folder, &program, &args, |_| {});
        Self::assert_made(&ended);
        recorded::each(&folder.join("run.trace"), each);
    }

    /// Asserts that every call was made and answered as the script says.
    pub fn assert_made(ended: &Ended) {
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    }
}

/// Numbers that look random and are the same in every run.
pub struct Random(pub u64);

impl Random {
    /// Below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound.max(1)
    }

    /// One of these.
    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
