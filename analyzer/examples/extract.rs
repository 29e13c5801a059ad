//! Extracts the parts of trace files that are needed to study their kernels elsewhere: `extract
//! [--all] TRACE... FOLDER`.
//!
//! FOLDER gets the machine code of every kernel that has a launch without ranges or with indirect
//! accesses (`--all`: of every kernel). The code of the other kernels in the same image is zeroed,
//! so that it compresses to nothing. FOLDER also gets `launches.txt`: a line for each kernel and
//! launch shape (at most six a kernel) with name, file, grid, block, cluster, shared memory, the
//! number of launches that it stands for, and parameters. `kernels/examples/dump.rs` reads it. A
//! development aid. It needs the libraries that the trace names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::FileExt;
use std::path::Path;

use device_code::arch::Arch;
use device_code::image::{CodeRef, Image};
use kernels::{Base, CodeImage, Extent, LaunchArgs};
use object::{Object, ObjectSection};
use trace::{ImageId, ImageSource, KernelId, LaunchShape, Op, Record};

/// Maximum number of launches kept of one kernel.
const KEPT: usize = 6;

#[derive(Default)]
struct Process {
    arch: u32,
    images: HashMap<ImageId, Source>,
    kernels: HashMap<KernelId, (String, ImageId)>,
    /// Each kept shape with the number of launches it stands for.
    launches: BTreeMap<KernelId, BTreeMap<Launch, u32>>,
}

enum Source {
    Inline(Vec<u8>),
    File(String, u64, u64),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Launch {
    dims: [[u32; 3]; 3],
    shared: u32,
    params: Vec<u8>,
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let all = args.first().is_some_and(|a| a == "--all");
    args.drain(..usize::from(all));
    let Some((folder, traces)) = args.split_last().filter(|a| !a.1.is_empty()) else {
        eprintln!("extract [--all] TRACE... FOLDER");
        std::process::exit(2);
    };
    std::fs::create_dir_all(folder).expect("the folder can be made");
    let mut lines = String::new();
    for path in traces {
        let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
        let mut reader = trace::file::Reader::new(BufReader::new(File::open(path).expect("trace"))).expect("trace");
        let mut each = |process, bytes: &[u8]| {
            if let Ok(record) = Record::decode(bytes) {
                processes.entry(process).or_default().take(&record.op);
            }
        };
        while reader.frame(&mut each).unwrap_or(false) {}
        for process in processes.values() {
            process.write(Path::new(folder), all, &mut lines);
        }
    }
    std::fs::write(Path::new(folder).join("launches.txt"), lines).expect("launches.txt can be written");
}

impl Process {
    fn take(&mut self, op: &Op<'_>) {
        match *op {
            Op::Device { arch, .. } => self.arch = arch,
            Op::Image { id, source: ImageSource::Inline, bytes, .. } => {
                self.images.insert(id, Source::Inline(bytes.to_vec()));
            }
            Op::Image { id, path, offset, size, .. } => {
                self.images.insert(id, Source::File(path.lossy().into_owned(), offset, size));
            }
            Op::Kernel { id, name, image, .. } => {
                self.kernels.insert(id, (name.lossy().into_owned(), image));
            }
            Op::Launch { kernel, shape: LaunchShape { grid, block, cluster, shared, .. }, params, .. } => {
                let kept = self.launches.entry(kernel).or_default();
                let cluster = if cluster == [0; 3] { [1; 3] } else { cluster };
                let launch = Launch { dims: [grid, block, cluster], shared, params: params.to_vec() };
                let room = kept.keys().filter(|l| l.dims[0] == grid).count() < 2 && kept.len() < KEPT;
                match kept.get_mut(&launch) {
                    Some(count) => *count += 1,
                    None if room => drop(kept.insert(launch, 1)),
                    // An equal one stands for this one.
                    None => {
                        let like = kept.keys().position(|l| l.dims == launch.dims).unwrap_or(0);
                        kept.values_mut().nth(like).into_iter().for_each(|count| *count += 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn bytes(&self, image: ImageId) -> Option<Vec<u8>> {
        match self.images.get(&image)? {
            Source::Inline(bytes) => Some(bytes.clone()),
            Source::File(path, offset, size) => {
                let file = File::open(path).ok()?;
                let left = file.metadata().ok()?.len().saturating_sub(*offset);
                let mut bytes = vec![0; if *size == 0 { left } else { left.min(*size) } as usize];
                file.read_exact_at(&mut bytes, *offset).ok()?;
                Some(bytes)
            }
        }
    }

    fn write(&self, folder: &Path, all: bool, lines: &mut String) {
        let arch = Arch::new(self.arch as u16);
        let mut by_image: BTreeMap<u32, Vec<KernelId>> = BTreeMap::new();
        for id in self.launches.keys() {
            if let Some((_, image)) = self.kernels.get(id) {
                by_image.entry(image.0).or_default().push(*id);
            }
        }
        for (image, ids) in by_image {
            let Some(bytes) = self.bytes(ImageId(image)) else { continue };
            let Some(CodeRef::Cubin(cubin)) = Image::parse(&bytes).ok().and_then(|i| i.select(arch).ok()?) else {
                continue;
            };
            let Ok(code) = CodeImage::from_code(CodeRef::Cubin(cubin.clone()), arch) else { continue };
            let mut wanted = BTreeSet::new();
            for id in ids {
                let name = &self.kernels[&id].0;
                if all || self.launches[&id].keys().any(|l| !ranges(&code, name, l)) {
                    wanted.insert((name.clone(), id));
                }
            }
            if wanted.is_empty() {
                continue;
            }
            let mut thin = cubin.into_owned();
            blank(&mut thin, |name| wanted.iter().any(|w| w.0 == name));
            let file = format!("{:016x}.cubin", hash(&thin));
            std::fs::write(folder.join(&file), &thin).expect("a cubin can be written");
            for (name, id) in wanted {
                for (l, count) in &self.launches[&id] {
                    let _ = write!(lines, "{name} {file}");
                    let numbers = l.dims.iter().flatten().chain([&l.shared, count]);
                    numbers.for_each(|n| *lines += &format!(" {n}"));
                    let hex: String = l.params.iter().map(|b| format!("{b:02x}")).collect();
                    let _ = writeln!(lines, " {hex}");
                }
            }
        }
    }
}

/// Whether a launch has ranges, and no indirect accesses.
fn ranges(code: &CodeImage, name: &str, l: &Launch) -> bool {
    let Ok(summary) = code.summary(name) else { return false };
    let [grid, block, cluster] = l.dims;
    let args = LaunchArgs { grid, block, cluster, shared: l.shared, params: &l.params };
    let mut out = Vec::new();
    summary.evaluate(&args, &mut out);
    !summary.indirect().any()
        && out.iter().all(|a| matches!(a.extent, Extent::Bounded { .. }) || matches!(a.base, Base::Handle { .. }))
}

/// Zeroes the code of unwanted kernels.
fn blank(cubin: &mut [u8], wanted: impl Fn(&str) -> bool) {
    let mut ranges = Vec::new();
    if let Ok(file) = object::File::parse(&*cubin) {
        for s in file.sections() {
            let name = s.name().unwrap_or_default();
            let unwanted = name.strip_prefix(".text.").is_some_and(|k| !wanted(k)) || name.starts_with(".debug");
            if let (true, Some((from, size))) = (unwanted, s.file_range()) {
                ranges.push((from as usize, (from + size) as usize));
            }
        }
    }
    for (from, to) in ranges {
        if let Some(part) = cubin.get_mut(from..to) {
            part.fill(0);
        }
    }
}

fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}
