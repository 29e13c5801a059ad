//! Which accesses are atomic towards other kernels: loads, stores and updates of every order,
//! scope, size and space, in PTX and in the machine code that is made of it.

use device_code::arch::Arch;
use kernels::AccessKind::{self, Atomic, AtomicRead, AtomicWrite, Read, Write};
use kernels::{Base, CodeImage, KernelAccess, LaunchArgs};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Registers of each type.
const TYPES: [(&str, &str); 4] = [("b8", "%h"), ("b16", "%h"), ("b32", "%r"), ("b64", "%d")];

/// PTX with a kernel for each form, and what each does through its parameter.
fn source(sm: u16) -> (String, BTreeMap<String, Vec<AccessKind>>) {
    let mut text = format!(".version 8.7\n.target sm_{sm}\n.address_size 64\n");
    let mut expected = BTreeMap::new();
    let mut put = |body: &str, kinds: &[AccessKind]| {
        let name = format!("k{}", expected.len());
        write!(
            text,
            ".visible .entry {name}(.param .u64 p) {{\n.reg .b64 %p, %d; .reg .b32 %r; .reg .b16 %h; .reg .f32 %f;\n\
             ld.param.u64 %p, [p];\nmov.b32 %r, %tid.x; cvt.u16.u32 %h, %r; cvt.u64.u32 %d, %r; cvt.rn.f32.u32 %f, %r;\n\
             {body}\nret;\n}}\n"
        )
        .unwrap();
        expected.insert(name, kinds.to_vec());
    };
    for space in ["", ".global"] {
        for (ty, r) in TYPES {
            // What is loaded is stored, or the load would go.
            let store = |value| format!("st.global.{ty} [%p+64], {value};");
            let loads = |how: &str| format!("ld{how}.{ty} {r}, [%p]; {}", store(r));
            put(&loads(&format!(".weak{space}")), &[Read, Write]);
            put(&format!("st.weak{space}.{ty} [%p], {r};"), &[Write]);
            put(&loads(&format!(".volatile{space}")), &[AtomicRead, Write]);
            put(&format!("st.volatile{space}.{ty} [%p], {r};"), &[AtomicWrite]);
            for scope in ["cta", "gpu", "sys"] {
                let reaches = scope != "cta";
                let (load, store) =
                    (if reaches { AtomicRead } else { Read }, if reaches { AtomicWrite } else { Write });
                for order in ["relaxed", "acquire"] {
                    put(&loads(&format!(".{order}.{scope}{space}")), &[load, Write]);
                }
                for order in ["relaxed", "release"] {
                    put(&format!("st.{order}.{scope}{space}.{ty} [%p], {r};"), &[store]);
                }
            }
        }
        for scope in ["", ".cta", ".gpu", ".sys"] {
            let kinds: &[AccessKind] = if scope == ".cta" { &[Read, Write] } else { &[Atomic] };
            for (name, r) in
                [("add.u32", "%r"), ("add.u64", "%d"), ("min.s32", "%r"), ("and.b64", "%d"), ("add.f32", "%f")]
            {
                put(&format!("red{scope}{space}.{name} [%p], {r};"), kinds);
            }
            let returns = |kinds: &[AccessKind]| {
                let mut all = kinds.to_vec();
                all.extend((!kinds.contains(&Write)).then_some(Write));
                all
            };
            for (name, ty, r) in [("exch.b32", "u32", "%r"), ("add.u64", "u64", "%d"), ("inc.u32", "u32", "%r")] {
                put(
                    &format!("atom{scope}{space}.{name} {r}, [%p], {r}; st.global.{ty} [%p+64], {r};"),
                    &returns(kinds),
                );
            }
            for (ty, r) in &TYPES[1..] {
                put(
                    &format!("atom{scope}{space}.cas.{ty} {r}, [%p], {r}, {r}; st.global.{ty} [%p+64], {r};"),
                    &returns(kinds),
                );
            }
        }
    }
    (text, expected)
}

fn kinds(image: &CodeImage, name: &str) -> Vec<AccessKind> {
    const POINTER: u64 = 0x7f01_0000_0000;
    let params = POINTER.to_le_bytes();
    let summary = image.summary(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([1; 3], [1, 1, 1], &params), &mut found);
    // (Addresses that were rounded down are numbers.)
    let known = |a: &KernelAccess| matches!(a.base, Base::Word { .. } | Base::Absolute { .. });
    assert!(found.iter().all(known), "{name}: {found:?}");
    let mut kinds: Vec<AccessKind> = found.iter().map(|a| a.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[test]
fn orders_and_scopes_decide_what_is_atomic() {
    for sm in [75, 80, 90, 100, 120] {
        let (text, expected) = source(sm);
        let arch = Arch::new(sm);
        let ptx = CodeImage::load(text.as_bytes(), arch).expect("PTX");
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("atomics-{sm}.ptx"));
        if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
            std::fs::write(&file, &text).expect("a file");
        }
        let code = std::fs::read(tests::build::nvcc(&file, &["-cubin", &format!("-arch=sm_{sm}")])).expect("compiled");
        let sass = CodeImage::load(&code, arch).expect("machine code");
        for (name, wanted) in &expected {
            let mut wanted = wanted.clone();
            wanted.sort_unstable();
            wanted.dedup();
            let body = || text.split(&format!("{name}(")).nth(1).and_then(|t| t.split("ret;").next()).unwrap_or("");
            for (form, image) in [("PTX", &ptx), ("machine code", &sass)] {
                let found = kinds(image, name);
                // Swaps of 16 bits are loops of swaps of 32 bits.
                assert_eq!(found, wanted, "sm_{sm}, {form}, {name}: {}", body());
            }
        }
    }
}
