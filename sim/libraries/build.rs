//! Writes the functions that only refuse, from the lists of their names in `refused`.

use std::fmt::Write as _;
use std::path::PathBuf;

/// The lists, and what each library's functions answer: its own "not supported", or what comes
/// nearest to it.
const LISTS: [(&str, i64); 12] = [
    ("cublas", 15),
    ("cublaslt", 15),
    ("cudnn", 3000),
    ("cufft", 16),
    ("cufile", 5001),
    ("cupti", 27),
    // CURAND_STATUS_INITIALIZATION_FAILED.
    ("curand", 203),
    ("cusolver", 9),
    ("cusparse", 10),
    ("cusparselt", 10),
    // ncclInvalidUsage.
    ("nccl", 5),
    ("nvshmem", 3),
];

fn main() {
    let mut out = String::new();
    for (list, status) in LISTS {
        let path = PathBuf::from("refused").join(format!("{list}.txt"));
        println!("cargo:rerun-if-changed={}", path.display());
        let names = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let names: Vec<&str> = names.lines().collect();
        let _ = writeln!(out, "refuse! {{ {status}: {} }}", names.join(" "));
    }
    let nvml = std::fs::read_to_string("refused/nvml.txt").unwrap_or_else(|error| panic!("refused/nvml.txt: {error}"));
    println!("cargo:rerun-if-changed=refused/nvml.txt");
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets it");
    let folder = PathBuf::from(folder);
    std::fs::write(folder.join("refused.rs"), out).expect("cargo's folder is writable");
    let lacking = format!("lacking! {{ {} }}\n", nvml.lines().collect::<Vec<_>>().join(" "));
    std::fs::write(folder.join("lacking.rs"), lacking).expect("cargo's folder is writable");
}
