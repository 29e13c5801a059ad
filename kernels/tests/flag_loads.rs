//! Flags that kernels poll: which loads they are, how far they reach, and whether an acquire lies
//! behind them; of PTX, and of the machine code that is made of it.

use device_code::arch::Arch;
use kernels::{CodeImage, LoadScope};
use std::fmt::Write as _;
use std::path::Path;

/// What a kernel does (`%p`: a flag, `%d`: data, `%n`: a number), and of each flag that it polls
/// the scope and whether data is touched behind it without an acquire.
fn forms() -> Vec<(String, Vec<(LoadScope, bool)>)> {
    let mut forms = Vec::new();
    let mut put = |body: String, flags: &[(LoadScope, bool)]| forms.push((body, flags.to_vec()));
    let poll =
        |order: &str| format!("$loop:\nld.{order}.global.u32 %r, [%p];\nsetp.lt.u32 %q, %r, %n;\n@%q bra $loop;\n");
    let data = "ld.global.u32 %s, [%d];\n";
    for (order, scope) in
        [("relaxed.sys", LoadScope::System), ("volatile", LoadScope::System), ("relaxed.gpu", LoadScope::Device)]
    {
        put(poll(order) + data, &[(scope, true)]);
        for fence in ["fence.acq_rel.sys;\n", "fence.sc.sys;\n", "membar.sys;\n"] {
            put(poll(order) + fence + data, &[(scope, false)]);
            put(poll(order) + "bar.sync 0;\n" + fence + data, &[(scope, false)]);
        }
        // The threads that wait for the one which polls read on.
        put(poll(order) + "bar.sync 0;\n" + data, &[(scope, true)]);
        // Nothing is read behind it but other flags.
        put(poll(order), &[(scope, false)]);
        put(poll(order) + "st.relaxed.sys.global.u32 [%p], %n;\nfence.acq_rel.sys;\n" + data, &[(scope, false)]);
    }
    put(poll("acquire.sys") + data, &[(LoadScope::System, false)]);
    put(poll("acquire.gpu") + data, &[(LoadScope::Device, false)]);
    // A loop that counts does not poll, whatever it loads; nor does one that walks through memory,
    // nor one that takes a lock.
    let counts = "add.u32 %i, %i, 1;\nsetp.lt.u32 %q, %i, %n;\n@%q bra $loop;\n";
    put(format!("$loop:\nld.relaxed.sys.global.u32 %r, [%p];\nadd.u32 %s, %s, %r;\n{counts}{data}"), &[]);
    put(
        format!(
            "$loop:\nld.relaxed.sys.global.u32 %r, [%p];\nadd.u64 %p, %p, 4;\nsetp.ne.u32 %q, %r, 0;\n@%q bra $loop;\n{data}"
        ),
        &[],
    );
    put(
        format!(
            "$loop:\natom.relaxed.gpu.global.cas.b32 %r, [%p], 0, 1;\nsetp.ne.u32 %q, %r, 0;\n@%q bra $loop;\n{data}"
        ),
        &[],
    );
    forms
}

fn source(sm: u16) -> String {
    let mut text = format!(".version 8.7\n.target sm_{sm}\n.address_size 64\n");
    for (n, (body, _)) in forms().iter().enumerate() {
        let body = body.replace("$loop", &format!("$loop{n}"));
        write!(
            text,
            ".visible .entry k{n}(.param .u64 p, .param .u64 d, .param .u64 out, .param .u32 n) {{\n\
             .reg .b64 %p;\n.reg .b64 %d;\n.reg .b64 %o;\n.reg .b32 %r;\n.reg .b32 %s;\n.reg .b32 %i;\n.reg .b32 %n;\n\
             .reg .pred %q;\n\
             ld.param.u64 %p, [p];\nld.param.u64 %d, [d];\nld.param.u64 %o, [out];\nld.param.u32 %n, [n];\n\
             mov.b32 %s, 0;\nmov.b32 %i, 0;\n{body}\nred.relaxed.sys.global.add.u32 [%o], %s;\nret;\n}}\n"
        )
        .unwrap();
    }
    text
}

#[test]
fn a_flag_is_what_alone_ends_a_loop() {
    for sm in [80, 90] {
        let (text, arch) = (source(sm), Arch::new(sm));
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("flag-loads-{sm}.ptx"));
        if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
            std::fs::write(&file, &text).expect("a file");
        }
        let code = std::fs::read(tests::build::nvcc(&file, &["-cubin", &format!("-arch=sm_{sm}")])).expect("compiled");
        for (front, bytes) in [("PTX", text.as_bytes()), ("machine code", &code)] {
            let image = CodeImage::load(bytes, arch).unwrap_or_else(|e| panic!("{e}"));
            for (n, (body, wanted)) in forms().iter().enumerate() {
                let summary = image.summary(&format!("k{n}")).unwrap_or_else(|e| panic!("{body}: {e}"));
                let flags: Vec<_> = summary.flag_loads().iter().map(|flag| (flag.scope, flag.data.is_some())).collect();
                assert_eq!(&flags, wanted, "sm_{sm}, {front}:\n{body}");
            }
        }
    }
}
