//! The list of PTX instructions that came with compute capability 9.0: which of them the simulator
//! executes, and which it refuses by their names. `measured/hopper.txt` is the list.
//!
//! Each form is a kernel of its own. The toolkit's assembler takes them all, so that no line is one
//! that PTX does not have. What results they have is tested where their families are.

use std::fmt::Write;
use std::path::PathBuf;

use device_code::ptx::parse;
use device_code::tensor_map::{Tensor, Tile};
use streamsan_sim::interp::exec::tensor::map::{Image, TensorMap};
use streamsan_sim::interp::{CompileError, FaultKind, Launch, Program};

use crate::interp_programs::Nobody;
use crate::interp_support::{Arg, Gpu, toolkit};

const LIST: &str = include_str!("measured/hopper.txt");

/// A line of the list.
struct Form {
    line: usize,
    runs: bool,
    /// One thread executes it; else all of the block do.
    alone: bool,
    text: String,
}

/// Registers of a sum or fragment, `${f64}` in the list.
fn registers(kind: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|at| format!("%{kind}{at}")).collect();
    format!("{{{}}}", names.join(", "))
}

fn forms() -> Vec<Form> {
    let mut out = Vec::new();
    for (at, line) in LIST.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let (state, who, text) = (words.next().unwrap(), words.next().unwrap(), words.next().expect("a form"));
        assert!(matches!(state, "runs" | "refused") && matches!(who, "one" | "all"), "{line}");
        let mut text = text.to_owned();
        for (kind, count) in [("f", 4), ("f", 2), ("r", 4), ("r", 2), ("d", 2), ("d", 4), ("d", 8), ("f", 8)] {
            text = text.replace(&format!("${kind}{count}"), &registers(kind, count));
        }
        out.push(Form { line: at + 1, runs: state == "runs", alone: who == "one", text });
    }
    out
}

const HEAD: &str = ".version 8.8\n.target sm_90a\n.address_size 64\n";

/// A kernel for each form. `%bar` is a barrier object, `%s` is shared memory and `%g` global, each
/// as a number of the space; `%sg` and `%barg` are generic; `%map` and `%image` are tensor maps.
fn kernel(form: &Form) -> String {
    let mut out = format!(
        ".visible .entry k{}(.param .u64 .ptr g, .param .u64 .ptr map, .param .u64 .ptr image) .maxntid 128, 1, 1 \
         .minnctapersm 1 {{\n.shared .align 1024 .b8 sh[8192];\n.shared .align 8 .b64 object;\n",
        form.line
    );
    for (ty, name) in
        [("b16", "h"), ("b32", "r"), ("b64", "a"), ("f32", "f"), ("f64", "d"), ("pred", "p"), ("b128", "q")]
    {
        let _ = writeln!(out, ".reg .{ty} %{name}<16>;");
    }
    out += ".reg .b64 %g, %map, %image, %sg, %barg; .reg .b32 %s, %bar, %t, %n; .reg .pred %one, %no;
        ld.param.u64 %g, [g]; ld.param.u64 %map, [map]; ld.param.u64 %image, [image];
        mov.u32 %s, sh; mov.u32 %bar, object; mov.u32 %t, %tid.x; setp.eq.u32 %one, %t, 0; setp.eq.u32 %no, 1, 0;
        cvta.to.global.u64 %g, %g;
        cvt.u64.u32 %sg, %s; cvta.shared.u64 %sg, %sg; cvt.u64.u32 %barg, %bar; cvta.shared.u64 %barg, %barg;\n";
    for at in 0..16 {
        let _ = writeln!(
            out,
            "mov.b16 %h{at}, 0; mov.b32 %r{at}, 0; mov.b64 %a{at}, 0; mov.f32 %f{at}, 0f00000000; mov.f64 %d{at}, \
             0d0000000000000000; setp.eq.u32 %p{at}, 0, 0; mov.b128 %q{at}, {{%a0, %a0}};"
        );
    }
    out += "@!%one bra READY;\nmbarrier.init.shared::cta.b64 [%bar], 200;\nREADY: bar.sync 0;\n";
    let lines: String = form.text.replace("; ", ";\n");
    if form.alone {
        let _ = writeln!(out, "@!%one bra OVER;\n{lines}\nOVER: bar.sync 0;");
    } else {
        let _ = writeln!(out, "{lines}");
    }
    // What nobody waits for is done when the block ends.
    out += "ret;\n}\n";
    out
}

/// What becomes of a form: nothing, or the instruction that is refused.
fn outcome(form: &Form) -> Result<(), String> {
    let text = format!("{HEAD}{}", kernel(form));
    let module = parse(&text).map_err(|error| format!("not understood: {error}"))?;
    let program = Program::compile(&module, &Nobody);
    match program.kernels()[0].error() {
        None => {}
        Some(CompileError::Unsupported { instruction, .. }) => return Err(instruction.clone()),
        Some(other) => return Err(format!("operands: {other}")),
    }
    launched(form, &Gpu::from_ptx(&text))
}

/// The same of a kernel that a device has.
fn launched(form: &Form, gpu: &Gpu) -> Result<(), String> {
    let tensor = |address, tile| Tensor { address, element: 4, sizes: [8; 5], strides: [32, 256, 2048, 16384], tile };
    let memory = gpu.zeros::<u32>(8 * 8 * 8 * 8 * 8);
    let tile = Tile { extent: [4, 2, 1, 1, 1], step: [1; 5] };
    let map = TensorMap {
        tensor: tensor(memory.address, Some(tile)),
        tile,
        image: None,
        kind: 2,
        rank: form
            .text
            .split("d.")
            .next()
            .and_then(|before| before.chars().last()?.to_digit(10))
            .unwrap_or(1)
            .clamp(1, 5) as usize,
        swizzle: 0,
    };
    let image = Image { lower: [0; 3], upper: [0; 3], channels: 4, pixels: 2 };
    let flat = Tile { extent: [1; 5], step: [1; 5] };
    let of_images = TensorMap { tensor: tensor(memory.address, None), tile: flat, image: Some(image), ..map };
    let (map, of_images) = (gpu.buffer(&map.encode()), gpu.buffer(&of_images.encode()));
    let args: [Arg; 3] = [(&memory).into(), (&map).into(), (&of_images).into()];
    let launch = Launch { grid: [1; 3], block: [128, 1, 1], ..Launch::default() };
    match gpu.try_launch(&format!("k{}", form.line), launch, &args) {
        Ok(()) => Ok(()),
        Err(fault) => match fault.kind {
            FaultKind::Unsupported(why) => Err(why.to_string()),
            _ => Err(format!("fault: {fault}")),
        },
    }
}

/// Machine code of all forms.
fn assembled() -> Result<PathBuf, String> {
    let mut text = HEAD.to_owned();
    forms().iter().for_each(|form| text += &kernel(form));
    let input = tests::build::generated("hopper.ptx", &text);
    let args = ["-arch=sm_90a", "-O0", "-o", "{out}", &input.display().to_string()].map(String::from);
    tests::build::cached("hopper.cubin", &toolkit().join("bin/ptxas"), &args, &[&input]).map_err(|said| {
        let wrong = |number: usize| text.lines().nth(number.saturating_sub(1)).unwrap_or("").to_owned();
        let numbers = said.split("line ").skip(1).filter_map(|part| part.split([';', ',', ' ']).next()?.parse().ok());
        let lines: Vec<String> = numbers.map(wrong).collect();
        format!("{said}\n{}", lines.join("\n"))
    })
}

#[test]
fn every_form_is_one_that_ptx_has() {
    assembled().unwrap_or_else(|said| panic!("{said}"));
}

#[test]
fn each_form_that_runs_does_so_as_machine_code() {
    let gpu = Gpu::from_cubin(std::fs::read(assembled().expect("machine code")).expect("a file"));
    let mut wrong = Vec::new();
    for form in forms().iter().filter(|form| form.runs) {
        // Prefetches of columns of images have an instruction of their own.
        let columns = form.text.starts_with("cp.async.bulk.prefetch.tensor") && form.text.contains("im2col");
        let refused = columns || form.text.starts_with("fence.proxy.alias");
        match launched(form, &gpu) {
            Ok(()) if refused => wrong.push(format!("line {} runs: {}", form.line, form.text)),
            Err(why) if !refused => wrong.push(format!("line {}: {}: {why}", form.line, form.text)),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn each_form_runs_or_is_refused_by_its_name() {
    let mut wrong = Vec::new();
    let forms = forms();
    for form in &forms {
        match (outcome(form), form.runs) {
            (Ok(()), true) => {}
            (Ok(()), false) => wrong.push(format!("line {} runs: {}", form.line, form.text)),
            (Err(why), true) => wrong.push(format!("line {}: {}: {why}", form.line, form.text)),
            // The refusal says which instruction it is.
            (Err(why), false) if form.text.contains(&why) => {}
            (Err(why), false) => wrong.push(format!("line {}: {} is refused as {why}", form.line, form.text)),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), forms.len(), wrong.join("\n"));
    let runs = forms.iter().filter(|form| form.runs).count();
    assert!(runs > 200 && forms.len() - runs < 40, "{runs} of {}", forms.len());
}

/// What a kernel of machine code is refused for.
fn refusal(cubin: Vec<u8>) -> String {
    let gpu = Gpu::from_cubin(cubin);
    let memory = gpu.zeros::<u32>(64);
    let fault =
        gpu.try_launch("k", Launch { grid: [1; 3], block: [32, 1, 1], ..Launch::default() }, &[(&memory).into()]);
    match fault.map_err(|fault| fault.kind) {
        Err(FaultKind::Unsupported(why)) => why.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Machine code of a kernel that reads every copy of a multicast object.
fn multicast_load() -> Vec<u8> {
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 g) {{\n.reg .b64 %g;\n.reg .f32 %f;\nld.param.u64 %g, [g];\n\
         cvta.to.global.u64 %g, %g;\nmultimem.ld_reduce.relaxed.gpu.global.add.f32 %f, [%g];\n\
         st.global.f32 [%g+16], %f;\nret;\n}}\n"
    );
    let input = tests::build::generated("multicast_load.ptx", &text);
    let args = ["-arch=sm_90a", "-o", "{out}", &input.display().to_string()].map(String::from);
    let built = tests::build::cached("multicast_load.cubin", &toolkit().join("bin/ptxas"), &args, &[&input]);
    std::fs::read(built.expect("machine code")).expect("a file")
}

#[test]
fn what_machine_code_lacks_is_refused_by_its_name() {
    let code = multicast_load();
    assert!(refusal(code.clone()).contains("LDGMC"));
    // ptxas was not seen to emit the others: they take the place of the load.
    let nop = code.windows(8).position(|word| word == [0x18, 0x79, 0, 0, 0, 0, 0, 0]).expect("a NOP");
    let is_load = |at: &usize| u16::from_le_bytes([code[*at], code[at + 1]]) & 0xfff == 0x9a5;
    let load = (nop % 16..nop).step_by(16).find(is_load).expect("the load");
    for (opcode, name) in [(0x353_u16, "RPCMOV"), (0x9c9, "USETSHMSZ")] {
        let mut code = code.clone();
        code.copy_within(nop..nop + 16, load);
        code[load..load + 2].copy_from_slice(&(opcode | 7 << 12).to_le_bytes());
        let why = refusal(code);
        assert!(why.contains(name), "{name}: {why}");
    }
}

#[test]
fn what_came_with_later_devices_is_refused_by_its_name() {
    let cancel = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%s], [%bar];";
    let asked = "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %q1;";
    let first = "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q1;";
    for text in [cancel, asked, first] {
        let form = Form { line: 1, runs: false, alone: true, text: text.to_owned() };
        let why = outcome(&form).expect_err(text);
        assert!(why.starts_with("clusterlaunchcontrol") && text.contains(&why), "{text}: {why}");
    }
}
