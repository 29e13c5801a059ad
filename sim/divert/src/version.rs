//! Versions of the runtime, and the names of files that hold one.

/// Versions of the runtime that differ for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// 11.x.
    Eleven,
    /// 12.x.
    Twelve,
    /// 13.x, and what comes later.
    Thirteen,
}

impl Version {
    /// The file of the simulator's runtime.
    pub(crate) fn file(self) -> &'static [u8] {
        match self {
            Version::Eleven => b"libcudart.so.11",
            Version::Twelve => b"libcudart.so.12",
            Version::Thirteen => b"libcudart.so.13",
        }
    }

    /// Which runtime a shared library is, by the name that it gives itself.
    pub(crate) fn of_library(name: &[u8]) -> Option<Version> {
        let rest = name.strip_prefix(b"libcudart")?;
        // Wheels carry copies with part of a digest in their names: libcudart-d0da41ae.so.11.0.
        let rest = match rest.strip_prefix(b"-") {
            Some(digest) => digest.get(digest.iter().position(|byte| *byte == b'.')?..)?,
            None => rest,
        };
        match rest.strip_prefix(b".so.")?.split(|byte| *byte == b'.').next()? {
            b"11" => Some(Version::Eleven),
            b"12" => Some(Version::Twelve),
            b"13" => Some(Version::Thirteen),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_runtimes() {
        assert_eq!(Version::of_library(b"libcudart.so.13"), Some(Version::Thirteen));
        assert_eq!(Version::of_library(b"libcudart.so.12"), Some(Version::Twelve));
        assert_eq!(Version::of_library(b"libcudart-d0da41ae.so.11.0"), Some(Version::Eleven));
        let others: [&[u8]; 7] = [
            b"",
            b"libc.so.6",
            b"libcudart.so.9.0",
            b"libcudart.so",
            b"libcudart_static.a",
            b"libcudart-",
            b"libmylibcudart.so.13",
        ];
        assert!(others.into_iter().all(|name| Version::of_library(name).is_none()));
    }
}
