//! A call whose answer is an error did nothing: no effect on order, none on memory. One case for
//! each symbol of the table that may leave an op.
//!
//! The calls are generated from the table's types, and made under the driver without a GPU, which
//! answers an error. That no failing call waits was measured on an H200:
//! `tests/gpu/programs/batch_sources.h200.txt`.

use cuda_sys::*;
use serde_json::Value;
use tests::build;
use tests::run::{end, streamsan};
use tests::scripted::Script;
use trace::Op;

/// Symbols whose op is logged before the call, because the function may run before that returns.
/// The op orders nothing by itself.
const LOGGED_BEFORE: [&str; 3] = ["cuLaunchHostFunc", "cuLaunchHostFunc_v2", "cuStreamAddCallback"];

/// Answers of a call: an error, and of queries also the answer that there is work left.
fn answers(symbol: &str) -> &'static [u32] {
    if symbol.contains("Query") { &[1, 600, 400] } else { &[1] }
}

/// The symbols with an op function, and the types of their arguments.
fn symbols() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut all = Vec::new();
    macro_rules! rows {
        ($($when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
           [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;)*) => {
            $( rows!(@row $(($($ty),*))? [$($symbol),+]); )*
        };
        (@row [$($symbol:ident),+]) => {};
        (@row $types:tt [$($symbol:ident),+]) => { $( rows!(@symbol $types $symbol); )+ };
        (@symbol ($($ty:ty),*) $symbol:ident) => {
            all.push((stringify!($symbol), vec![$(stringify!($ty)),*]));
        };
    }
    driver_api!(rows);
    all
}

/// The program's handles.
struct World {
    script: Script,
    writer: u64,
    reader: u64,
    event: u64,
    marker: u64,
    array: u64,
    exec: u64,
    context: u64,
    pinned: u64,
    room: u64,
    /// The memory of the current case.
    memory: u64,
}

impl World {
    fn new() -> Self {
        let mut script = Script::default();
        let [writer, reader, event, marker, exec, context] = std::array::from_fn(|_| script.zeros(256));
        let (pinned, room) = (script.zeros(4096), script.zeros(4096));
        let mut d = CUDA_ARRAY3D_DESCRIPTOR::zeroed();
        (d.Width, d.Format, d.NumChannels) = (64, CU_AD_FORMAT_FLOAT, 1);
        let array = script.put(&d);
        let mut made = |symbol: &str, handle: u64, arguments: &[u64]| {
            let out = script.put(&handle);
            let mut all = vec![out];
            all.extend(arguments);
            script.answered(symbol, 0, &all);
        };
        made("cuCtxCreate_v2", context, &[0, 0]);
        made("cuStreamCreate", writer, &[1]);
        made("cuStreamCreate", reader, &[1]);
        made("cuEventCreate", event, &[2]);
        made("cuArray3DCreate_v2", array, &[array]);
        made("cuMemHostAlloc", pinned, &[4096, 0]);
        made("cuGraphInstantiateWithFlags", exec, &[room, 0]);
        Self { script, writer, reader, event, marker, array, exec, context, pinned, room, memory: 0x4000_0000 }
    }

    /// An argument of a type. What a call might wait for is the writer's, or recorded there.
    fn argument(&self, symbol: &str, ty: &str) -> u64 {
        match ty.replace(' ', "").as_str() {
            "CUstream" if symbol.starts_with("cuStreamWait") => self.reader,
            "CUstream" => self.writer,
            "CUevent" => self.event,
            "CUcontext" => self.context,
            "CUarray" => self.array,
            "CUgraphExec" => self.exec,
            "CUdeviceptr" | "CUdeviceptr_v1" => self.memory,
            "*mutc_void" | "*constc_void" => self.pinned,
            "usize" => 4096,
            "c_uint" | "c_int" | "u32" | "u64" | "u8" | "u16" | "CUdevice" => 0,
            _ => self.room,
        }
    }

    /// The writer writes new memory.
    fn written(&mut self) {
        self.memory += 0x4000;
        let out = self.script.put(&self.memory);
        self.script.answered("cuMemAlloc_v2", 0, &[out, 8192]);
        self.script.answered("cuMemsetD8Async", 0, &[self.memory, 0, 4096, self.writer]);
        self.script.answered("cuEventRecord", 0, &[self.event, self.writer]);
    }

    /// The reader, or the writer, reads it.
    fn read(&mut self, by: u64) {
        self.script.answered("cuMemcpyDtoDAsync_v2", 0, &[self.memory + 4096, self.memory, 4096, by]);
    }

    fn failing(&mut self, symbol: &str, types: &[&str], answer: u32) {
        let arguments: Vec<u64> = types.iter().map(|ty| self.argument(symbol, ty)).collect();
        let out = self.script.put(&self.marker);
        self.script.answered("cuEventCreate", 0, &[out, 7]);
        self.script.answered(symbol, answer, &arguments);
        self.script.answered("cuEventCreate", 0, &[out, 7]);
    }

    fn settled(&mut self) {
        self.script.answered("cuCtxSynchronize", 0, &[]);
    }
}

/// The report on a script.
fn report(script: &Script, name: &str) -> Value {
    let folder = build::scratch(name);
    let (program, files) = script.written(&folder);
    let json = folder.join("report.json");
    let mut command = streamsan(["run", "--error-exitcode", "0", "--json"]);
    let ended = end(command.arg(&json).arg("--").arg(program).args(files));
    Script::assert_made(&ended);
    serde_json::from_str(&std::fs::read_to_string(&json).expect("written")).expect("valid JSON")
}

#[test]
fn a_call_that_fails_orders_nothing_and_frees_nothing() {
    let (mut world, mut cases) = (World::new(), 0);
    for (symbol, types) in symbols() {
        for answer in answers(symbol) {
            world.written();
            world.failing(symbol, &types, *answer);
            let reader = world.reader;
            world.read(reader);
            world.settled();
            cases += 1;
        }
    }
    let report = report(&world.script, "failing-races");
    let findings = report["findings"].as_array().expect("findings");
    let said: Vec<_> = findings.iter().map(|f| (&f["hazard"], &f["count"], &f["confidence"])).collect();
    assert_eq!(said, [(&"read-after-write".into(), &cases.into(), &"certain".into())], "{cases} cases");
    println!("{cases} failing calls");
    assert!(cases > 400);
}

#[test]
fn a_call_that_fails_forgets_nothing() {
    let mut world = World::new();
    for (symbol, types) in symbols() {
        world.written();
        world.failing(symbol, &types, 1);
        let (writer, reader) = (world.writer, world.reader);
        world.read(writer);
        // The event still stands for the write.
        world.script.answered("cuStreamWaitEvent", 0, &[reader, world.event, 0]);
        world.read(reader);
        world.settled();
    }
    let report = report(&world.script, "failing-silent");
    // Both copies write the same bytes, the second one unordered with the first: that is the one
    // race of each case, so that a report without any is not taken for a good one.
    let findings = report["findings"].as_array().expect("findings");
    let said: Vec<_> = findings.iter().map(|f| (&f["hazard"], &f["count"])).collect();
    assert_eq!(said, [(&"write-after-write".into(), &symbols().len().into())]);
}

#[test]
fn a_call_that_fails_leaves_no_op_with_an_effect() {
    let mut world = World::new();
    for (symbol, types) in symbols() {
        world.written();
        world.failing(symbol, &types, 1);
        world.settled();
    }
    let mut symbols = symbols().into_iter().map(|(symbol, _)| symbol);
    let (mut inside, mut left) = (None, 0);
    world.script.record(&build::scratch("failing-ops"), |call, op| {
        if let (Op::EventCreate { flags: 7, .. }, "cuEventCreate") = (op, call) {
            inside = if inside.is_none() { symbols.next() } else { None };
            return;
        }
        let Some(symbol) = inside else { return };
        let plain = symbol.trim_end_matches("_ptsz");
        let is_harmless = match op {
            // Handles that are met for the first time, and the beginning of a wait that never ends.
            Op::EventCreate { .. } | Op::StreamCreate { .. } | Op::ContextCreate { .. } | Op::SyncBegin { .. } => true,
            // Said of the call, for the report.
            Op::OrderFailed { .. } => true,
            Op::HostFunc { .. } => LOGGED_BEFORE.contains(&plain),
            op => op.is_definition(),
        };
        assert!(is_harmless, "{symbol}: {op:?}");
        left += usize::from(matches!(op, Op::SyncBegin { .. } | Op::OrderFailed { .. }));
    });
    assert_eq!(symbols.next(), None);
    assert!(left > 5, "waits that begin and records that fail are told");
}
