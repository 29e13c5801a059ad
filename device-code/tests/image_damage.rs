//! Damaged containers: cut anywhere, bytes and words changed anywhere. The outcome must be an
//! answer or a named error, in bounded time and memory.

use device_code::arch::Arch;
use device_code::image::{CodeRef, Cubin, Image, find_in_host, image_size};
use device_code::sass::decode_all;
use std::path::Path;

fn made(options: &[&str]) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/image/containers.cu");
    std::fs::read(tests::build::nvcc(&source, options)).expect("compiled")
}

/// Everything that can be asked of an image.
fn ask(bytes: &[u8]) {
    let _ = image_size(bytes);
    let _ = find_in_host(bytes);
    if let Ok(cubin) = Cubin::parse(bytes) {
        ask_cubin(&cubin);
    }
    let Ok(image) = Image::parse(bytes) else { return };
    for sm in [75, 90, 100, 120] {
        let _ = image.choose(Arch::new(sm));
    }
    for e in image.entries() {
        if let Ok(CodeRef::Cubin(code)) = e.unpack()
            && let Ok(cubin) = Cubin::parse(&code)
        {
            ask_cubin(&cubin);
        }
    }
}

fn ask_cubin(cubin: &Cubin<'_>) {
    let Some(g) = cubin.arch.generation() else { return };
    for k in cubin.kernels().iter().take(8) {
        let _ = decode_all(g, &k.code[..k.code.len().min(256)], k.entry);
        for bank in 0..5 {
            let _ = cubin.const_bank(k, bank);
        }
        let _ = cubin.const_symbol(k, 4, 0);
        let _ = cubin.function_at(k.section, k.entry);
        let _ = cubin.functions(k.section);
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

fn torture(bytes: &[u8], seed: u64) {
    let mut r = Random(seed);
    for cut in (0..200).chain((0..200).map(|n| n * bytes.len() / 200)) {
        ask(&bytes[..cut.min(bytes.len())]);
    }
    let words: [u64; 8] = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, u64::MAX, 1 << 40, bytes.len() as u64];
    for n in 0..1500 {
        let mut damaged = bytes.to_vec();
        for _ in 0..1 + r.next(3) {
            // Headers matter most: half of the changes go into the first 256 bytes.
            let at = if n % 2 == 0 { r.next(256.min(bytes.len())) } else { r.next(bytes.len()) };
            if r.next(2) == 0 {
                damaged[at] = r.next(256) as u8;
            } else {
                let w = words[r.next(words.len())].to_le_bytes();
                let size = [2, 4, 8][r.next(3)];
                for (b, v) in damaged[at..].iter_mut().zip(&w[..size]) {
                    *b = *v;
                }
            }
        }
        ask(&damaged);
    }
}

#[test]
fn damaged_cubins() {
    torture(&made(&["-cubin", "-arch=sm_90"]), 1);
    torture(&made(&["-cubin", "-arch=sm_120"]), 2);
}

/// Section headers lie at the end of a cubin, out of reach of the other test's bias.
#[test]
fn damaged_section_headers() {
    let bytes = made(&["-cubin", "-arch=sm_90"]);
    let table = u64::from_le_bytes(bytes[40..48].try_into().expect("8")) as usize;
    let mut r = Random(7);
    for _ in 0..3000 {
        let mut damaged = bytes.clone();
        let at = table + r.next(bytes.len() - table - 8);
        let w = [0u64, 1, u64::MAX, 0xffff_ffff, 1 << 33, r.next(1 << 20) as u64][r.next(6)];
        damaged[at..at + 8].copy_from_slice(&w.to_le_bytes());
        ask(&damaged);
    }
}

#[test]
fn damaged_fatbins() {
    for (n, mode) in ["none", "size", "speed"].iter().enumerate() {
        let bytes = made(&["-fatbin", "--compress-mode", mode, "-gencode=arch=compute_75,code=[sm_75,compute_75]"]);
        torture(&bytes, 10 + n as u64);
    }
}

/// A header that claims gigabytes must not become an allocation.
#[test]
fn claims_of_size_allocate_nothing() {
    let bytes = made(&["-fatbin", "--compress-mode", "size", "-gencode=arch=compute_75,code=[sm_75,compute_75]"]);
    for claim in [1u64 << 29, 1 << 33, u64::MAX] {
        let mut lie = bytes.clone();
        lie[16 + 56..16 + 64].copy_from_slice(&claim.to_le_bytes());
        let image = Image::parse(&lie).expect("headers are whole");
        assert!(image.entries()[0].unpack().is_err());
    }
}
