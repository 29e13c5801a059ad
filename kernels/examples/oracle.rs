//! Development aid: compares what the analysis says of launches with what a GPU measured them to
//! touch, without a GPU.
//!
//! `oracle STUDY... -- ORACLE.json...` evaluates the examples of a file that `--exact-compare`
//! wrote anew, with the code that `cargo xtask precision` brought home, and prints the bytes of
//! each example. (A study is a `launches.txt`, made by `analyzer/examples/extract.rs`.) `oracle -u
//! STUDY...` prints the bytes of each recorded launch for a comparison of two versions of the
//! analysis line by line: `oracle -c OLD NEW` does it.

use device_code::arch::Arch;
use device_code::image::Image;
use device_code::tensor_map::Tensor;
use kernels::{Base, CodeImage, Extent, KernelAccess, LaunchArgs, Summary};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs that one access is spread out to at most; beyond that its hull counts.
const MAX_RUNS: u64 = 1 << 21;

/// How an access is named whose index is data.
const BY_DATA: &str = "by data: ";

/// Addresses: from, to.
type Runs = Vec<(i128, i128)>;

fn merged(mut v: Runs) -> Runs {
    v.sort_unstable();
    let mut out: Runs = Vec::new();
    for (a, b) in v {
        match out.last_mut() {
            Some(l) if a <= l.1 => l.1 = l.1.max(b),
            _ if a < b => out.push((a, b)),
            _ => {}
        }
    }
    out
}

fn length(v: &Runs) -> i128 {
    v.iter().map(|r| r.1 - r.0).sum()
}

/// Bytes of `a` that `b` lacks.
fn without(a: &Runs, b: &Runs) -> Runs {
    let mut out = Runs::new();
    let mut k = 0;
    for &(mut from, to) in a {
        while k < b.len() && b[k].1 <= from {
            k += 1;
        }
        let mut j = k;
        while from < to && j < b.len() && b[j].0 < to {
            if b[j].0 > from {
                out.push((from, b[j].0));
            }
            from = from.max(b[j].1);
            j += 1;
        }
        if from < to {
            out.push((from, to));
        }
    }
    out
}

/// The bytes of an extent, `None` when it has none that are known.
fn spread(e: &Extent, base: u64) -> Option<Runs> {
    let Extent::Bounded { lo, hi, dims, width, .. } = e else { return None };
    let start = i128::from(base) + i128::from(*lo);
    let mut runs: Runs = vec![(start, start + i128::from(*width))];
    for d in dims {
        if runs.len() == 1 && i128::from(d.stride) <= runs[0].1 - runs[0].0 {
            runs[0].1 += i128::from(d.stride) * i128::from(d.count - 1);
        } else if (runs.len() as u64).saturating_mul(d.count) > MAX_RUNS {
            return Some(vec![(start, i128::from(base) + i128::from(*hi))]);
        } else {
            let steps = (0..d.count).map(|k| i128::from(k) * i128::from(d.stride));
            runs = merged(steps.flat_map(|s| runs.iter().map(move |r| (r.0 + s, r.1 + s))).collect());
        }
    }
    Some(runs)
}

struct Launch {
    kernel: Arc<Summary>,
    numbers: Vec<u32>,
    params: Vec<u8>,
}

fn evaluate(s: &Summary, n: &[u32], params: &[u8]) -> Vec<KernelAccess> {
    let at = |k: usize| [n[k], n[k + 1], n[k + 2]];
    let launch = LaunchArgs { grid: at(0), block: at(3), cluster: at(6), shared: n[9], params };
    let mut out = Vec::new();
    s.evaluate(&launch, &mut out);
    let of_tiles = |a: KernelAccess| {
        let Base::TensorMap { offset } = a.base else { return vec![a] };
        let tensor = params.get(usize::from(offset)..).and_then(Tensor::decode);
        let Some((t, tiles)) = tensor.zip(a.tiles.as_deref()) else { return vec![a] };
        let base = Base::Absolute { value: t.address };
        let whole = |extent| KernelAccess { extent, base, tiles: None, ..a.clone() };
        Extent::of_tiles(&t, tiles, a.kind).map_or_else(|| vec![a.clone()], |all| all.into_iter().map(whole).collect())
    };
    out.into_iter().flat_map(of_tiles).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).filter_map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).ok()).collect()
}

/// The launches of a study, in order.
fn study(path: &Path) -> Vec<Launch> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut codes: HashMap<PathBuf, Option<CodeImage>> = HashMap::new();
    let mut out = Vec::new();
    for line in text.lines() {
        let f: Vec<&str> = line.split(' ').collect();
        let [name, file, numbers @ .., hex] = f.as_slice() else { continue };
        let file = folder.join(file);
        let code = codes.entry(file.clone()).or_insert_with(|| {
            let bytes = std::fs::read(file).ok()?;
            let image = Image::parse(&bytes).ok()?;
            let entry = image.entries().first()?;
            let arch: Arch = entry.arch;
            CodeImage::from_code(entry.unpack().ok()?, arch).ok()
        });
        if let Some(Ok(kernel)) = code.as_ref().map(|c| c.summary(name)) {
            let numbers = numbers.iter().filter_map(|x| x.parse().ok()).collect();
            out.push(Launch { kernel, numbers, params: bytes(hex) });
        }
    }
    out
}

/// Bytes by direction; what is not known by name.
fn known(found: &[KernelAccess]) -> (BTreeMap<&'static str, Runs>, Vec<String>) {
    let (mut sets, mut open) = (BTreeMap::<_, Runs>::new(), Vec::new());
    for a in found {
        let value = match a.base {
            Base::Word { value, .. } | Base::Absolute { value } => value,
            _ => 0,
        };
        // Small numbers are no pointers; what is unknown beside a pointer counts by the pointer.
        let end = match a.extent {
            Extent::Bounded { hi, .. } => value.wrapping_add_signed(hi),
            Extent::Unknown { .. } => value,
        };
        if (a.several && value >> 32 == 0) || (matches!(a.base, Base::Absolute { .. }) && end >> 32 == 0) {
            continue;
        }
        let kind = ["read", "write", "atomic", "atomic read", "atomic write"][a.kind as usize];
        match spread(&a.extent, value).filter(|_| value != 0) {
            Some(runs) => sets.entry(kind).or_default().extend(runs),
            None => {
                let by_data = matches!(a.base, Base::Word { .. })
                    && !a.several
                    && matches!(a.extent, Extent::Unknown { reason } if reason.is_data());
                open.push(format!("{}{kind} {:?} {:?}", if by_data { BY_DATA } else { "" }, a.base, a.extent));
            }
        }
    }
    sets.values_mut().for_each(|v| *v = merged(std::mem::take(v)));
    open.sort();
    open.dedup();
    (sets, open)
}

/// `read 0x7f00+64 3 times every 128`.
fn touched(line: &str) -> Option<(&str, Runs)> {
    let f: Vec<&str> = line.split(' ').collect();
    let (from, len) = f.get(1)?.split_once('+')?;
    let from = i128::from_str_radix(from.trim_start_matches("0x"), 16).ok()?;
    let len: i128 = len.parse().ok()?;
    let (count, stride): (i128, i128) = match f.get(3) {
        Some(&"times") => (f[2].parse().ok()?, f[5].parse().ok()?),
        _ => (1, 0),
    };
    Some((f[0], (0..count).map(|k| (from + k * stride, from + k * stride + len)).collect()))
}

fn compare(studies: &[Launch], path: &str, only: Option<&str>) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let none = Vec::new();
    let mut total = BTreeMap::<_, u64>::new();
    for k in json["kernels"].as_array().unwrap_or(&none) {
        let name = k["kernel"].as_str().unwrap_or("");
        let Some(code) = studies.iter().find(|l| l.kernel.name() == name) else { continue };
        for e in k["examples"].as_array().unwrap_or(&none) {
            if only.is_some_and(|o| !name.contains(o)) {
                continue;
            }
            let three = |f: &str| (0..3).map(|d| e[f][d].as_u64().unwrap_or(0) as u32).collect::<Vec<_>>();
            let mut n = [three("grid"), three("block"), three("cluster")].concat();
            n.push(e["shared"].as_u64().unwrap_or(0) as u32);
            let params = bytes(e["params"].as_str().unwrap_or(""));
            let found = evaluate(&code.kernel, &n, &params);
            let (sets, open) = known(&found);
            let mut real = BTreeMap::<_, Runs>::new();
            for (kind, runs) in e["touched"].as_array().unwrap_or(&none).iter().filter_map(|t| touched(t.as_str()?)) {
                real.entry(kind).or_default().extend(runs);
            }
            real.values_mut().for_each(|v| *v = merged(std::mem::take(v)));
            let empty = Runs::new();
            // The load in front of a compare-and-swap belongs to the atomic. A GPU tells atomic
            // loads and stores as plain ones.
            let allowed = |kind: &str| {
                let also: &[&str] = match kind {
                    "read" => &["atomic", "atomic read"],
                    "atomic read" => &["atomic"],
                    "write" => &["atomic write"],
                    _ => &[],
                };
                let all = std::iter::once(&kind).chain(also).filter_map(|kind| sets.get(kind));
                merged(all.flatten().copied().collect())
            };
            let missing: i128 = real.iter().map(|(k, v)| length(&without(v, &allowed(k)))).sum();
            let sum = length(&merged(sets.values().flatten().copied().collect()));
            let was = e["verdict"].as_str().unwrap_or("");
            let measured = i128::from(e["touched_bytes"].as_u64().unwrap_or(0));
            let now = match (missing > 0, open.is_empty(), sum > measured) {
                (true, true, _) => "UNSOUND",
                (_, false, _) if open.iter().all(|o| o.starts_with(BY_DATA)) => "by-data",
                (_, false, _) => "open",
                (_, _, true) => "loose",
                _ => "tight",
            };
            let times = k["counts"][was].as_u64().unwrap_or(0);
            *total.entry((was.to_owned(), now)).or_default() += times;
            println!(
                "{times:4} {was:5} -> {now:7} touched {measured} predicted {sum} {}",
                &name[..name.len().min(100)]
            );
            if only.is_some() {
                let beyond = |kind: &str| without(&sets[kind], real.get(kind).unwrap_or(&empty));
                sets.keys().for_each(|k| println!("    {k} more: {:x?}", &beyond(k)[..beyond(k).len().min(12)]));
                open.iter().for_each(|o| println!("    open {o}"));
            }
        }
    }
    println!("{path}: {total:?}");
}

fn unions(studies: &[Launch]) {
    for l in studies {
        let mut sets = BTreeMap::<String, Runs>::new();
        for a in evaluate(&l.kernel, &l.numbers, &l.params) {
            let key = format!("{:?} {:?}", a.kind, a.base);
            match spread(&a.extent, 0) {
                Some(runs) => sets.entry(key).or_default().extend(runs),
                None => sets.entry(format!("open {key}")).or_default().push((0, 1)),
            }
        }
        let sets: Vec<String> = sets.into_iter().map(|(k, v)| format!("{k}={:?}", merged(v))).collect();
        println!("{} {:?}|{}", l.kernel.name(), l.numbers, sets.join("|"));
    }
}

/// The sets of one line of [`unions`].
fn parsed(line: &str) -> BTreeMap<&str, Runs> {
    let number = |s: &str| s.trim_matches(|c: char| c != '-' && !c.is_ascii_digit()).parse().unwrap_or(0);
    let set = |t: &str| -> Runs {
        let v: Vec<i128> = t.split(',').map(number).collect();
        v.chunks_exact(2).map(|c| (c[0], c[1])).collect()
    };
    line.split('|').skip(1).filter_map(|f| f.split_once('=')).map(|(k, v)| (k, set(v))).collect()
}

/// Is every set of the new version inside the old one's?
fn contained(old: &str, new: &str) {
    let read = |p: &str| std::fs::read_to_string(p).unwrap_or_default();
    let (old, new) = (read(old), read(new));
    let (mut equal, mut less, mut more, mut gone) = (0, 0, 0, 0);
    for (a, b) in old.lines().zip(new.lines()) {
        if a == b {
            equal += 1;
            continue;
        }
        let (x, y) = (parsed(a), parsed(b));
        let empty = Runs::new();
        let beyond: i128 = y.iter().map(|(k, v)| length(&without(v, x.get(k).unwrap_or(&empty)))).sum();
        let fewer: i128 = x.iter().map(|(k, v)| length(&without(v, y.get(k).unwrap_or(&empty)))).sum();
        let lost = y.keys().any(|k| k.starts_with("open") && !x.contains_key(k));
        (more, less, gone) = (more + i32::from(beyond > 0), less + i32::from(fewer > 0), gone + i32::from(lost));
        println!("{fewer:12} fewer {beyond:6} more{} {}", if lost { " OPEN" } else { "" }, &a[..a.len().min(160)]);
    }
    println!(
        "{equal} equal, {less} with fewer bytes, {more} with more, {gone} with a range lost; {} lines",
        new.lines().count()
    );
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let all = |paths: &[String]| -> Vec<Launch> { paths.iter().flat_map(|p| study(Path::new(p))).collect() };
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["-c", old, new] => contained(old, new),
        ["-u", ..] => unions(&all(&args[1..])),
        _ => {
            let mut only = None;
            let mut halves = args.split(|a| a == "--");
            let studies = all(halves.next().unwrap_or(&[]));
            for a in halves.next().unwrap_or(&[]) {
                match a.strip_prefix("-k") {
                    Some(o) => only = Some(o.to_owned()),
                    None => compare(&studies, a, only.as_deref()),
                }
            }
        }
    }
}
