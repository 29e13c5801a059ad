//! The PTX of a model.
//!
//! One kernel for each list of shapes. Thread `x` of the grid, with the block indices `y` and `z`,
//! touches the element of these indices in each block that has one. So each access is one
//! instruction whose address is a sum of three products, under three comparisons: the form of which
//! the analysis can say every byte.

use std::fmt::Write as _;

use super::block::{BYTES, Part, Shape, Touch};

/// Threads of a block.
pub const THREADS: u32 = 256;

/// The text of one kernel. Its first parameter has `call` bytes that only the native function
/// reads; behind it lies one of [`BYTES`] bytes for each shape.
pub fn text(name: &str, shapes: &[Shape], call: usize) -> String {
    let mut out = String::from(".version 7.0\n.target sm_50\n.address_size 64\n\n");
    let _ = write!(out, ".visible .entry {name}(\n\t.param .align 8 .b8 call[{call}]");
    for index in 0..shapes.len() {
        let _ = write!(out, ",\n\t.param .align 8 .b8 m{index}[{BYTES}]");
    }
    let _ = writeln!(out, "\n)\n{{");
    out.push_str(
        "\t.reg .pred %p<6>;\n\t.reg .b16 %h;\n\t.reg .b32 %r<16>;\n\t.reg .b64 %a<12>;\n\
         \tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %ntid.x;\n\tmov.u32 %r3, %tid.x;\n\
         \tmad.lo.u32 %r4, %r1, %r2, %r3;\n\tmov.u32 %r5, %ctaid.y;\n\tmov.u32 %r6, %ctaid.z;\n\
         \tcvt.u64.u32 %a1, %r4;\n\tcvt.u64.u32 %a2, %r5;\n\tcvt.u64.u32 %a3, %r6;\n",
    );
    for (index, &shape) in shapes.iter().enumerate() {
        block(&mut out, index, shape);
    }
    out.push_str("\tret;\n}\n");
    out
}

fn block(out: &mut String, n: usize, shape: Shape) {
    let guard = |out: &mut String, at: u32, register: &str| {
        let _ =
            writeln!(out, "\tld.param.u32 %r7, [m{n}+{at}];\n\tsetp.ge.u32 %p1, {register}, %r7;\n\t@%p1 bra done{n};");
    };
    guard(out, 40, "%r6");
    let _ = writeln!(out, "\tld.param.u64 %a4, [m{n}];");
    // Before the other comparisons, which have no part in the address: so it is exact.
    if shape.by_pointer {
        let _ = writeln!(out, "\tmad.lo.u64 %a4, %a3, 8, %a4;\n\tld.global.u64 %a4, [%a4];");
    } else {
        let _ = writeln!(out, "\tld.param.u64 %a5, [m{n}+24];\n\tmad.lo.u64 %a4, %a3, %a5, %a4;");
    }
    guard(out, 32, "%r4");
    guard(out, 36, "%r5");
    let (high, low) = match shape.part {
        Part::Full => ("", ""),
        Part::Lower => ("%r4", "%r5"),
        Part::Upper => ("%r5", "%r4"),
    };
    if shape.part != Part::Full {
        let _ = writeln!(
            out,
            "\tld.param.u32 %r8, [m{n}+48];\n\tadd.u32 %r9, {low}, %r8;\n\tsetp.lt.u32 %p2, {high}, %r9;\n\
             \t@%p2 bra done{n};"
        );
    }
    let _ = writeln!(
        out,
        "\tld.param.u64 %a6, [m{n}+8];\n\tmad.lo.u64 %a4, %a1, %a6, %a4;\n\
         \tld.param.u64 %a7, [m{n}+16];\n\tmad.lo.u64 %a4, %a2, %a7, %a4;"
    );
    let (suffix, value) = match shape.bytes {
        1 => ("u8", "%h"),
        2 => ("u16", "%h"),
        4 => ("u32", "%r10"),
        8 => ("u64", "%a8"),
        _ => ("v2.u64", "{%a8, %a9}"),
    };
    match shape.touch {
        Touch::Read => {
            let _ = writeln!(out, "\tld.global.{suffix} {value}, [%a4];");
        }
        Touch::Write => {
            let zero = "\tmov.u16 %h, 0;\n\tmov.u32 %r10, 0;\n\tmov.u64 %a8, 0;\n\tmov.u64 %a9, 0;\n";
            let _ = writeln!(
                out,
                "{zero}\tld.param.u32 %r11, [m{n}+44];\n\tsetp.ne.u32 %p3, %r11, 0;\n\
                 \t@%p3 ld.global.{suffix} {value}, [%a4];\n\tst.global.{suffix} [%a4], {value};"
            );
        }
        // Conditions of which nothing is known. The bytes are a bound, and none is claimed. No
        // number of a warp is so great: the first never holds, the second always does.
        Touch::Scratch => {
            let _ = writeln!(
                out,
                "\tmov.u32 %r10, %warpid;\n\tsetp.gt.u32 %p3, %r10, 65535;\n\t@%p3 st.global.u32 [%a4], %r10;"
            );
        }
        Touch::Part => {
            let _ = writeln!(
                out,
                "\tmov.u32 %r12, %warpid;\n\tsetp.le.u32 %p3, %r12, 65535;\n\t@%p3 ld.global.{suffix} {value}, [%a4];"
            );
        }
    }
    let _ = writeln!(out, "done{n}:");
}
