//! Tests of the PTX parser that need no compiler: corners of the grammar, and damaged text.

use device_code::ptx::{AddressBase, Initial, Operand, ParseErrorKind, Space, Type, parse, parse_bytes};

const KERNEL: &str = r#"
.version 8.3
.target sm_90a, debug
.address_size 64
.file 1 "a.cu", 1, 2
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.global .align 8 .u64 p[3] = {generic(s)+4, 0xFF00(s), -1};
.global .b8 s[2][3] = {{1}, {2, 3}};
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 .ptr .global .align 16 k_0, .param .align 8 .b8 k_1[24])
.maxntid 256, 1, 1
.minnctapersm 2
{
 .reg .pred %p<3>; .reg .b32 %r<4000000000>; .reg .b64 %rd<9>, single;
 .loc 1 8 3
 ld.param.u64 %rd1, [k_0];
 ld.param.v2.u32 {%r1, _}, [k_1+-8];
 setp.lt.and.s32 %p1|%p2, %r1, %r3999999999, !%p0;
 @!%p1 bra.uni L;
 { .reg .b32 %r1; mov.u32 %r1, %tid.x; L: bra L; }
 L: brx.idx %r1, t;
 t: .branchtargets L, M;
 tex.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%rd1, {%r5, %r6}];
 q: .callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;
 call (%r1), %rd2, (%rd1), q;
 M: ret;
}
.section .debug_x { .b8 1, {2} }
"#;

#[test]
fn declarations_scopes_and_operands() {
    let module = parse(KERNEL).unwrap();
    assert_eq!((module.version, module.target.as_str()), ((8, 3), "sm_90a"));
    assert_eq!(module.file(1), Some("a.cu"));
    let p = &module.globals[0];
    assert_eq!((p.size(), p.align, p.space, p.ty), (24, 8, Space::Global, Type::U64));
    assert!(matches!(p.initial[0], (0, Initial::Symbol { generic: true, offset: 4, mask: None, .. })));
    assert!(matches!(p.initial[1], (1, Initial::Symbol { generic: false, mask: Some(0xff00), .. })));
    assert_eq!(p.initial[2], (2, Initial::Bits(u64::MAX)));
    assert_eq!(module.globals[1].initial, [(0, Initial::Bits(1)), (3, Initial::Bits(2)), (4, Initial::Bits(3))]);
    assert_eq!(module.globals[2].count, 0);
    let kernel = module.function(module.find_name("k").unwrap()).unwrap();
    assert_eq!(kernel.tuning[0].values.as_slice(), [256, 1, 1]);
    let body = kernel.body.as_ref().unwrap();
    // The inner scope has a register and a label of its own under names of the outer one.
    let inner = body.code.iter().find(|i| matches!(i.operands.get(1), Some(Operand::Special(_)))).unwrap();
    let Operand::Register(inner_r1) = inner.operands[0] else { panic!("{inner:?}") };
    let Operand::Vector(outer) = &body.code[1].operands[0] else { panic!() };
    assert_ne!(outer[0], Operand::Register(inner_r1));
    let target = |at: usize| match body.code[at].operands[0] {
        Operand::Label(label) => body.labels[label.index()].at,
        ref other => panic!("{other:?}"),
    };
    assert_eq!((target(3), target(5)), (6, 5), "the outer branch finds the outer label, the inner one the inner");
    assert!(matches!(body.code[6].operands[1], Operand::Table(_)));
    assert!(matches!(body.code[8].operands[3], Operand::Prototype(_)));
    assert!(
        matches!(&body.code[7].operands[1], Operand::MemoryList(list) if matches!(list.0, AddressBase::Register(_)))
    );
    assert_eq!(body.registers.len(), 13, "only registers that are used are numbered");
}

fn kind(text: &str) -> ParseErrorKind {
    parse(text).unwrap_err().kind
}

#[test]
fn errors_name_the_line() {
    let error = parse(".version 8.0\n.visible .entry k()\n{\n bra nowhere;\n}").unwrap_err();
    assert_eq!((error.line, error.kind), (4, ParseErrorKind::UnknownLabel("nowhere".into())));
    assert_eq!(kind(".global .b7 x;"), ParseErrorKind::UnknownType(".b7".into()));
    assert_eq!(kind(".nonsense 1;"), ParseErrorKind::UnknownDirective(".nonsense".into()));
    assert_eq!(kind(".entry k() { L: L: ret; }"), ParseErrorKind::Duplicate("L".into()));
    assert!(matches!(kind(".entry k() { ret; "), ParseErrorKind::UnexpectedEnd(_)));
    assert!(matches!(kind(".entry k() { mov.b32 %r1 %r2; }"), ParseErrorKind::Unexpected { .. }));
    let deep = format!(".entry k() {{ {} ", "{".repeat(100_000));
    assert_eq!(kind(&deep), ParseErrorKind::Limit("open scopes"));
    let nested = format!(".entry k() {{ mov.b32 %r1, {} ", "{".repeat(100_000));
    assert_eq!(kind(&nested), ParseErrorKind::Limit("nested operands"));
    let list = format!(".global .b8 x[1] = {} ", "{".repeat(100_000));
    assert_eq!(kind(&list), ParseErrorKind::Limit("nested braces"));
}

#[test]
fn cut_and_changed_text_never_panics() {
    for end in 0..KERNEL.len() {
        let _ = parse(&KERNEL[..end]);
    }
    // Every byte replaced by each of a few that mean something to the grammar.
    let mut bytes = KERNEL.as_bytes().to_vec();
    for at in 0..bytes.len() {
        let saved = bytes[at];
        for &byte in b"{}()[];:,.\"\\0x-+<@!|/* \n%_\xff" {
            bytes[at] = byte;
            let _ = parse_bytes(&bytes);
        }
        bytes[at] = saved;
    }
}
