//! Handovers between kernels: which accesses are published by an atomic store, and which await one.
//! By each form of store, load, look and mistake, in PTX and in the machine code made of it.

use device_code::arch::Arch;
use kernels::AccessKind::{Read, Write};
use kernels::{AccessKind, Base, CodeImage, LaunchArgs, LockRole};
use std::fmt::Write as _;
use std::path::Path;

/// How much an access orders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    Device,
    /// Within the block only.
    Block,
    Nothing,
}

const ORDERS: [Order; 3] = [Order::Device, Order::Block, Order::Nothing];

/// Stores 1 to the flag, in each form.
fn stores(order: Order) -> Vec<String> {
    let fence = |block: &str, device: &str| match order {
        Order::Device => format!("{device};\n"),
        Order::Block => format!("{block};\n"),
        Order::Nothing => String::new(),
    };
    let (membar, fences) = (fence("membar.cta", "membar.gl"), fence("fence.acq_rel.cta", "fence.acq_rel.gpu"));
    let ordered = |with: &str| match order {
        Order::Device => format!("{with}.gpu"),
        Order::Block => format!("{with}.cta"),
        Order::Nothing => "relaxed.gpu".into(),
    };
    vec![
        format!("st.{}.global.u32 [%f], 1;", ordered("release")),
        format!("st.{}.u32 [%f], 1;", ordered("release").replace("gpu", "sys")),
        format!("{membar}st.relaxed.gpu.global.u32 [%f], 1;"),
        format!("{membar}st.volatile.global.u32 [%f], 1;"),
        format!("{fences}atom.global.exch.b32 %v, [%f], 1;"),
        format!("atom.{}.global.add.u32 %v, [%f], 1;", ordered("acq_rel")),
        format!("red.{}.global.add.u32 [%f], 1;", ordered("release")),
    ]
}

/// Loads the flag to `%v`, in each form.
fn loads(order: Order) -> Vec<String> {
    let fence = |block: &str, device: &str| match order {
        Order::Device => format!("\n{device};"),
        Order::Block => format!("\n{block};"),
        Order::Nothing => String::new(),
    };
    let (membar, fences) = (fence("membar.cta", "membar.gl"), fence("fence.sc.cta", "fence.sc.gpu"));
    let ordered = |with: &str| match order {
        Order::Device => format!("{with}.gpu"),
        Order::Block => format!("{with}.cta"),
        Order::Nothing => "relaxed.gpu".into(),
    };
    vec![
        format!("ld.{}.global.u32 %v, [%f];", ordered("acquire")),
        format!("ld.{}.u32 %v, [%f];", ordered("acquire").replace("gpu", "sys")),
        format!("ld.relaxed.gpu.global.u32 %v, [%f];{fences}"),
        format!("ld.volatile.global.u32 %v, [%f];{membar}"),
        format!("atom.global.add.u32 %v, [%f], 0;{membar}"),
        format!("atom.{}.global.cas.b32 %v, [%f], 1, 1;", ordered("acquire")),
    ]
}

/// Kernels that write data and set a flag: the body, and whether they hand the data over.
fn writers() -> Vec<(String, bool)> {
    let mut all = Vec::new();
    for order in ORDERS {
        for store in stores(order) {
            let right = order == Order::Device;
            let data = "st.global.u32 [%a], %t;";
            let one = format!("setp.ne.u32 %q, %t, 0; @%q bra END;\n{store}");
            let each = format!("{data}\n{store}");
            all.push((format!("{data}\nbar.sync 0;\n{one}"), right));
            all.push((each.clone(), right));
            if !right {
                continue;
            }
            let first = format!("setp.ne.u32 %q, %t, 0; @%q bra GO;\n{store}\nGO:\nbar.sync 0;");
            // The flag comes first, or too early for some data; another thread has set it.
            all.push((format!("{first}\n{data}"), false));
            all.push((format!("{each}\nst.global.u32 [%a+64], %t;"), false));
            all.push((format!("{data}\n{one}"), false));
            // A loop without a wait writes behind the flag.
            let rounds = "add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %n; @%q bra AGAIN;";
            all.push((format!("mov.u32 %i, 0;\nAGAIN:\n{each}\n{rounds}"), false));
            // A fence in front of the data is none behind them.
            let fence = store.split_once('\n').filter(|(fence, _)| fence.contains("membar"));
            all.extend(fence.map(|(fence, rest)| (format!("{fence}\n{data}\n{rest}"), false)));
        }
    }
    all
}

/// Kernels that look at a flag and read data: the body, and whether they await the flag.
fn readers() -> Vec<(String, bool)> {
    let mut all = Vec::new();
    let data = "ld.global.u32 %d, [%a]; st.global.u32 [%o], %d;";
    let others = "setp.ne.u32 %q, %t, 0; @%q bra JOIN;";
    let again = "setp.eq.u32 %q, %v, 0; @%q bra AGAIN;";
    let unless = "setp.eq.u32 %q, %v, 0; @%q bra END;";
    for order in ORDERS {
        for load in loads(order) {
            let right = order == Order::Device;
            let spin = format!("AGAIN:\n{load}\n{again}");
            let tries = format!(
                "mov.u32 %i, 0; mov.u32 %v, 0;\nAGAIN:\nsetp.ge.u32 %q, %i, %n; @%q bra DONE;\n{load}\n\
                 add.u32 %i, %i, 1;\n{again}\nDONE:"
            );
            let shared = "st.shared.u32 [word], %v;";
            let told = "ld.shared.u32 %v, [word];";
            let forms = [
                spin.clone(),
                format!("{others}\n{spin}\nJOIN:\nbar.sync 0;"),
                format!("{others}\n{tries}\n{shared}\nJOIN:\nbar.sync 0;\n{told}\n{unless}"),
                format!("{tries}\n{unless}"),
                format!("{load}\n{unless}"),
                format!(
                    "mov.u32 %v, 0;\n{others}\n{load}\nJOIN:\nsetp.ne.u32 %q, %v, 0;\nbar.red.or.pred %w, 0, %q; \
                     @!%w bra END;"
                ),
                format!("{load}\nsetp.ne.u32 %q, %v, 0;\nbar.red.or.pred %w, 0, %q; @!%w bra END;"),
            ];
            all.extend(forms.iter().map(|form| (format!("{form}\n{data}"), right)));
            let guarded = "setp.ne.u32 %q, %v, 0; mov.u32 %d, 0; @%q ld.global.u32 %d, [%a]; st.global.u32 [%o], %d;";
            all.push((format!("{load}\n{guarded}"), right));
            let wanted = "setp.ne.u32 %q, %v, 0; setp.gt.u32 %w, %n, 5; and.pred %q, %q, %w; @!%q bra END;";
            all.push((format!("{load}\n{wanted}\n{data}"), right));
            if !right {
                continue;
            }
            // It reads before, or does not look at what it has loaded.
            let peek = "ld.global.u32 %i, [%a]; st.global.u32 [%o+64], %i;";
            all.extend(forms.iter().map(|form| (format!("{peek}\n{form}\n{data}"), false)));
            let ignored = "st.global.u32 [%o+64], %v;";
            all.push((format!("{load}\n{ignored}\n{data}"), false));
            all.push((format!("{tries}\n{ignored}\n{data}"), false));
            all.push((format!("{others}\n{tries}\n{shared}\nJOIN:\nbar.sync 0;\n{told}\n{ignored}\n{data}"), false));
            // A loop ends where the flag is set or no try is left.
            let tried = "add.u32 %i, %i, 1; setp.eq.u32 %q, %v, 0; setp.lt.u32 %w, %i, %n; and.pred %q, %q, %w;";
            let loops = format!("mov.u32 %i, 0;\nAGAIN:\n{load}\n{tried} @%q bra AGAIN;");
            all.push((format!("{loops}\n{data}"), false));
            all.push((format!("{loops}\n{unless}\n{data}"), true));
            all.push((format!("{others}\n{loops}\nJOIN:\nbar.sync 0;\n{data}"), false));
            // The others do not wait for the thread that looks; nor do other blocks.
            all.push((format!("{others}\n{spin}\nJOIN:\n{data}"), false));
            let first = "mov.u32 %i, %ctaid.x; or.b32 %i, %i, %t; setp.ne.u32 %q, %i, 0; @%q bra JOIN;";
            all.push((format!("{first}\n{spin}\nJOIN:\nbar.sync 0;\n{data}"), false));
        }
    }
    all
}

fn source(sm: u16, bodies: &[(String, bool)]) -> String {
    let mut text = format!(".version 8.7\n.target sm_{sm}\n.address_size 64\n");
    for (n, (body, _)) in bodies.iter().enumerate() {
        // Labels are those of a function.
        write!(
            text,
            ".visible .entry k{n}(.param .u64 data, .param .u64 flag, .param .u64 out, .param .u32 count) {{\n\
             .reg .b64 %a, %f, %o; .reg .b32 %t, %v, %d, %i, %n; .reg .pred %q, %w; .shared .b32 word;\n\
             ld.param.u64 %a, [data]; ld.param.u64 %f, [flag]; ld.param.u64 %o, [out]; ld.param.u32 %n, [count];\n\
             mov.u32 %t, %tid.x; mad.wide.u32 %a, %t, 4, %a; mad.wide.u32 %o, %t, 4, %o;\n\
             {body}\nEND:\nret;\n}}\n"
        )
        .expect("text");
    }
    text
}

/// How the accesses to the data are ordered, and by which parameters.
fn role(image: &CodeImage, name: &str, kind: AccessKind) -> Option<LockRole> {
    let mut params = Vec::new();
    for pointer in [0x7f01_0000_0000_u64, 0x7f02_0000_0000, 0x7f03_0000_0000] {
        params.extend(pointer.to_le_bytes());
    }
    params.extend(100_u32.to_le_bytes());
    let summary = image.summary(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([2, 1, 1], [64, 1, 1], &params), &mut found);
    let is_data = |base: &Base| matches!(base, Base::Word { offset: 0, .. });
    let data: Vec<_> = found.iter().filter(|a| a.kind == kind && is_data(&a.base)).collect();
    assert!(!data.is_empty(), "{name}: {found:?}");
    let lock = data[0].lock.as_ref()?;
    assert!(data.iter().all(|a| a.lock.as_ref() == Some(lock)), "{name}: {data:?}");
    let flags = lock.words.iter().all(|(base, _)| matches!(base, Base::Word { offset: 8, .. }));
    assert!(flags && !lock.words.is_empty(), "{name}: {lock:?}");
    Some(lock.role)
}

#[test]
fn a_release_gives_and_an_acquire_awaits() {
    let sides = [("writers", writers(), Write, LockRole::Gives), ("readers", readers(), Read, LockRole::Awaits)];
    let mut wrong = Vec::new();
    for (side, bodies, kind, wanted) in &sides {
        for sm in [80, 100] {
            let arch = Arch::new(sm);
            let text = source(sm, bodies);
            let ptx = CodeImage::load(text.as_bytes(), arch).expect("PTX");
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("handovers-{side}-{sm}.ptx"));
            if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
                std::fs::write(&file, &text).expect("a file");
            }
            let code = std::fs::read(tests::build::nvcc(&file, &["-cubin", &format!("-arch=sm_{sm}")])).expect("code");
            let sass = CodeImage::load(&code, arch).expect("machine code");
            for (n, (body, right)) in bodies.iter().enumerate() {
                for (form, image) in [("PTX", &ptx), ("machine code", &sass)] {
                    // `ptxas` lets one lane update the flag for its warp.
                    let by_one = body.contains(".add.u32 ") && !body.contains("setp");
                    if by_one && form != "PTX" && *kind == Write {
                        continue;
                    }
                    let found = role(image, &format!("k{n}"), *kind);
                    if found != right.then_some(*wanted) {
                        wrong.push(format!("sm_{sm}, {form}, {side}, {found:?}, k{n}:\n{body}\n"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), 4 * (sides[0].1.len() + sides[1].1.len()), wrong.join("\n"));
}
