//! Kernels of Triton that copy by tensor descriptors, as launched on an H200: the bytes that are
//! predicted, against those that perturbed memory showed to be touched.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use device_code::tensor_map::Tensor;
use kernels::{AccessKind, Base, CodeImage, Extent, KernelAccess, LaunchArgs};
use std::collections::BTreeMap;
use std::path::Path;

/// Addresses: from, to.
type Runs = Vec<(u64, u64)>;

fn joined(mut runs: Runs) -> Runs {
    runs.sort_unstable();
    let mut out = Runs::new();
    for (from, to) in runs {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    out
}

fn runs_of(e: &Extent, from: u64) -> Option<Runs> {
    let Extent::Bounded { lo, dims, width, .. } = e else { return None };
    let mut at = vec![from.wrapping_add_signed(*lo)];
    for d in dims {
        at = at.iter().flat_map(|a| (0..d.count).map(move |k| a + k * d.stride)).collect();
    }
    Some(joined(at.iter().map(|a| (*a, a + u64::from(*width))).collect()))
}

/// The bytes of an access, and whether they are exactly those that it touches.
fn bytes_of(a: &KernelAccess, params: &[u8]) -> Option<(Runs, bool)> {
    let is_exact = |e: &Extent| matches!(e, Extent::Bounded { exact: true, .. });
    match a.base {
        Base::TensorMap { offset } => {
            let t = Tensor::decode(params.get(usize::from(offset)..)?)?;
            let all = Extent::of_tiles(&t, a.tiles.as_deref()?, a.kind)?;
            let runs: Option<Vec<Runs>> = all.iter().map(|e| runs_of(e, t.address)).collect();
            Some((joined(runs?.concat()), all.iter().all(is_exact)))
        }
        Base::Word { value, .. } => Some((runs_of(&a.extent, value)?, is_exact(&a.extent))),
        Base::Absolute { value } => Some((runs_of(&a.extent, value)?, is_exact(&a.extent))),
        _ => None,
    }
}

fn runs_named(text: &str, from: u64) -> Runs {
    let number = |n: &str| from + n.parse::<u64>().expect("a number");
    let runs = text.split(',').filter(|r| !r.is_empty()).map(|r| r.split_once('-').expect("a run"));
    runs.map(|(a, b)| (number(a), number(b))).collect()
}

#[test]
fn descriptors_of_triton_touch_what_was_measured() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/triton");
    let text = std::fs::read_to_string(folder.join("launches.txt")).expect("launches");
    let mut codes: BTreeMap<&str, CodeImage> = BTreeMap::new();
    let (mut exact, mut open, mut all) = (0, Vec::new(), 0);
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [case, kernel, file, grid, block, shared, hex, ref tensors @ ..] = words[..] else { panic!("{line}") };
        let code = codes.entry(file).or_insert_with(|| {
            let bytes = std::fs::read(folder.join(file)).expect("code");
            CodeImage::from_code(CodeRef::Cubin(bytes.into()), Arch::new(90)).expect("a cubin")
        });
        let three = |text: &str| -> [u32; 3] {
            let numbers: Vec<u32> = text.split('x').map(|n| n.parse().expect("a number")).collect();
            numbers.try_into().expect("three")
        };
        let params: Vec<u8> =
            (0..hex.len() / 2).map(|k| u8::from_str_radix(&hex[2 * k..2 * k + 2], 16).expect("hex")).collect();
        let launch = LaunchArgs {
            shared: shared.parse().expect("a number"),
            ..LaunchArgs::new(three(grid), three(block), &params)
        };
        let mut found = Vec::new();
        code.summary(kernel).expect("summary").evaluate(&launch, &mut found);
        let bytes: Vec<_> = found.iter().map(|a| (a.kind, bytes_of(a, &params))).collect();
        all += 1;
        // What is not known at all bounds nothing.
        if bytes.iter().any(|b| b.1.is_none()) {
            open.push(case);
            continue;
        }
        let of = |writes: bool| -> Runs {
            let some = bytes.iter().filter(|b| (b.0 != AccessKind::Read) == writes).filter_map(|b| b.1.as_ref());
            joined(some.flat_map(|b| b.0.iter().copied()).collect())
        };
        let (reads, writes) = (of(false), of(true));
        let is_exact = bytes.iter().all(|b| b.1.as_ref().is_some_and(|b| b.1));
        exact += usize::from(is_exact);
        for tensor in tensors {
            let (place, measured) = tensor.split_once(':').expect("a tensor");
            let (place, size) = place.split_once('+').expect("its size");
            let (name, address) = place.split_once('@').expect("its address");
            let (start, size): (u64, u64) = (address.parse().expect("a number"), size.parse().expect("a number"));
            let (how, measured) = measured.split_once('=').expect("runs");
            let measured = runs_named(measured, start);
            let within = |all: &Runs| -> Runs {
                let cut = all.iter().map(|r| (r.0.max(start), r.1.min(start + size)));
                cut.filter(|r| r.0 < r.1).collect()
            };
            let case = format!("{case} {name}");
            if how == "changed" {
                let predicted = within(&writes);
                let inside = |r: &(u64, u64)| predicted.iter().any(|p| p.0 <= r.0 && r.1 <= p.1);
                assert!(measured.iter().all(inside), "{case}: not predicted");
                // What an addition changes need not be every byte.
                assert!(!is_exact || kernel == "add_rows" || predicted == joined(measured), "{case}: not touched");
            } else {
                let predicted = within(&reads);
                let meets = |r: &(u64, u64)| predicted.iter().any(|p| p.0 < r.1 && r.0 < p.1);
                assert!(measured.iter().all(meets), "{case}: read, not predicted");
            }
        }
    }
    assert!(open.is_empty(), "launches of which some bytes are not known: {open:?}");
    assert_eq!((exact, all), (all, 16));
}
