//! Lines of Python code, against Python's own answer for the same tables, and the joining of Python
//! and native frames.

use std::process::Command;

use symbols::frame::FrameKind;
use symbols::{ENTRY_FRAME, Symbolizer, python::CodeObject};
use trace::{LineTable, PyCodeId, PyFrame, StackId};

fn agrees(kind: &str, encoding: LineTable) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/symbols_programs/lines.py");
    let output = Command::new("python3").args(["-W", "ignore", script, kind]).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut compared = 0;
    for row in String::from_utf8_lossy(&output.stdout).lines() {
        let mut fields = row.split(' ');
        let first = fields.next().and_then(|first| first.parse().ok()).expect("a line");
        let table = fields.next().expect("a table").trim_matches('-');
        let table: Vec<u8> =
            (0..table.len() / 2).map(|i| u8::from_str_radix(&table[2 * i..2 * i + 2], 16).expect("hex")).collect();
        let code = CodeObject::new(String::new(), fields.next().expect("a name").into(), first, encoding, &table);
        for pair in fields {
            let (offset, line) = pair.split_once(':').expect("a pair");
            let (offset, line) = (offset.parse().expect("a number"), line.parse().expect("a number"));
            assert_eq!(code.line(offset), Some(line), "{} of {row}", code.name());
            compared += 1;
        }
    }
    assert!(compared > 5000, "only {compared} places");
}

#[test]
fn tables_of_3_11() {
    agrees("311", LineTable::V311);
}

#[test]
fn tables_of_3_10() {
    agrees("310", LineTable::V310);
}

#[test]
fn tables_of_3_9() {
    agrees("39", LineTable::Lnotab);
}

#[test]
fn damaged_tables_have_lines_all_the_same() {
    let mut seed = 1_u64;
    for len in 0..300 {
        let table: Vec<u8> = (0..len % 40)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (seed >> 56) as u8
            })
            .collect();
        for encoding in [LineTable::Lnotab, LineTable::V310, LineTable::V311] {
            for first in [0, 1, u32::MAX] {
                let code = CodeObject::new(String::new(), String::new(), first, encoding, &table);
                for offset in [0, 2, 100, u32::MAX] {
                    let _ = code.line(offset);
                }
            }
        }
    }
    let code = CodeObject::new(String::new(), String::new(), 7, LineTable::V311, &[]);
    assert_eq!(code.line(4), Some(7), "no table: the first line");
}

/// A symbolizer with an interpreter (this machine's, for its symbols) and three code objects. Also
/// addresses in the interpreter's loop and in another of its functions.
fn interpreter() -> (Symbolizer, u64, u64) {
    let script = "import sys,sysconfig,os;c=sysconfig.get_config_var;\
                  p=os.path.join(c('LIBDIR') or '',c('INSTSONAME') or '');\
                  print(p if c('Py_ENABLE_SHARED') and os.path.exists(p) else os.path.realpath(sys.executable))";
    let output = Command::new("python3").args(["-c", script]).output().expect("python3");
    let path = String::from_utf8_lossy(&output.stdout).trim().to_string();
    let symbols = Command::new("nm").args(["-D", "--defined-only", &path]).output().expect("nm");
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let address = |name: &str| {
        let line = symbols.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{name} in {path}"));
        u64::from_str_radix(&line[..16], 16).expect("an address")
    };
    let mut symbolizer = Symbolizer::new();
    const BIAS: u64 = 0x7f00_0000_0000;
    symbolizer.module(BIAS, BIAS + (1 << 30), BIAS, &path, &[]);
    for (id, name) in [(1, "inner"), (2, "Model.forward"), (3, "<module>")] {
        let code = CodeObject::new("/nowhere/train.py".into(), name.into(), 10 * id, LineTable::V311, &[]);
        symbolizer.code(PyCodeId(id), code);
    }
    (symbolizer, BIAS + address(" _PyEval_EvalFrameDefault") + 9, BIAS + address(" PyObject_Call") + 9)
}

fn show(symbolizer: &mut Symbolizer, native: &[u64], python: &[(u32, bool)]) -> Vec<String> {
    let python = python
        .iter()
        .map(|(code, entry)| PyFrame { code: PyCodeId(*code), offset: if *entry { ENTRY_FRAME } else { 0 } });
    symbolizer.stack(StackId(1), native.iter().copied(), python);
    let frames = symbolizer.resolve(StackId(1));
    for frame in &frames {
        assert_eq!(frame.kind == FrameKind::Python, frame.file.is_some(), "{frame:?}");
    }
    frames.into_iter().map(|frame| frame.function).collect()
}

/// An address in no module.
const ELSEWHERE: u64 = 0x1234;

#[test]
fn python_frames_take_the_place_of_the_loop() {
    let (mut s, eval, call) = interpreter();
    let all = show(&mut s, &[ELSEWHERE, call, eval, call], &[(1, false), (2, false), (3, true)]);
    assert_eq!(all, ["0x1234", "inner", "Model.forward", "<module>"]);
    let all = show(&mut s, &[eval], &[(1, true), (2, true), (3, true)]);
    assert_eq!(all, ["inner", "Model.forward", "<module>"], "the native stack was cut");
    let all = show(&mut s, &[ELSEWHERE], &[(1, false), (3, true)]);
    assert_eq!(all, ["0x1234", "inner", "<module>"], "the native stack could not be followed to the interpreter");
}

#[test]
fn native_frames_between_runs_of_the_loop_stay_in_their_place() {
    let (mut s, eval, call) = interpreter();
    let native = [ELSEWHERE, eval, call, ELSEWHERE + 16, call, eval, call, eval];
    let all = show(&mut s, &native, &[(1, true), (2, true), (3, true)]);
    assert_eq!(all, ["0x1234", "inner", "0x1244", "Model.forward", "<module>"]);
    let all = show(&mut s, &native[..6], &[(1, false), (2, true), (3, true)]);
    assert_eq!(all, ["0x1234", "inner", "Model.forward", "0x1244", "<module>"]);
    // Marks that do not fit the native frames: nothing is lost.
    let all = show(&mut s, &native, &[(1, false), (2, false), (3, true)]);
    assert_eq!(all, ["0x1234", "inner", "Model.forward", "<module>", "0x1244"]);
}

#[test]
fn an_interpreter_without_python_frames_is_folded() {
    let (mut s, eval, call) = interpreter();
    let all = show(&mut s, &[ELSEWHERE, call, eval, call], &[]);
    assert_eq!(all.len(), 2);
    assert!(all[1].starts_with("[3 frames of ") && all[1].contains("python"), "{all:?}");
}

#[test]
fn unknown_code_objects_are_shown_as_such() {
    let mut s = Symbolizer::new();
    s.stack(StackId(1), [], [PyFrame { code: PyCodeId(9), offset: 0 }]);
    assert_eq!(s.resolve(StackId(1))[0].function, "<unknown code>");
    assert!(s.resolve(StackId(2)).is_empty());
}
