//! Containers made by the toolkit: every kind of entry, every compression, every architecture; what
//! a cubin says about its kernels; how long images are; fatbins in host programs.

use device_code::arch::{Arch, Variant};
use device_code::image::{
    CodeRef, Compression, Cubin, EntryKind, Image, ImageError, ImageSize, find_in_host, image_size, runs_on,
};
use device_code::sass::{Opcode, decode_all};
use std::path::{Path, PathBuf};
use tests::build::{installed_toolkit, nvcc};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/image/containers.cu")
}

const TARGETS: &[&str] = &[
    "-gencode=arch=compute_75,code=[sm_75,compute_75]",
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_90a,code=sm_90a",
    "-gencode=arch=compute_100f,code=sm_100f",
    "-gencode=arch=compute_120,code=compute_120",
];

fn fatbin(mode: &str) -> Vec<u8> {
    let mut options = vec!["-fatbin", "--compress-mode", mode];
    options.extend(TARGETS);
    std::fs::read(nvcc(&source(), &options)).expect("a fatbin")
}

fn cubin(arch: &str) -> Vec<u8> {
    std::fs::read(nvcc(&source(), &["-cubin", &format!("-arch={arch}")])).expect("a cubin")
}

fn unpacked(image: &Image<'_>) -> Vec<Vec<u8>> {
    image
        .entries()
        .iter()
        .map(|e| match e.unpack().expect("unpacks") {
            CodeRef::Cubin(b) => b.into_owned(),
            CodeRef::Ptx(t) => t.into_owned().into_bytes(),
        })
        .collect()
}

#[test]
fn fatbins_of_every_compression() {
    let none = fatbin("none");
    let image = Image::parse(&none).expect("parses");
    let list: Vec<(EntryKind, String)> = image.entries().iter().map(|e| (e.kind, e.arch.to_string())).collect();
    for (kind, arch) in [
        (EntryKind::Cubin, "sm_75"),
        (EntryKind::Ptx, "sm_75"),
        (EntryKind::Cubin, "sm_90"),
        (EntryKind::Cubin, "sm_90a"),
        (EntryKind::Cubin, "sm_100f"),
        (EntryKind::Ptx, "sm_120"),
    ] {
        assert!(list.contains(&(kind, arch.to_string())), "{kind:?} {arch} in {list:?}");
    }
    assert_eq!(list.len(), 6, "{list:?}");
    assert!(image.entries().iter().all(|e| e.compression == Compression::None));
    let plain = unpacked(&image);
    let mut seen = Vec::new();
    for mode in ["size", "speed", "balance"] {
        let packed = fatbin(mode);
        let image = Image::parse(&packed).expect("parses");
        seen.extend(image.entries().iter().map(|e| e.compression));
        // Build times are written into cubins as notes, so only sizes and PTX are equal byte by
        // byte.
        for ((e, a), b) in image.entries().iter().zip(unpacked(&image)).zip(&plain) {
            match e.kind {
                EntryKind::Ptx => assert_eq!(a, *b, "{mode}"),
                EntryKind::Cubin => {
                    let (a, b) = (Cubin::parse(&a).expect("cubin"), Cubin::parse(b).expect("cubin"));
                    assert_eq!(a.kernels().len(), b.kernels().len());
                    for (x, y) in a.kernels().iter().zip(b.kernels()) {
                        assert_eq!((&x.name, x.code), (&y.name, y.code), "{mode}");
                    }
                }
            }
        }
    }
    assert!(seen.contains(&Compression::Zstd) && seen.contains(&Compression::Lz4), "{seen:?}");
}

#[test]
fn the_driver_s_choice() {
    let bytes = fatbin("none");
    let image = Image::parse(&bytes).expect("parses");
    let choice = |sm: u16| image.choose(Arch::new(sm)).map(|e| (e.kind, e.arch.to_string()));
    let cubin = |name: &str| Some((EntryKind::Cubin, name.to_string()));
    let ptx = |name: &str| Some((EntryKind::Ptx, name.to_string()));
    assert_eq!(choice(75), cubin("sm_75"));
    assert_eq!(choice(80), ptx("sm_75"));
    assert_eq!(choice(86), ptx("sm_75"));
    assert_eq!(choice(90), cubin("sm_90a"));
    assert_eq!(choice(100), cubin("sm_100f"));
    assert_eq!(choice(103), cubin("sm_100f"));
    assert_eq!(choice(110), ptx("sm_75"));
    assert_eq!(choice(120), ptx("sm_120"));
    assert_eq!(choice(121), ptx("sm_120"));
    assert_eq!(choice(70), None);
    assert!(matches!(image.select(Arch::new(70)), Ok(None)));
    assert!(matches!(image.select(Arch::new(90)), Ok(Some(CodeRef::Cubin(_)))));
}

#[test]
fn what_runs_where() {
    let a = |name: &str| name.parse::<Arch>().expect("name");
    let yes = [
        ("sm_80", 80),
        ("sm_80", 86),
        ("sm_86", 89),
        ("sm_90a", 90),
        ("sm_100f", 103),
        ("sm_100a", 100),
        ("sm_75", 75),
    ];
    let no = [
        ("sm_86", 80),
        ("sm_80", 90),
        ("sm_90a", 100),
        ("sm_100a", 103),
        ("sm_100f", 110),
        ("sm_103f", 100),
        ("sm_120", 100),
    ];
    for (code, device) in yes {
        assert!(runs_on(EntryKind::Cubin, a(code), Arch::new(device)), "{code} on {device}");
    }
    for (code, device) in no {
        assert!(!runs_on(EntryKind::Cubin, a(code), Arch::new(device)), "{code} on {device}");
    }
    assert!(runs_on(EntryKind::Ptx, a("sm_75"), Arch::new(120)));
    assert!(!runs_on(EntryKind::Ptx, a("sm_90a"), Arch::new(100)));
    assert!(!runs_on(EntryKind::Ptx, a("sm_120"), Arch::new(100)));
    assert_eq!(a("compute_90a").variant, Variant::Exact);
}

#[test]
fn cubins_describe_kernels() {
    for (name, base) in
        [("sm_75", 0x160), ("sm_80", 0x160), ("sm_86", 0x160), ("sm_90", 0x210), ("sm_100", 0x380), ("sm_120", 0x380)]
    {
        let bytes = cubin(name);
        let cubin = Cubin::parse(&bytes).expect("parses");
        assert_eq!(cubin.arch.to_string(), name);
        let mut names: Vec<&str> = cubin.kernels().iter().map(|k| k.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["big", "callers", "jumps", "none", "plain"], "{name}");

        let plain = cubin.kernel("plain").expect("plain");
        let layout: Vec<(u16, u32, u32)> = plain.params.iter().map(|p| (p.ordinal, p.offset, p.size)).collect();
        assert_eq!(layout, [(0, 0, 8), (1, 8, 4), (2, 16, 16), (3, 32, 1)], "{name}");
        assert_eq!((plain.param_base, plain.param_size), (base, 33), "{name}");
        assert_eq!(plain.externs, ["vprintf"], "{name}");
        assert!(!plain.syscalls.is_empty(), "{name}");
        assert!(plain.registers >= 8, "{name}: {}", plain.registers);
        if cubin.arch.sm >= 100 {
            assert!(plain.params[0].marked_pointer && !plain.params[1].marked_pointer);
        }

        let big = cubin.kernel("big").expect("big");
        let layout: Vec<(u32, u32)> = big.params.iter().map(|p| (p.offset, p.size)).collect();
        assert_eq!(layout, [(0, 3), (4, 8000), (8008, 8)], "{name}");
        assert_eq!(big.param_size, 8016, "{name}");

        let none = cubin.kernel("none").expect("none");
        assert!(none.params.is_empty());
        let reserved = if cubin.arch.sm >= 90 { 1024 } else { 0 };
        assert_eq!(none.shared_bytes, 1200 + reserved, "{name}");
        assert_eq!(none.max_block, Some([256, 1, 1]), "{name}");
    }
}

/// The compiler's list of exits and jump targets against our decoder.
#[test]
fn notes_agree_with_the_code() {
    for name in ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"] {
        let bytes = cubin(name);
        let cubin = Cubin::parse(&bytes).expect("parses");
        let generation = cubin.arch.generation().expect("known");
        for k in cubin.kernels() {
            let code = decode_all(generation, k.code, 0);
            let exits: Vec<u32> = code.iter().filter(|i| i.op == Opcode::Exit).map(|i| i.pc).collect();
            assert_eq!(k.exits, exits, "{name} {}", k.name);
            for b in &k.indirect {
                let branch = &code[b.pc as usize / 16];
                assert!(matches!(branch.op, Opcode::Brx), "{name} {}: {branch}", k.name);
                assert!(!b.targets.is_empty() && b.targets.iter().all(|t| (*t as usize) < k.code.len()));
            }
            let brx = code.iter().filter(|i| matches!(i.op, Opcode::Brx)).count();
            assert_eq!(brx, k.indirect.len(), "{name} {}", k.name);
            assert_eq!(cubin.function_at(k.section, k.entry).map(|s| s.name.as_str()), Some(k.name.as_str()));
        }
        let jumps = cubin.kernel("jumps").expect("jumps");
        assert!(!jumps.indirect.is_empty(), "{name}: the switch became a table");
        // The table in bank 2 holds the targets.
        let bank2 = cubin.const_bank(jumps, 2).expect("bank 2");
        let words: Vec<u32> =
            bank2.data.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("4"))).collect();
        for t in jumps.indirect.iter().flat_map(|b| &b.targets) {
            assert!(words.contains(t), "{name}: {t:#x} in {words:x?}");
        }
    }
}

#[test]
fn constants_name_their_symbols() {
    for name in ["sm_75", "sm_90", "sm_120"] {
        let bytes = cubin(name);
        let cubin = Cubin::parse(&bytes).expect("parses");
        let plain = cubin.kernel("plain").expect("plain");
        let bank4 = cubin.const_bank(plain, 4).expect("bank 4");
        let names: Vec<&str> = bank4.relocs.iter().map(|r| cubin.symbols()[r.symbol].name.as_str()).collect();
        for want in ["counter", "garr", "vprintf"] {
            assert!(names.contains(&want), "{name}: {want} in {names:?}");
        }
        let first = bank4.relocs[0];
        let (symbol, addend) = cubin.const_symbol(plain, 4, first.offset as u32).expect("symbol");
        assert_eq!((symbol.name.as_str(), addend), (names[0], 0));
        assert_eq!(cubin.const_bank(plain, 3).expect("bank 3").data.len(), 64, "tab");
        let callers = cubin.kernel("callers").expect("callers");
        assert!(cubin.functions(callers.section).len() >= 2, "{name}: helper is in the section of its caller");
    }
}

/// Registers per thread as `cuobjdump` reports them.
#[test]
fn registers_agree_with_cuobjdump() {
    let path = nvcc(&source(), &["-cubin", "-arch=sm_90"]);
    let out = std::process::Command::new(installed_toolkit().join("bin/cuobjdump"))
        .arg("-res-usage")
        .arg(&path)
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let bytes = std::fs::read(&path).expect("cubin");
    let cubin = Cubin::parse(&bytes).expect("parses");
    let mut checked = 0;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.trim().strip_prefix("Function ").and_then(|l| l.strip_suffix(':')) else { continue };
        let usage = lines.next().expect("a line of numbers");
        let number = |key: &str| -> u64 {
            let at = usage.find(key).expect("key") + key.len();
            usage[at..].split(' ').next().and_then(|t| t.parse().ok()).expect("number")
        };
        let Some(k) = cubin.kernel(name) else { continue };
        assert_eq!(u64::from(k.registers), number("REG:"), "{name}");
        checked += 1;
    }
    assert_eq!(checked, 5, "{text}");
}

/// Asks for the size as the shim does: more bytes only when asked.
fn size_by_steps(image: &[u8], behind: &[u8]) -> u64 {
    let all: Vec<u8> = image.iter().chain(behind).copied().collect();
    let mut have = 64.min(all.len());
    loop {
        match image_size(&all[..have]).expect("an image") {
            ImageSize::Exact(n) => return n,
            ImageSize::NeedAtLeast(n) => {
                assert!(n > have as u64, "progress");
                assert!(n <= image.len() as u64 + 1, "asks only for what the image has: {n} of {}", image.len());
                have = n as usize;
            }
        }
    }
}

#[test]
fn sizes_are_exact() {
    let junk = [0xabu8; 100];
    for name in ["sm_75", "sm_90", "sm_120"] {
        let bytes = cubin(name);
        assert_eq!(size_by_steps(&bytes, &junk), bytes.len() as u64, "{name}");
    }
    for mode in ["none", "size", "speed"] {
        let bytes = fatbin(mode);
        let n = size_by_steps(&bytes, &junk);
        assert!(n <= bytes.len() as u64 && n + 16 > bytes.len() as u64, "{n} of {}", bytes.len());
    }
    let ptx = b"// comment\n.version 8.0\n.target sm_80\n.address_size 64\n\0";
    assert_eq!(size_by_steps(ptx, &junk), ptx.len() as u64);
}

#[test]
fn ptx_text_is_an_image() {
    let text = "/* made by hand */\n  // with comments\n.version 8.0\n.target sm_90a, debug\n.address_size 64\n";
    for bytes in [text.as_bytes().to_vec(), [text.as_bytes(), b"\0garbage"].concat()] {
        let image = Image::parse(&bytes).expect("PTX");
        assert_eq!(image.entries().len(), 1);
        assert_eq!(image.entries()[0].arch.to_string(), "sm_90a");
        let Ok(Some(CodeRef::Ptx(t))) = image.select(Arch::new(90)) else { panic!("PTX for sm_90") };
        assert_eq!(t, text);
        assert!(matches!(image.select(Arch::new(100)), Ok(None)));
    }
}

#[test]
fn fatbins_are_found_in_programs() {
    let lib = format!("-L{}", installed_toolkit().join("lib").display());
    let exe = nvcc(&source(), &["-arch=sm_90", &lib]);
    let bytes = std::fs::read(exe).expect("program");
    let found = find_in_host(&bytes).expect("ELF");
    let mut names = Vec::new();
    for f in found.iter().filter(|f| !f.relocatable) {
        let image = f.image.as_ref().expect("readable");
        if let Some(CodeRef::Cubin(code)) = image.select(Arch::new(90)).expect("unpacks") {
            names.extend(Cubin::parse(&code).expect("cubin").kernels().iter().map(|k| k.name.clone()));
        }
    }
    for want in ["plain", "jumps", "big"] {
        assert!(names.iter().any(|n| n == want), "{want} in {names:?}");
    }
    // Our own test binary holds none.
    let own = std::fs::read(std::env::current_exe().expect("path")).expect("readable");
    assert!(find_in_host(&own).expect("ELF").is_empty());
}

#[test]
fn foreign_bytes_are_named_errors() {
    assert!(matches!(Image::parse(b""), Err(ImageError::Unrecognised(_))));
    assert!(matches!(Image::parse(b"hello, world, no PTX"), Err(ImageError::Unrecognised(_))));
    let own = std::fs::read(std::env::current_exe().expect("path")).expect("readable");
    assert!(matches!(Image::parse(&own), Err(ImageError::Unknown { what: "ELF machine", .. })));
    let mut wrapper = 0x4662_43b1u32.to_le_bytes().to_vec();
    wrapper.extend(1u32.to_le_bytes());
    wrapper.extend(0x7f12_3456u64.to_le_bytes());
    wrapper.extend([0; 8]);
    assert_eq!(Image::parse(&wrapper).err(), Some(ImageError::Wrapper(0x7f12_3456)));
    assert!(image_size(&wrapper).is_err());
}
