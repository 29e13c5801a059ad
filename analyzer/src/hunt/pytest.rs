//! Which Python files hold tests that may use CUDA, and how they are run.
//!
//! Owns the names that pytest collects by default, and the words that hint at CUDA. A word in a
//! comment counts: one run too many is better than one too few.

use std::ffi::OsString;
use std::path::Path;

use super::target::Target;

/// What uses CUDA from Python. Whole words, whatever their case.
const WORDS: [&str; 20] = [
    "torch",
    "cuda",
    "cupy",
    "cupyx",
    "numba",
    "triton",
    "warp",
    "jax",
    "pycuda",
    "tensorflow",
    "cudf",
    "cuml",
    "rmm",
    "raft",
    "pylibraft",
    "cugraph",
    "tilelang",
    "cutlass",
    "paddle",
    "nvmath",
];

/// Whether pytest would collect a file of this name.
pub(crate) fn is_test(name: &str) -> bool {
    name.strip_suffix(".py").is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

/// Whether the text of a test mentions something that uses CUDA.
pub(crate) fn mentions_cuda(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric();
    text.split(|byte| !is_part(byte)).any(|word| WORDS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes())))
}

/// The test of a file. `root`: the folder of the hunt, where pytest is started.
pub(crate) fn target(root: &Path, name: &str) -> Target {
    let words = [python(), "-m".into(), "pytest".into(), name.into()].into();
    let mut target = Target::new("pytest", name.to_owned(), words, root.to_path_buf());
    // pytest's answer when it has collected no test.
    target.skip_code = Some(5);
    target
}

/// The interpreter that a user would get: of the environment that is active, if one is.
fn python() -> OsString {
    let there = |name: &str| crate::launcher::executable::find(name.as_ref()).is_some();
    if there("python") { "python".into() } else { "python3".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_chosen_as_pytest_chooses_them() {
        for name in ["test_a.py", "a_test.py", "test_.py"] {
            assert!(is_test(name), "{name}");
        }
        for name in ["a.py", "test_a.pyc", "mytest.py", "test.py", "test_a", "testa.py"] {
            assert!(!is_test(name), "{name}");
        }
    }

    #[test]
    fn whole_words_count() {
        for text in ["import torch", "from cupy.cuda import x", "@pytest.mark.skipif(not CUDA_OK)", "torch.cuda"] {
            assert!(mentions_cuda(text.as_bytes()), "{text}");
        }
        for text in ["", "import os", "barracuda", "torchlight = 1", "warped"] {
            assert!(!mentions_cuda(text.as_bytes()), "{text}");
        }
    }
}
