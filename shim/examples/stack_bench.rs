//! Benchmark of stack capture: nanoseconds a native and a Python stack, walked and known from an
//! earlier walk (`cargo run --release --example stack_bench` after `cargo build --release --example
//! stack_probe`).

use std::hint::black_box;
use std::path::Path;
use std::process::Command;

use libloading::{Library, Symbol};

type Bench = unsafe extern "C" fn(u32, bool, *mut usize) -> f64;

#[inline(never)]
fn recurse(depth: u32, last: &mut dyn FnMut()) -> u32 {
    if depth == 0 {
        last();
        return 1;
    }
    black_box(recurse(black_box(depth - 1), last)) + 1
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let exe = std::env::current_exe()?;
    let probe = exe.parent().unwrap_or(Path::new(".")).join("libstack_probe.so");
    // SAFETY: our own library; its constructors do nothing.
    let library = unsafe { Library::new(&probe)? };
    // SAFETY: the type of that function.
    let bench: Symbol<'_, Bench> = unsafe { library.get(b"probe_bench")? };
    for depth in [0, 10, 30, 70] {
        recurse(depth, &mut || {
            let mut frames = 0;
            // SAFETY: `frames` can be written.
            let [walked, known] = [false, true].map(|keep| unsafe { bench(200_000, keep, &mut frames) });
            println!("native: {frames:3} frames {walked:7.1} ns walked {known:7.1} ns known");
        });
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stack_programs/frames.py");
    let output = Command::new("python3").arg(script).arg(&probe).arg("bench").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [walked, known, frames] => {
            println!(
                "python: {frames:>3} frames {:7.1} ns walked {:7.1} ns known",
                walked.parse::<f64>()?,
                known.parse::<f64>()?
            );
        }
        _ => println!("python: not measured: {}", String::from_utf8_lossy(&output.stderr)),
    }
    Ok(())
}
