//! Prints what is known of every kernel of the given code images: words, and the accesses of a made-up launch. Development aid.

use kernels::arch::Arch;
use kernels::{CodeImage, Extent, LaunchArgs, Reason};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let quiet = args.iter().any(|a| a == "-q");
    let (mut total, mut bounded, mut exact, mut kernels, mut failed) = (0usize, 0usize, 0usize, 0usize, 0usize);
    let mut why: BTreeMap<Reason, usize> = BTreeMap::new();
    let (mut prepare, mut evaluate) = (Vec::new(), Vec::new());
    for path in args.iter().filter(|a| !a.starts_with('-')) {
        let bytes = match std::fs::read(path) {
            Ok(b) => b,
            Err(e) => {
                eprintln!("{path}: {e}");
                continue;
            }
        };
        let image = match kernels::image::Image::parse(&bytes) {
            Ok(i) => i,
            Err(e) => {
                eprintln!("{path}: {e}");
                continue;
            }
        };
        for entry in image.entries() {
            let code = match entry
                .unpack()
                .map_err(|e| e.to_string())
                .and_then(|c| CodeImage::from_code(c, Arch::new(entry.arch.sm)).map_err(|e| e.to_string()))
            {
                Ok(c) => c,
                Err(e) => {
                    eprintln!("{path}: {e}");
                    continue;
                }
            };
            for n in code.kernel_names() {
                let t = Instant::now();
                let s = match code.summary(n) {
                    Ok(s) => s,
                    Err(e) => {
                        println!("{n}: {e}");
                        failed += 1;
                        continue;
                    }
                };
                prepare.push(t.elapsed());
                kernels += 1;
                let b = made_up(&s);
                let l = LaunchArgs::new([6, 3, 2], [128, 1, 1], &b);
                let mut out = Vec::new();
                let t = Instant::now();
                s.evaluate(&l, &mut out);
                let first = t.elapsed();
                evaluate.push(first);
                if !quiet {
                    println!(
                        "{n}: {} accesses, prepare {:?}, evaluate {first:?}",
                        s.access_count(),
                        prepare[prepare.len() - 1]
                    );
                    for w in s.words() {
                        println!("   {w:?}");
                    }
                    println!("   {:?}", s.indirect());
                }
                for a in &out {
                    total += 1;
                    match &a.extent {
                        Extent::Bounded { exact: e, .. } => {
                            bounded += 1;
                            exact += usize::from(*e);
                        }
                        Extent::Unknown { reason } => *why.entry(*reason).or_default() += 1,
                    }
                    if !quiet {
                        println!("     {:?} {:x?} several={} {:?}", a.kind, a.base, a.several, a.extent);
                    }
                }
            }
        }
    }
    println!("{kernels} kernels, {failed} failed, {total} results, {bounded} bounded, {exact} exact, unknown {why:?}");
    println!("prepare {}, evaluate {}", spread(&mut prepare), spread(&mut evaluate));
}

fn made_up(s: &kernels::Summary) -> Vec<u8> {
    let n = s.params().iter().map(|p| usize::from(p.offset) + usize::from(p.size)).max().unwrap_or(0);
    let mut b = vec![0u8; n + 8];
    for p in s.params() {
        let (o, z) = (usize::from(p.offset), usize::from(p.size));
        for k in (0..z).step_by(4) {
            let v: u32 = if z == 8 && k == 4 { 0 } else { 1000 };
            b[o + k..o + k + 4].copy_from_slice(&v.to_le_bytes());
        }
    }
    for w in s.words() {
        let o = usize::from(w.offset);
        if o + 8 <= b.len() {
            b[o..o + 8].copy_from_slice(&(0x7f00_0000_0000u64 + ((o as u64) << 32)).to_le_bytes());
        }
    }
    b.truncate(n);
    b
}

fn spread(v: &mut [Duration]) -> String {
    v.sort();
    match v.len() {
        0 => "-".into(),
        n => format!("median {:?} p90 {:?} max {:?}", v[n / 2], v[n * 9 / 10], v[n - 1]),
    }
}
