//! PyTorch's names: operators with their schemas, streams, and the arguments that an access can be
//! to.
//!
//! Owns the reading of native frames of PyTorch's libraries. The schema of an operator is looked up
//! in the library of the frame, where the text that registers it is kept. Knows nothing else about
//! PyTorch.

use crate::frame::{Frame, FrameKind};
use memchr::memmem;
use object::{Object, ObjectSection};
use std::collections::HashMap;
use std::path::Path;

/// Longest schema accepted.
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
    /// The operator that a stack is in: the outermost one below the innermost Python frame, which
    /// the program called.
    pub fn of(stack: &[Frame]) -> Option<Self> {
        let native = stack.iter().take_while(|f| f.kind != FrameKind::Python);
        native.filter_map(Self::entered).last()
    }

    /// The operator that a frame is the entry of.
    pub(crate) fn entered(frame: &Frame) -> Option<Self> {
        Self::named(&frame.function, frame.module.clone())
    }

    fn named(function: &str, module: Option<String>) -> Option<Self> {
        let rest = function.strip_prefix("at::_ops::")?;
        let (name, what) = rest.split_once("::")?;
        let entry = what.starts_with("call") || what.starts_with("redispatch");
        entry.then(|| Self { raw: name.to_string(), module })
    }

    /// The possible names of the operator. The name of an overload follows after an underscore, and
    /// either part may contain underscores.
    fn candidates(&self) -> impl Iterator<Item = String> {
        let raw = self.raw.clone();
        let splits: Vec<usize> = raw.match_indices('_').map(|(at, _)| at).filter(|at| *at > 0).collect();
        let split = move |at: usize| format!("{}.{}", &raw[..at], &raw[at + 1..]);
        splits.into_iter().rev().map(split).filter(|name| !name.ends_with('.')).chain([self.raw.clone()])
    }
}

/// Schemas of operators: from the trace, and from libraries that were read for them.
#[derive(Clone, Default)]
pub struct Schemas {
    recorded: HashMap<String, String>,
    read: HashMap<String, HashMap<String, String>>,
}

impl Schemas {
    /// Adds a schema from the trace: that of the library where it was recorded.
    pub fn record(&mut self, operator: &str, schema: &str) {
        self.recorded.insert(operator.to_string(), schema.to_string());
    }

    /// `aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)`; without the
    /// arguments when they are unknown.
    pub fn of(&mut self, operator: &Operator) -> String {
        self.found(operator).unwrap_or_else(|| format!("aten::{}", guess(&operator.raw)))
    }

    fn found(&mut self, operator: &Operator) -> Option<String> {
        if let Some(recorded) = self.recorded.get(&operator.raw) {
            return Some(recorded.clone());
        }
        let module = operator.module.as_ref()?;
        let texts = self.read.entry(module.clone()).or_insert_with(|| read(Path::new(module)).unwrap_or_default());
        operator.candidates().find_map(|name| texts.get(&name)).cloned()
    }

    /// Name and schema of every known operator whose entry is one of these functions of object
    /// files.
    pub(crate) fn of_functions<'a>(
        &mut self,
        functions: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Vec<(String, String)> {
        let operators = functions.filter_map(|(function, module)| Operator::named(function, Some(module.to_string())));
        let mut known: Vec<_> = operators.filter_map(|o| self.found(&o).map(|schema| (o.raw, schema))).collect();
        known.sort();
        known.dedup();
        known
    }
}

/// All schemas among a library's texts, by name.
fn read(module: &Path) -> Option<HashMap<String, String>> {
    let file = system::local_files::open(module).ok()?;
    // SAFETY: the file is only read; if a program changes the library meanwhile, the schema is
    // wrong or missing at worst.
    let map = unsafe { memmap2::Mmap::map(&file) }.ok()?;
    let object = object::File::parse(&*map).ok()?;
    Some(schemas_in(object.section_by_name(".rodata")?.data().ok()?))
}

/// The texts that consist of a name, an argument list and a result, with or without `aten::` before
/// them. The first of a name counts.
fn schemas_in(texts: &[u8]) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for at in memmem::find_iter(texts, b") -> ") {
        let from = at.saturating_sub(LONGEST);
        let begin = memchr::memrchr(0, &texts[from..at]).map_or(from, |zero| from + zero + 1);
        let text = &texts[begin..texts.len().min(begin + LONGEST)];
        let text = memchr::memchr(0, text).and_then(|end| std::str::from_utf8(&text[..end]).ok());
        let Some(text) = text.filter(|text| !text.contains('\n')) else { continue };
        let text = text.strip_prefix("aten::").unwrap_or(text);
        let Some((name, _)) = text.split_once('(') else { continue };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if !name.is_empty() && name.chars().all(is_name) {
            found.entry(name.to_string()).or_insert_with(|| format!("aten::{text}"));
        }
    }
    found
}

/// The name without the library: only common overloads are recognised.
fn guess(raw: &str) -> String {
    const OVERLOADS: [&str; 9] =
        ["out", "Tensor", "Scalar", "Tensor_out", "Scalar_out", "dim", "int", "self", "grad_input"];
    let overload = OVERLOADS.iter().filter(|o| raw.ends_with(&format!("_{o}"))).max_by_key(|o| o.len());
    overload.map_or_else(|| raw.to_string(), |o| format!("{}.{o}", &raw[..raw.len() - o.len() - 1]))
}

/// The name without its schema.
pub(crate) fn short(frame: &Frame) -> Option<String> {
    Operator::entered(frame).map(|operator| format!("aten::{}", guess(&operator.raw)))
}

/// The arguments of a schema that an access can be to, where nothing else is known: those marked as
/// written, the tensors that are not, or both. Also whether a write goes to the result.
pub fn touched(schema: &str, writes: bool, reads: bool) -> (Vec<String>, bool) {
    let Some((tensors, output)) = tensors(schema) else { return (Vec::new(), writes) };
    let wanted = |tensor: &&Tensor<'_>| if tensor.written { writes } else { reads };
    (tensors.iter().filter(wanted).map(|tensor| tensor.name.to_string()).collect(), writes && output)
}

/// The arguments that hold the memory behind these operands of an elementwise kernel. `operands`:
/// how many the kernel has. `TensorIterator` hands them over in one array, the outputs first, then
/// the inputs in the order of the schema (`ATen/TensorIterator.h`, `build`). An input that is a
/// number is none of them: `torch.mul(a, 5)` has one input, and `other` is no tensor.
pub fn held_by(schema: &str, held: &[usize], operands: usize) -> (Vec<String>, bool) {
    let Some((tensors, output)) = tensors(schema) else { return (Vec::new(), false) };
    let outputs: Vec<&Tensor<'_>> = tensors.iter().filter(|tensor| tensor.written).collect();
    let first_input = outputs.len().max(1);
    // What is written in place is read, too.
    let inputs = tensors.iter().filter(|tensor| !tensor.written || tensor.name == "self");
    let inputs: Vec<&Tensor<'_>> = inputs.take(operands.saturating_sub(first_input)).collect();
    let holds = |tensor: &&Tensor<'_>| {
        let is = |list: &[&Tensor<'_>], at: Option<usize>| {
            at.and_then(|at| list.get(at)).is_some_and(|t| t.name == tensor.name)
        };
        held.iter().any(|at| is(&outputs, Some(*at)) || is(&inputs, at.checked_sub(first_input)))
    };
    let names = tensors.iter().filter(holds).map(|tensor| tensor.name.to_string()).collect();
    (names, output && held.iter().any(|at| *at < first_input))
}

/// How many operands an elementwise kernel of PyTorch has, by the array in its name, which
/// demanglers write as `std::array<char*, 2ul>` or `std::array<char*, (unsigned long)2>`.
pub fn operands(kernel: &str) -> Option<usize> {
    let (_, rest) = kernel.split_once("rray<char*, ")?;
    let digits = rest.strip_prefix("(unsigned long)").unwrap_or(rest).split(|c: char| !c.is_ascii_digit()).next()?;
    kernel.contains("elementwise_kernel").then(|| digits.parse().ok()).flatten()
}

/// An argument that is a tensor, or a list of tensors.
struct Tensor<'a> {
    name: &'a str,
    written: bool,
}

/// The tensors among the arguments of a schema, and whether its result is one.
fn tensors(schema: &str) -> Option<(Vec<Tensor<'_>>, bool)> {
    let (head, result) = schema.split_once(") -> ")?;
    let arguments = head.split_once('(').map_or("", |(_, list)| list);
    let tensor = |argument| {
        let argument: &str = argument;
        let mut words = argument.split_whitespace();
        let (kind, name) = (words.next()?, words.next()?);
        let name = name.split('=').next().unwrap_or(name);
        kind.starts_with("Tensor").then(|| Tensor { name, written: kind.contains('!') })
    };
    Some((split(arguments).filter_map(tensor).collect(), result.contains("Tensor")))
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

/// The purpose of a stream, by the place where PyTorch's pool handed it out.
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

/// The frames of a call from `backward` (or `grad`) outwards; none, if it was made for no backward
/// pass. Its first gradient is made there, in Python, before the engine's threads begin.
pub fn backward(call: Vec<Frame>) -> Vec<Frame> {
    const FILES: [&str; 2] = ["/torch/autograd/__init__.py", "/torch/_tensor.py"];
    let begins = |f: &Frame| {
        let file = f.file.as_deref().unwrap_or("");
        let function = f.function.rsplit('.').next().unwrap_or("");
        f.kind == FrameKind::Python
            && matches!(function, "backward" | "grad")
            && FILES.iter().any(|end| file.ends_with(end))
    };
    let from = call.iter().position(begins).unwrap_or(call.len());
    call.into_iter().skip(from).collect()
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
        let all = schemas_in(texts);
        let found = all.get("mul.out").expect("the last one").clone();
        assert_eq!(found, "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)");
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all.contains_key("chain_matmul.out"));
        // A schema from the trace has precedence over the library here.
        let mut schemas = Schemas::default();
        schemas.record("mul_out", "aten::mul.out() -> ()");
        assert_eq!(schemas.of(&Operator { raw: "mul_out".into(), module: None }), "aten::mul.out() -> ()");
        assert_eq!(touched(&found, true, false), (vec!["out".to_string()], true));
        assert_eq!(touched(&found, false, true).0, ["self", "other"]);
        let lists = "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()";
        assert_eq!(touched(lists, true, false), (vec!["self".to_string()], false));
        assert_eq!(touched(lists, false, true).0, ["other"]);
        let fresh = "aten::randn(SymInt[] size, *, ScalarType? dtype=None) -> Tensor";
        assert_eq!(touched(fresh, true, false), (vec![], true));
    }

    #[test]
    fn the_operands_say_which_arguments_hold_the_memory() {
        let out = "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)";
        let place = "aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)";
        let fresh = "aten::mul.Tensor(Tensor self, Tensor other) -> Tensor";
        let fill = "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)";
        // Schema, operands that hold it, operands in all, arguments, output.
        for (schema, held, all, names, output) in [
            // As on the first page of CSAN's documentation: `torch.mul(a, 5, out=a)`.
            (out, &[0, 1][..], 2, &["self", "out"][..], true),
            (out, &[0], 2, &["out"], true),
            (out, &[1], 2, &["self"], false),
            (out, &[2], 3, &["other"], false),
            (out, &[0, 2], 3, &["other", "out"], true),
            (out, &[0, 1, 2], 3, &["self", "other", "out"], true),
            (place, &[0, 1], 2, &["self"], true),
            (place, &[0], 3, &["self"], true),
            (place, &[2], 3, &["other"], false),
            (fresh, &[0], 2, &[], true),
            (fresh, &[1], 2, &["self"], false),
            (fresh, &[2], 3, &["other"], false),
            (fill, &[0], 1, &["self"], true),
        ] {
            let (found, to_output) = held_by(schema, held, all);
            assert_eq!(
                (&found[..], to_output),
                (&names.iter().map(|n| n.to_string()).collect::<Vec<_>>()[..], output),
                "{schema} {held:?}"
            );
        }
    }

    #[test]
    fn operands_are_counted_by_the_kernel_s_name() {
        for number in ["2ul", "(unsigned long)2", "2"] {
            let kernel =
                format!("void at::native::vectorized_elementwise_kernel<4, F, std::array<char*, {number}> >(int)");
            assert_eq!(operands(&kernel), Some(2), "{kernel}");
        }
        assert_eq!(
            operands("void at::native::unrolled_elementwise_kernel<F, at::detail::Array<char*, 3>, 4>(int)"),
            Some(3)
        );
        assert_eq!(operands("void sgemm(float*)"), None);
    }
}
