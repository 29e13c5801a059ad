//! Finds NVIDIA's runtime in a file: which of its functions are public, and which version it is.
//!
//! Of a shared runtime that is what it exports. The archive of the static one is one object file,
//! so its functions lie together, and all of them are there or none. Public ones have their names,
//! the others made-up ones. So the runtime is the row of such functions around
//! `__cudaRegisterFatBinary` that no other function interrupts, from the first private one to the
//! last. Functions of the program may be called `cudaSomething` too: they lie outside. A library
//! that only wraps the runtime has no private names.

use crate::objects::elf::{Function, Symbols};
use crate::version::Version;

const ANCHOR: &[u8] = b"__cudaRegisterFatBinary";
/// Names of its private functions begin with one of these, since 12 with the first.
const PRIVATE: [&[u8]; 2] = [b"libcudart_static_", b"__cudart"];

/// A runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// Which it is.
    pub version: Version,
    /// Its first function.
    first: u64,
    /// Its last function.
    last: u64,
}

/// Whether a name may be one of the runtime's functions.
fn is_public(name: &[u8]) -> bool {
    let name = name.strip_prefix(b"__").unwrap_or(name);
    name.strip_prefix(b"cuda").is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_uppercase))
}

/// Behind the beginning comes a hash, or a number up to 11.
fn is_private(name: &[u8]) -> bool {
    let is_number = |rest: &[u8]| rest.first().is_some_and(u8::is_ascii_hexdigit);
    PRIVATE.into_iter().any(|private| name.strip_prefix(private).is_some_and(is_number))
}

impl Runtime {
    /// The runtime that a shared library is.
    pub(crate) fn shared(version: Version) -> Runtime {
        Runtime { version, first: 0, last: u64::MAX }
    }

    /// The static runtime among the functions of a file.
    pub(crate) fn find(symbols: Symbols<'_>) -> Option<Runtime> {
        Self::among(|| symbols.functions())
    }

    fn among<'a, F: Iterator<Item = Function<'a>>>(functions: impl Fn() -> F) -> Option<Runtime> {
        let anchor = functions().find(|function| function.name == ANCHOR)?.address;
        let (mut low, mut high) = (0, u64::MAX);
        for function in functions().filter(|function| !is_public(function.name) && !is_private(function.name)) {
            if function.address < anchor {
                low = low.max(function.address);
            } else {
                high = high.min(function.address);
            }
        }
        let (mut first, mut last) = (u64::MAX, 0);
        for function in functions().filter(|function| is_private(function.name)) {
            if low < function.address && function.address < high {
                first = first.min(function.address);
                last = last.max(function.address);
            }
        }
        let mut runtime = Runtime { version: Version::Thirteen, first, last };
        if !(first..=last).contains(&anchor) {
            return None;
        }
        let has = |name: &[u8]| functions().any(|function| function.name == name && runtime.contains(&function));
        // Texture references went with 12, the old names of threads with 13.
        if has(b"cudaBindTexture") {
            runtime.version = Version::Eleven;
        } else if has(b"cudaThreadSynchronize") {
            runtime.version = Version::Twelve;
        }
        Some(runtime)
    }

    /// Whether it is one of the runtime's public functions.
    pub(crate) fn contains(&self, function: &Function<'_>) -> bool {
        is_public(function.name) && (self.first..=self.last).contains(&function.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(names: &[&str]) -> Option<(Version, Vec<String>)> {
        let functions = |names: &[&str]| {
            let with_address = |(n, name): (usize, &&str)| (name.to_string(), 0x1000 + 16 * n as u64);
            names.iter().enumerate().map(with_address).collect::<Vec<_>>()
        };
        let functions = functions(names);
        // Not in the order of addresses, as in a real table.
        let all = || functions.iter().rev().map(|(name, at)| Function { name: name.as_bytes(), address: *at });
        let runtime = Runtime::among(all)?;
        let mut public: Vec<String> = all()
            .filter(|function| runtime.contains(function))
            .map(|function| String::from_utf8_lossy(function.name).into_owned())
            .collect();
        public.sort();
        Some((runtime.version, public))
    }

    const FIRST: &str = "libcudart_static_1";
    const LAST: &str = "libcudart_static_2";

    #[test]
    fn what_lies_between_its_private_functions_is_the_runtime() {
        let names = ["main", FIRST, "cudaMalloc", "__cudaRegisterFatBinary", LAST, "_fini"];
        let public = vec!["__cudaRegisterFatBinary".to_owned(), "cudaMalloc".to_owned()];
        assert_eq!(find(&names), Some((Version::Thirteen, public)));
    }

    #[test]
    fn functions_of_the_program_stay_its_own() {
        let names = ["cudaMine", FIRST, "__cudaRegisterFatBinary", "cudafoo", LAST, "cudaMineToo", "main"];
        assert_eq!(find(&names), None, "a foreign function in the middle");
        let names = [
            "libcudart_static_0",
            "main",
            "cudaMine",
            FIRST,
            "cudaNew",
            "__cudaRegisterFatBinary",
            LAST,
            "cudaMineToo",
        ];
        let public = vec!["__cudaRegisterFatBinary".to_owned(), "cudaNew".to_owned()];
        assert_eq!(find(&names), Some((Version::Thirteen, public)));
    }

    #[test]
    fn a_library_that_wraps_the_runtime_is_none() {
        assert_eq!(find(&["cudaMalloc", "__cudaRegisterFatBinary", "main"]), None);
        assert_eq!(find(&[FIRST, "cudaMalloc", LAST]), None);
        assert_eq!(find(&[]), None);
    }

    #[test]
    fn versions_differ_by_what_went() {
        let with = |name: &'static str| find(&[FIRST, "__cudaRegisterFatBinary", name, LAST]).map(|found| found.0);
        let names = ["__cudart1", "__cudaRegisterFatBinary", "cudaBindTexture", "__cudart2"];
        assert_eq!(find(&names).map(|found| found.0), Some(Version::Eleven));
        assert_eq!(with("cudaBindTexture"), Some(Version::Eleven));
        assert_eq!(with("cudaThreadSynchronize"), Some(Version::Twelve));
        assert_eq!(with("cudaLogsCurrent"), Some(Version::Thirteen));
    }
}
