//! Fences of system scope, and the atomic accesses that they go with: of PTX, and of the machine
//! code that is made of it.

use device_code::arch::Arch;
use kernels::AccessKind::{Atomic, AtomicRead, AtomicWrite};
use kernels::{AccessKind, CodeImage, Summary, SystemFences};
use std::fmt::Write as _;
use std::path::Path;

/// What a kernel does, and the kinds that its fences go with; `None`: one of them goes with none.
fn forms() -> Vec<(String, Option<Vec<AccessKind>>)> {
    let mut forms: Vec<(String, Option<Vec<AccessKind>>)> = Vec::new();
    let mut put = |body: String, kinds: Option<&[AccessKind]>| forms.push((body, kinds.map(<[_]>::to_vec)));
    put("st.global.u32 [%p], %r;".to_owned(), Some(&[]));
    put("st.relaxed.gpu.global.u32 [%p], %r;".to_owned(), Some(&[]));
    put("fence.acq_rel.gpu; st.global.u32 [%p], %r;".to_owned(), Some(&[]));
    for guard in ["", "@%q ", "@!%q "] {
        let store = format!("{guard}st.release.sys.global.u32 [%p], %r;");
        let swap = format!("{guard}atom.release.sys.global.exch.b32 %s, [%p], %r;");
        put(store.clone(), Some(&[AtomicWrite]));
        put(swap.clone(), Some(&[Atomic]));
        put(format!("{store} {swap}"), Some(&[AtomicWrite, Atomic]));
        put(format!("st.global.u32 [%p+4], %r; {store} st.global.u32 [%p+8], %r;"), Some(&[AtomicWrite]));
        put(format!("{store} @%q st.global.u32 [%p+4], %r; {store}"), Some(&[AtomicWrite]));
        for fence in ["fence.sc.sys;", "membar.sys;"] {
            for order in ["relaxed.sys", "volatile", "relaxed.gpu"] {
                put(format!("{guard}{fence} {guard}st.{order}.global.u32 [%p], %r;"), Some(&[AtomicWrite]));
                put(format!("{guard}{fence} st.{order}.global.u32 [%p], %r;"), Some(&[AtomicWrite]));
                put(format!("{guard}{fence} {guard}ld.{order}.global.u32 %s, [%p];"), Some(&[AtomicRead]));
            }
            put(format!("{guard}{fence} {guard}atom.global.exch.b32 %s, [%p], %r;"), Some(&[Atomic]));
            // Whatever store comes later may be the message.
            put(format!("{guard}{fence} {guard}st.global.u32 [%p], %r;"), None);
            put(format!("{guard}st.relaxed.sys.global.u32 [%p], %r; {guard}{fence}"), None);
            put(format!("{guard}{fence} @%o st.relaxed.sys.global.u32 [%p], %r;"), None);
            put(format!("{store} {guard}{fence} {guard}st.global.u32 [%p+4], %r;"), None);
        }
    }
    forms
}

fn source(sm: u16) -> String {
    let mut text = format!(".version 8.7\n.target sm_{sm}\n.address_size 64\n");
    for (n, (body, _)) in forms().iter().enumerate() {
        write!(
            text,
            ".visible .entry k{n}(.param .u64 p, .param .u32 n, .param .u32 m) {{\n\
             .reg .b64 %p; .reg .b32 %r, %s, %n, %m; .reg .pred %q, %o;\n\
             ld.param.u64 %p, [p]; ld.param.u32 %n, [n]; ld.param.u32 %m, [m];\n\
             mov.b32 %r, %tid.x; mov.b32 %s, 0;\n\
             setp.lt.s32 %q, %r, %n; setp.lt.s32 %o, %r, %m;\n{body}\nst.global.u32 [%p+64], %s;\nret;\n}}\n"
        )
        .unwrap();
    }
    text
}

/// Kernels with these bodies, named by their place.
fn stores(sm: u16, bodies: &[&str]) -> String {
    let mut text = format!(".version 8.7\n.target sm_{sm}\n.address_size 64\n");
    for (n, body) in bodies.iter().enumerate() {
        write!(
            text,
            ".visible .entry k{n}(.param .u64 p) {{\n.reg .b64 %p; .reg .b32 %r, %s;\n\
             ld.param.u64 %p, [p]; mov.b32 %r, %tid.x; mov.b32 %s, 0;\n{body}\n\
             st.global.u32 [%p+64], %s;\nret;\n}}\n"
        )
        .unwrap();
    }
    text
}

/// Asks about each kernel of a text, as PTX and as machine code, for several architectures: which
/// code it is, for which architecture, the kernel's place, and what is known of it.
fn in_both_codes(name: &str, source: impl Fn(u16) -> String, kernels: usize, ask: impl Fn(&str, u16, usize, &Summary)) {
    for sm in [75, 80, 90, 100] {
        let text = source(sm);
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{sm}.ptx"));
        if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
            std::fs::write(&file, &text).expect("a file");
        }
        let code = std::fs::read(tests::build::nvcc(&file, &["-cubin", &format!("-arch=sm_{sm}")])).expect("compiled");
        for (front, bytes) in [("PTX", text.as_bytes()), ("machine code", &code)] {
            let image = CodeImage::load(bytes, Arch::new(sm)).unwrap_or_else(|e| panic!("{e}"));
            for n in 0..kernels {
                let summary = image.summary(&format!("k{n}")).unwrap_or_else(|e| panic!("{name}, {front}: k{n}: {e}"));
                ask(front, sm, n, &summary);
            }
        }
    }
}

#[test]
fn a_fence_goes_with_the_atomic_access_that_runs_whenever_it_does() {
    let forms = forms();
    in_both_codes("system-fences", source, forms.len(), |front, sm, n, summary| {
        let (body, wanted) = &forms[n];
        let mut found = match summary.system_fences() {
            SystemFences::None => Some(Vec::new()),
            SystemFences::Releases(kinds) => Some(kinds.clone()),
            SystemFences::Free => None,
        };
        if let Some(found) = &mut found {
            found.sort_unstable();
        }
        let sorted = wanted.clone().map(|mut kinds| {
            kinds.sort_unstable();
            kinds
        });
        // `ptxas` may part a guarded fence from its access. Then nothing is known.
        let is_parted = front == "machine code" && body.contains('@') && found.is_none();
        assert!(found == sorted || is_parted, "sm_{sm}, {front}, {body}: {found:?}, not {sorted:?}");
    });
}

/// What a kernel does, and whether it stores words, or updates them, with the scope of the system.
const STORES: [(&str, (bool, bool)); 14] = [
    ("st.global.u32 [%p], %r;", (false, false)),
    ("st.relaxed.gpu.global.u32 [%p], %r;", (false, false)),
    ("st.release.gpu.global.u32 [%p], %r;", (false, false)),
    ("atom.global.add.u32 %s, [%p], %r;", (false, false)),
    ("red.relaxed.gpu.global.add.u32 [%p], %r;", (false, false)),
    ("fence.sc.sys; st.global.u32 [%p], %r;", (false, false)),
    ("ld.relaxed.sys.global.u32 %s, [%p];", (false, false)),
    ("st.relaxed.sys.global.u32 [%p], %r;", (true, false)),
    ("st.release.sys.global.u32 [%p], %r;", (true, false)),
    ("st.volatile.global.u32 [%p], %r;", (true, false)),
    ("st.volatile.u32 [%p], %r;", (true, false)),
    ("atom.sys.global.exch.b32 %s, [%p], %r;", (false, true)),
    ("red.relaxed.sys.global.add.u32 [%p], %r;", (false, true)),
    ("st.volatile.global.u32 [%p], %r; red.sys.global.add.u32 [%p+4], %r;", (true, true)),
];

#[test]
fn stores_with_the_scope_of_the_system_are_for_the_host() {
    let bodies = STORES.map(|(body, _)| body);
    in_both_codes(
        "system-stores",
        |sm| stores(sm, &bodies),
        STORES.len(),
        |front, sm, n, summary| {
            let (body, wanted) = STORES[n];
            assert_eq!(summary.system_stores(), wanted, "{front} for {sm}: {body}");
        },
    );
}

/// What a kernel does, each instruction on a line of its own, and how many of its atomic stores do
/// not reach the host although others do.
const SCOPES: [(&str, usize); 12] = [
    ("st.relaxed.gpu.global.u32 [%p], %r;\nred.gpu.global.add.u32 [%p+4], %r;", 0),
    ("st.relaxed.sys.global.u32 [%p], %r;\nst.volatile.global.u32 [%p+4], %r;", 0),
    ("st.relaxed.gpu.global.u32 [%p], %r;\nst.relaxed.sys.global.u32 [%p+4], %r;", 1),
    ("st.release.gpu.global.u32 [%p], %r;\nst.release.sys.global.u32 [%p+4], %r;", 1),
    ("atom.global.add.u32 %s, [%p], %r;\nst.volatile.global.u32 [%p+4], %r;", 1),
    ("red.global.add.u32 [%p], %r;\nst.relaxed.gpu.global.u32 [%p+8], %r;\nred.sys.global.add.u32 [%p+4], %r;", 2),
    ("st.global.u32 [%p], %r;\nst.relaxed.sys.global.u32 [%p+4], %r;", 0),
    ("st.relaxed.gpu.global.u32 [%p], %r;\nfence.sc.sys;\nst.relaxed.sys.global.u32 [%p+4], %r;", 1),
    // The fence may make a message of it.
    ("fence.sc.sys;\nst.relaxed.gpu.global.u32 [%p], %r;\nst.relaxed.sys.global.u32 [%p+4], %r;", 0),
    ("st.relaxed.gpu.global.u32 [%p], %r;\nst.relaxed.sys.global.u32 [%p+4], %r;\nmembar.sys;", 0),
    ("membar.sys;\nst.global.u32 [%p+8], %r;\nred.global.add.u32 [%p], %r;\nst.volatile.global.u32 [%p+4], %r;", 0),
    // Of one line nobody knows which.
    ("st.relaxed.gpu.global.u32 [%p], %r; st.relaxed.sys.global.u32 [%p+4], %r;", 0),
];

#[test]
fn an_instruction_has_a_scope_of_its_own() {
    let bodies = SCOPES.map(|(body, _)| body);
    in_both_codes(
        "store-scopes",
        |sm| stores(sm, &bodies),
        SCOPES.len(),
        |front, sm, n, summary| {
            let (body, wanted) = SCOPES[n];
            let stores = summary.instructions().filter(|(kind, ..)| matches!(kind, Atomic | AtomicWrite));
            let mut narrow: Vec<u32> = stores.map(|(_, at, _)| at).filter(|at| summary.is_narrow_store(*at)).collect();
            narrow.sort_unstable();
            narrow.dedup();
            // Machine code has no lines, and more than one instruction for some updates.
            let is_apart = front == "machine code" && n + 1 == SCOPES.len();
            let wanted = if is_apart { 1 } else { wanted };
            let several = front == "machine code" && body.contains("add") && wanted > 0 && narrow.len() > wanted;
            assert!(narrow.len() == wanted || several, "{front} for {sm}: {body}: {}", narrow.len());
        },
    );
}
