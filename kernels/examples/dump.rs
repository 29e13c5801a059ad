//! Development aid: prints what is known of the kernels of code images (cubin, fatbin, PTX, or a
//! library that holds fatbins): parameter words, and the accesses of a made-up launch. With a
//! `launches.txt` (made by `analyzer/examples/extract.rs`), prints the accesses of the launches in
//! it.
//!
//! `dump [-q] [-g] [-a SM] [-k NAME] FILE...`
//!
//! * `-q`: totals only
//! * `-g`: only what is not known
//! * `-a`: machine code for this architecture (of launches: what runs on such a device)
//! * `-s`: the instructions too
//! * `-c FOLDER`: keep summaries there
//! * `-k`: kernels whose name contains this
//! * `-n N`: of a library, every N-th image

use device_code::arch::Arch;
use device_code::image::{CodeRef, Image};
use device_code::tensor_map::Tensor;
use kernels::{Base, Cache, CodeImage, Extent, KernelAccess, LaunchArgs, Reason, Summary};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Default)]
struct Totals {
    quiet: bool,
    gaps: bool,
    code: bool,
    only: Option<String>,
    cache: Option<Arc<Cache>>,
    kernels: usize,
    failed: usize,
    results: usize,
    bounded: usize,
    exact: usize,
    why: BTreeMap<Reason, usize>,
    prepare: Vec<Duration>,
    evaluate: Vec<Duration>,
    /// Launches: all, with ranges, exact.
    launches: [usize; 3],
}

fn main() {
    let mut t = Totals::default();
    let (mut arch, mut step) = (None, 1);
    let mut args = std::env::args().skip(1);
    let mut paths = Vec::new();
    while let Some(a) = args.next() {
        match a.as_str() {
            "-q" => t.quiet = true,
            "-g" => t.gaps = true,
            "-s" => t.code = true,
            "-a" => arch = args.next().and_then(|v| v.parse().ok()).map(Arch::new),
            "-c" => t.cache = args.next().map(|f| Arc::new(Cache::new(f))),
            "-k" => t.only = args.next(),
            "-n" => step = args.next().and_then(|v| v.parse().ok()).unwrap_or(1),
            _ => paths.push(a),
        }
    }
    for path in &paths {
        if path.ends_with(".txt") {
            t.launches(path, arch);
        } else if let Err(e) = t.file(path, arch, step) {
            eprintln!("{path}: {e}");
        }
    }
    println!(
        "{} kernels, {} failed, {} results, {} bounded, {} exact, unknown {:?}",
        t.kernels, t.failed, t.results, t.bounded, t.exact, t.why
    );
    println!("{} launches, {} with ranges, {} exact", t.launches[0], t.launches[1], t.launches[2]);
    println!("prepare {}, evaluate {}", spread(&mut t.prepare), spread(&mut t.evaluate));
}

impl Totals {
    fn file(&mut self, path: &str, arch: Option<Arch>, step: usize) -> Result<(), String> {
        let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
        if let Ok(image) = Image::parse(&bytes) {
            self.image(&image, arch);
            return Ok(());
        }
        let hosted = device_code::image::find_in_host(&bytes).map_err(|e| e.to_string())?;
        for h in hosted.iter().step_by(step) {
            if let Ok(image) = &h.image {
                self.image(image, arch);
            }
        }
        Ok(())
    }

    fn image(&mut self, image: &Image<'_>, arch: Option<Arch>) {
        for entry in image.entries().iter().filter(|e| arch.is_none_or(|a| e.arch.sm == a.sm)) {
            let code = entry.unpack().map_err(|e| e.to_string());
            match code.and_then(|c| CodeImage::from_code(c, entry.arch).map_err(|e| e.to_string())) {
                Ok(code) => {
                    let code = code.with_cache(self.cache.clone());
                    code.kernel_names().for_each(|n| {
                        if let Some(s) = self.summary(&code, n) {
                            let b = made_up(&s);
                            self.launch(&s, &LaunchArgs::new([6, 3, 2], [128, 1, 1], &b), 1);
                        }
                    });
                }
                Err(e) => eprintln!("{e}"),
            }
        }
    }

    fn summary(&mut self, code: &CodeImage, name: &str) -> Option<Arc<Summary>> {
        if self.only.as_ref().is_some_and(|o| !name.contains(o)) {
            return None;
        }
        let t = Instant::now();
        match code.summary(name) {
            Ok(s) => {
                // The analyzer asks for this of every kernel.
                let _ = s.indirect();
                self.prepare.push(t.elapsed());
                self.kernels += 1;
                Some(s)
            }
            Err(e) => {
                println!("{name}: {e}");
                self.failed += 1;
                None
            }
        }
    }

    fn launches(&mut self, path: &str, arch: Option<Arch>) {
        let folder = Path::new(path).parent().unwrap_or(Path::new("."));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut codes: HashMap<String, Option<CodeImage>> = HashMap::new();
        for line in text.lines() {
            let f: Vec<&str> = line.split(' ').collect();
            let [name, file, numbers @ .., hex] = f.as_slice() else { continue };
            let code = codes.entry((*file).to_owned()).or_insert_with(|| {
                let bytes = std::fs::read(folder.join(file)).ok()?;
                let image = Image::parse(&bytes).ok()?;
                let (code, arch) = chosen(&image, arch)?;
                Some(CodeImage::from_code(code, arch).ok()?.with_cache(self.cache.clone()))
            });
            if self.code && self.only.as_ref().is_none_or(|o| name.contains(o)) {
                print_code(&folder.join(file), name, arch);
            }
            let n: Vec<u32> = numbers.iter().filter_map(|x| x.parse().ok()).collect();
            let params: Vec<u8> =
                (0..hex.len() / 2).filter_map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()).collect();
            let (Some(code), &[gx, gy, gz, bx, by, bz, cx, cy, cz, shared, ref count @ ..]) = (code, n.as_slice())
            else {
                continue;
            };
            if let Some(s) = self.summary(code, name) {
                let params = placed(&s, params);
                let (grid, block, cluster) = ([gx, gy, gz], [bx, by, bz], [cx, cy, cz]);
                let launch = LaunchArgs { grid, block, cluster, shared, params: &params };
                self.launch(&s, &launch, count.first().map_or(1, |n| *n as usize));
            }
        }
    }

    fn launch(&mut self, s: &Summary, l: &LaunchArgs<'_>, times: usize) {
        let mut out = Vec::new();
        let t = Instant::now();
        s.evaluate(l, &mut out);
        let first = t.elapsed();
        let of_tiles = |a: KernelAccess| {
            let Base::TensorMap { offset } = a.base else { return vec![a] };
            let tensor = l.params.get(usize::from(offset)..).and_then(Tensor::decode);
            let extents =
                tensor.as_ref().zip(a.tiles.as_deref()).and_then(|(t, tiles)| Extent::of_tiles(t, tiles, a.kind));
            let whole = |extent| KernelAccess { extent, tiles: None, ..a.clone() };
            extents.map_or_else(|| vec![a.clone()], |all| all.into_iter().map(whole).collect())
        };
        out = out.into_iter().flat_map(of_tiles).collect();
        self.evaluate.push(first);
        let known = |a: &KernelAccess| matches!(a.extent, Extent::Bounded { .. });
        // (Addresses that are loaded where this launch does not go are no gap of it.)
        let gap = out.iter().any(|a| !known(a));
        let show = !self.quiet && (gap || !self.gaps);
        self.launches[0] += times;
        self.launches[1] += times * usize::from(!gap);
        self.launches[2] +=
            times * usize::from(!gap && out.iter().all(|a| matches!(a.extent, Extent::Bounded { exact: true, .. })));
        if show {
            println!(
                "{}: {} accesses, prepare {:?}, evaluate {first:?}; grid {:?} block {:?} times {times}",
                s.name(),
                s.access_count(),
                self.prepare.last(),
                l.grid,
                l.block
            );
            for w in s.words() {
                println!("   {w:?}");
            }
            println!("   {:?}", s.indirect());
        }
        for a in &out {
            self.results += 1;
            match &a.extent {
                Extent::Bounded { exact: e, .. } => {
                    self.bounded += 1;
                    self.exact += usize::from(*e);
                }
                Extent::Unknown { reason } => *self.why.entry(*reason).or_default() += 1,
            }
            if show && (!self.gaps || !known(a)) {
                println!("     {:#x} {:?} {:x?} several={} {:?}", a.at, a.kind, a.base, a.several, a.extent);
                if let Some(lock) = &a.lock {
                    println!("         {:?} {:x?}", lock.role, lock.words);
                }
            }
        }
    }
}

/// Parameters where the code has them. Machine code places the first one behind a gap if it is
/// aligned to more than 16 bytes (tensor maps), and a launch that was recorded of PTX has none.
fn placed(s: &Summary, params: Vec<u8>) -> Vec<u8> {
    let first = s.params().iter().map(|p| usize::from(p.offset)).min().unwrap_or(0);
    let end = s.params().iter().map(|p| usize::from(p.offset) + usize::from(p.size)).max().unwrap_or(0);
    if first + params.len() == end { [vec![0; first], params].concat() } else { params }
}

/// The code that runs on a device, and of which architecture it is; without a device the first.
fn chosen<'a>(image: &'a Image<'a>, device: Option<Arch>) -> Option<(CodeRef<'a>, Arch)> {
    match device {
        Some(device) => Some((image.select(device).ok()??, device)),
        None => Some((image.entries().first()?.unpack().ok()?, image.entries().first()?.arch)),
    }
}

fn print_code(path: &Path, name: &str, device: Option<Arch>) {
    let bytes = std::fs::read(path).unwrap_or_default();
    let Ok(image) = Image::parse(&bytes) else { return };
    let Some((CodeRef::Cubin(cubin), _)) = chosen(&image, device) else { return };
    let Ok(cubin) = device_code::image::Cubin::parse(&cubin) else { return };
    if let (Some(kernel), Some(generation)) = (cubin.kernel(name), cubin.arch.generation()) {
        for i in device_code::sass::decode_all(generation, kernel.code, 0) {
            println!("        {:#x}  {}", i.pc, i);
        }
    }
}

fn made_up(s: &Summary) -> Vec<u8> {
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
        n => {
            let total: Duration = v.iter().sum();
            format!("median {:?} p90 {:?} max {:?} total {total:?}", v[n / 2], v[n * 9 / 10], v[n - 1])
        }
    }
}
