//! Decodes every cubin in files (cubins, fatbins, host libraries) and prints what share of the
//! instructions is known, which opcodes are not, and how fast decoding is. Not a test: a measuring
//! tool for libraries that are not ours to ship.
//!
//! `cargo run --release -p device-code --example sass_survey -- FILE...`; with `--list`, prints
//! every instruction; with `--extract DIR`, writes the cubins.

use device_code::arch::Generation;
use device_code::image::{CodeRef, Cubin, Image, ImageError, ImageSize, find_in_host, image_size};
use device_code::sass::{Opcode, decode_all};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Tally {
    full: u64,
    effects: u64,
    unknown: BTreeMap<u16, u64>,
    kernels: u64,
    cubins: u64,
    ptx: u64,
    errors: BTreeMap<String, u64>,
    time: Duration,
}

fn main() {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let mut list = false;
    let mut args = std::env::args().skip(1);
    while let Some(path) = args.next() {
        if path == "--list" {
            list = true;
            continue;
        }
        if path == "--extract" {
            EXTRACT.set(args.next().expect("--extract DIR")).expect("--extract once");
            continue;
        }
        let bytes = match std::fs::read(&path) {
            Ok(b) => b,
            Err(e) => {
                eprintln!("{path}: {e}");
                continue;
            }
        };
        let name = path.rsplit('/').next().unwrap_or(&path).to_string();
        let images = match Image::parse(&bytes) {
            Ok(image) => vec![Ok(image)],
            Err(_) => match find_in_host(&bytes) {
                Ok(found) => found.into_iter().map(|f| f.image).collect(),
                Err(e) => vec![Err(e)],
            },
        };
        for image in images {
            match image {
                Ok(image) => survey(&image, &name, list, &mut tallies),
                Err(e) => fail(&mut tallies, &name, &e),
            }
        }
    }
    for (name, t) in &tallies {
        let unknown: u64 = t.unknown.values().sum();
        let all = (t.full + t.effects + unknown).max(1);
        let share = |n: u64| 100.0 * n as f64 / all as f64;
        println!(
            "{name}: {} cubins, {} kernels, {} PTX, {all} instructions: operands {:.2} %, effects only {:.2} %, unknown {:.4} %, {:.1} M/s",
            t.cubins,
            t.kernels,
            t.ptx,
            share(t.full),
            share(t.effects),
            share(unknown),
            all as f64 / t.time.as_secs_f64().max(1e-9) / 1e6,
        );
        for (opcode, n) in &t.unknown {
            println!("    unknown {opcode:03x}: {n}");
        }
        for (error, n) in &t.errors {
            println!("    error {error}: {n}");
        }
    }
}

static EXTRACT: std::sync::OnceLock<String> = std::sync::OnceLock::new();

fn fail(tallies: &mut BTreeMap<String, Tally>, name: &str, e: &ImageError) {
    *tallies.entry(name.to_string()).or_default().errors.entry(e.to_string()).or_default() += 1;
}

fn survey(image: &Image<'_>, name: &str, list: bool, tallies: &mut BTreeMap<String, Tally>) {
    for (n, entry) in image.entries().iter().enumerate() {
        let key = format!("{name} {}", entry.arch);
        match entry.unpack() {
            Ok(CodeRef::Ptx(_)) => tallies.entry(key).or_default().ptx += 1,
            Ok(CodeRef::Cubin(bytes)) => {
                if let Some(dir) = EXTRACT.get() {
                    let file = format!("{dir}/{name}-{n}-{}-{}.cubin", entry.arch, bytes.len());
                    std::fs::write(&file, &bytes).expect("writable directory");
                }
                // Entries are padded to 8 bytes behind the file that they hold.
                match image_size(&bytes) {
                    Ok(ImageSize::Exact(n)) if n <= bytes.len() as u64 && n + 8 > bytes.len() as u64 => {}
                    other => eprintln!("{key}: size {other:?} of {}", bytes.len()),
                }
                match Cubin::parse(&bytes) {
                    Ok(cubin) => match cubin.arch.generation() {
                        Some(g) => count(&cubin, g, list, tallies.entry(key).or_default()),
                        None => fail(tallies, &key, &ImageError::Unknown { what: "arch", value: cubin.arch.sm.into() }),
                    },
                    Err(e) => fail(tallies, &key, &e),
                }
            }
            Err(e) => fail(tallies, &key, &e),
        }
    }
}

fn count(cubin: &Cubin<'_>, generation: Generation, list: bool, t: &mut Tally) {
    t.cubins += 1;
    t.kernels += cubin.kernels().len() as u64;
    for s in cubin.sections().iter().filter(|s| s.executable) {
        let start = Instant::now();
        let insts = decode_all(generation, s.data, 0);
        t.time += start.elapsed();
        if list {
            println!("{}", s.name);
        }
        for i in &insts {
            match i.op {
                Opcode::Unknown => *t.unknown.entry(i.opcode).or_default() += 1,
                Opcode::Other(_) => t.effects += 1,
                _ => t.full += 1,
            }
            if list {
                println!("  {:05x}  {i}", i.pc);
            }
        }
    }
}
