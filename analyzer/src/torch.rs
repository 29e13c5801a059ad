//! What PyTorch's users call things: operators with their schemas, streams, the lines that mend a race.
//!
//! Owns the reading of native frames of PyTorch's libraries. The schema of an operator is looked up in the library that the
//! frame lies in, where the text that registers it is kept; nothing of PyTorch is known here beyond that.

use crate::report::model::{Frame, FrameKind};
use memchr::memmem;
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::path::Path;

/// Longest schema believed.
const LONGEST: usize = 4096;

/// An operator of PyTorch: `at::_ops::mul_out::call` is one frame of `aten::mul.out`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Operator {
    /// As in the library: `mul_out`.
    raw: String,
    /// The object file.
    module: Option<String>,
}

impl Operator {
    /// The operator that a stack is in: the outermost one below the innermost Python frame, which is what the program called.
    pub fn of(stack: &[Frame]) -> Option<Self> {
        let native = stack.iter().take_while(|f| f.kind != FrameKind::Python);
        native.filter_map(Self::entered).last()
    }

    /// The operator that a frame is the entry of.
    pub fn entered(frame: &Frame) -> Option<Self> {
        let rest = frame.function.strip_prefix("at::_ops::")?;
        let (name, what) = rest.split_once("::")?;
        let entry = what.starts_with("call") || what.starts_with("redispatch");
        entry.then(|| Self { raw: name.to_string(), module: frame.module.clone() })
    }

    /// What the operator may be called. Names of overloads follow the operator's after an underscore, which either may hold.
    fn candidates(&self) -> impl Iterator<Item = String> {
        let raw = self.raw.clone();
        let splits: Vec<usize> = raw.match_indices('_').map(|(at, _)| at).filter(|at| *at > 0).collect();
        let split = move |at: usize| format!("{}.{}", &raw[..at], &raw[at + 1..]);
        splits.into_iter().rev().map(split).filter(|name| !name.ends_with('.')).chain([self.raw.clone()])
    }
}

/// Operators whose schemas were looked up.
#[derive(Default)]
pub struct Schemas(HashMap<Operator, String>);

impl Schemas {
    /// `aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)`; without the arguments when the library does
    /// not tell them.
    pub fn of(&mut self, operator: &Operator) -> String {
        if let Some(known) = self.0.get(operator) {
            return known.clone();
        }
        let found = operator.module.as_deref().and_then(|module| look_up(Path::new(module), operator));
        let schema = found.unwrap_or_else(|| format!("aten::{}", guess(&operator.raw)));
        self.0.insert(operator.clone(), schema.clone());
        schema
    }
}

fn look_up(module: &Path, operator: &Operator) -> Option<String> {
    let file = std::fs::File::open(module).ok()?;
    // SAFETY: the file is only read; a program that changes an installed library under us gets a wrong or no schema at worst.
    let map = unsafe { memmap2::Mmap::map(&file) }.ok()?;
    let object = object::File::parse(&*map).ok()?;
    let texts = object.section_by_name(".rodata")?.data().ok()?;
    operator.candidates().find_map(|name| schema_in(texts, &name))
}

/// The text that begins a constant, or follows `aten::`, with this name and an argument list and result.
fn schema_in(texts: &[u8], name: &str) -> Option<String> {
    let needle = format!("{name}(");
    memmem::find_iter(texts, needle.as_bytes()).find_map(|at| {
        let before = &texts[..at];
        let whole = before.last().is_none_or(|byte| *byte == 0) || before.ends_with(b"\0aten::");
        let text = &texts[at..texts.len().min(at + LONGEST)];
        let text = std::str::from_utf8(&text[..text.iter().position(|byte| *byte == 0)?]).ok()?;
        (whole && text.contains(") -> ") && !text.contains('\n')).then(|| format!("aten::{text}"))
    })
}

/// The name without the library's help: only common overloads are told apart.
fn guess(raw: &str) -> String {
    const OVERLOADS: [&str; 9] =
        ["out", "Tensor", "Scalar", "Tensor_out", "Scalar_out", "dim", "int", "self", "grad_input"];
    let overload = OVERLOADS.iter().filter(|o| raw.ends_with(&format!("_{o}"))).max_by_key(|o| o.len());
    overload.map_or_else(|| raw.to_string(), |o| format!("{}.{o}", &raw[..raw.len() - o.len() - 1]))
}

/// The name without its schema.
pub fn short(frame: &Frame) -> Option<String> {
    Operator::entered(frame).map(|operator| format!("aten::{}", guess(&operator.raw)))
}

/// Arguments of a schema that an access of this kind can be to: those marked as written, or the tensors that are not; and
/// whether a write goes to the result.
pub fn touched(schema: &str, writes: bool) -> (Vec<String>, bool) {
    let Some((head, result)) = schema.split_once(") -> ") else { return (Vec::new(), writes) };
    let arguments = head.split_once('(').map_or("", |(_, list)| list);
    let mut names = Vec::new();
    for argument in split(arguments) {
        let words: Vec<&str> = argument.split_whitespace().collect();
        let [kind, name, ..] = words[..] else { continue };
        if kind.starts_with("Tensor") && kind.contains('!') == writes {
            names.push(name.split('=').next().unwrap_or(name).to_string());
        }
    }
    (names, writes && result.contains("Tensor"))
}

/// Arguments are separated by commas outside brackets.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    list.split(move |c| {
        depth += match c {
            '(' | '[' => 1,
            ')' | ']' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    })
}

/// What a stream is for, as the place tells where PyTorch's pool handed it out.
pub fn purpose(taken: &[Frame]) -> Option<&'static str> {
    let has = |name: &str| taken.iter().any(|f| f.function.contains(name));
    if has("ProcessGroupNCCL") || has("torch::cuda::nccl") {
        Some("NCCL's stream")
    } else if has("torch::autograd::") {
        Some("a stream of autograd")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: FrameKind, function: &str) -> Frame {
        Frame {
            kind,
            function: function.into(),
            file: None,
            line: None,
            module: None,
            address: 1,
            inlined: false,
            source: None,
        }
    }

    #[test]
    fn the_operator_that_the_program_called() {
        let stack = [
            frame(FrameKind::Native, "at::_ops::fill__Scalar::redispatch(c10::DispatchKeySet, at::Tensor&)"),
            frame(FrameKind::Native, "at::_ops::zeros_like::call(at::Tensor const&)"),
            frame(FrameKind::Python, "main"),
            frame(FrameKind::Native, "at::_ops::mm::call(at::Tensor const&)"),
        ];
        let operator = Operator::of(&stack).expect("there is one");
        assert_eq!(operator.raw, "zeros_like");
        assert_eq!(Schemas::default().of(&operator), "aten::zeros_like");
        let names: Vec<String> = Operator { raw: "add__Tensor".into(), module: None }.candidates().collect();
        assert_eq!(names, ["add_.Tensor", "add._Tensor", "add__Tensor"]);
    }

    #[test]
    fn schemas_are_found_whole_in_a_library_s_texts() {
        let texts = b"chain_matmul.out(Tensor[] m, *, Tensor(a!) out) -> Tensor(a!)\0mul.out(self): bad shape\0\
            mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)\0";
        let found = schema_in(texts, "mul.out").expect("the last one");
        assert_eq!(found, "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)");
        assert_eq!(schema_in(texts, "matmul.out"), None);
        assert_eq!(touched(&found, true), (vec!["out".to_string()], true));
        assert_eq!(touched(&found, false).0, ["self", "other"]);
        let lists = "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()";
        assert_eq!(touched(lists, true), (vec!["self".to_string()], false));
        assert_eq!(touched(lists, false).0, ["other"]);
        let fresh = "aten::randn(SymInt[] size, *, ScalarType? dtype=None) -> Tensor";
        assert_eq!(touched(fresh, true), (vec![], true));
    }
}
