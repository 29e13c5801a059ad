//! The words of causes: what is missing, and the lines that mend it, in the interface that the
//! call sites use.
//!
//! Owns the wording. Which waits there are is decided in [`super::search`].

use super::overrun::Overrun;
use super::search::{FoundSet, FoundWait};
use crate::Analysis;
use crate::detect::findings::RawFinding;
use crate::memory::Access;
use crate::replan::site::OpSite;
use crate::replan::waits::Join;
use crate::report::call_site::site;
use crate::report::cause::{CausePoint, MendingLines, RootCause};
use crate::report::elaborate::{Elaborator, elaborator};
use crate::report::fingerprint::of_cause;
use crate::report::model::StreamName;
use crate::report::words::Word;
use crate::symbols::frame::{Frame, FrameKind};

/// The interface that a place of the program uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Api {
    Runtime,
    Driver,
    Torch,
    CuPy,
    Jax,
    CudaCore,
}

impl Api {
    fn name(self) -> Word {
        match self {
            Self::Runtime => "CUDA runtime",
            Self::Driver => "CUDA driver",
            Self::Torch => "PyTorch",
            Self::CuPy => "CuPy",
            Self::Jax => "JAX",
            Self::CudaCore => "cuda.core",
        }
    }

    /// The Python interface of these frames. Triton launches on the current stream of PyTorch.
    fn of_python(stack: &[Frame]) -> Self {
        let has = |words: &[&str]| {
            let named =
                |text: &Option<String>| text.as_deref().is_some_and(|text| words.iter().any(|w| text.contains(w)));
            stack.iter().any(|f| named(&f.file) || named(&f.module))
        };
        match () {
            () if has(&["/torch/", "libtorch", "libc10", "/triton/"]) => Self::Torch,
            () if has(&["/cupy/", "/cupy_backends/"]) => Self::CuPy,
            () if has(&["/jaxlib/", "/jax/", "xla_extension"]) => Self::Jax,
            () if has(&["/cuda/core/"]) => Self::CudaCore,
            () => Self::Torch,
        }
    }
}

/// One end of a wait.
struct End {
    point: CausePoint,
    streams: Vec<StreamName>,
    /// The API function of the op.
    call: String,
}

impl End {
    fn of(elaborator: &mut Elaborator<'_>, at: Option<&OpSite>, accesses: &[Access]) -> Self {
        let stack = at.map_or_else(Vec::new, |at| elaborator.stacks.resolve(at.stack));
        let mut ids: Vec<_> = accesses.iter().map(|access| access.site.stream).collect();
        ids.sort_unstable();
        ids.dedup();
        let streams: Vec<StreamName> = ids.into_iter().map(|id| elaborator.stream(id)).collect();
        let call = accesses.first().map_or_else(String::new, |access| elaborator.side(access, 0).call);
        let at = site(&stack).unwrap_or_default();
        let names = streams.iter().map(|stream| stream.long.clone()).collect();
        Self { point: CausePoint { at, stack, streams: names }, streams, call }
    }

    /// In a sentence: `stream 3`, `each of 4 streams`.
    fn who(&self) -> String {
        match &self.streams[..] {
            [] => "a stream".into(),
            [one] => one.name.clone(),
            [one, other] => format!("{} and {}", one.name, other.name),
            many => format!("each of {} streams", many.len()),
        }
    }

    fn have(&self) -> &'static str {
        if self.streams.len() == 2 { "have" } else { "has" }
    }

    /// In a line of CUDA.
    fn stream(&self) -> String {
        if let [one] = &self.streams[..] { one.short.clone() } else { "stream".into() }
    }

    /// In a line of Python.
    fn python_stream(&self, api: Api) -> String {
        match &self.streams[..] {
            [one] if one.kind == "legacy" && api == Api::CudaCore => "device.default_stream".into(),
            [one] if one.kind == "legacy" => "torch.cuda.default_stream()".into(),
            _ => self.stream(),
        }
    }

    fn place(&self, word: &str, otherwise: &str) -> String {
        if self.point.at.is_empty() { format!("{word} {otherwise}") } else { format!("{word} {}", self.point.at) }
    }

    fn is_driver(&self) -> bool {
        // Calls of a runtime that is linked into the program bear the driver's names.
        let of_runtime = |f: &Frame| f.function.starts_with("cuda") || f.function.contains("cudart");
        let driver = self.call.starts_with("cu") && !self.call.starts_with("cuda");
        driver && self.point.stack.iter().any(is_native) && !self.point.stack.iter().any(of_runtime)
    }
}

fn is_native(frame: &Frame) -> bool {
    frame.kind == FrameKind::Native
}

/// The causes of a process: one for each wait, then one for each kernel that runs past its memory.
pub fn causes(analysis: &mut Analysis, raws: &[RawFinding], found: &FoundSet) -> Vec<RootCause> {
    let python = analysis.names.python;
    let mut elaborator = elaborator!(analysis);
    let of = |cause: usize| {
        let has = move |at: &usize| found.cause_of(*at) == Some(cause);
        (0..raws.len()).filter(has).map(|at| &raws[at]).collect::<Vec<_>>()
    };
    let mut causes: Vec<RootCause> = Vec::new();
    for (index, wait) in found.waits.iter().enumerate() {
        causes.push(of_wait(&mut elaborator, wait, &of(index), python));
    }
    for (index, (at, overrun)) in found.overruns.iter().enumerate() {
        causes.push(of_overrun(&mut elaborator, *at, overrun, &of(found.waits.len() + index)));
    }
    // One text twice in one function: numbered, as findings are.
    for at in 1..causes.len() {
        let mut nth = 0;
        while causes[..at].iter().any(|other| other.fingerprint == causes[at].fingerprint) {
            nth += 1;
            let cause = &causes[at];
            causes[at].fingerprint =
                of_cause(&format!("{} {nth}", cause.kind), &cause.after.stack, &cause.before.stack);
        }
    }
    causes
}

fn of_wait(elaborator: &mut Elaborator<'_>, found: &FoundWait, raws: &[&RawFinding], python: bool) -> RootCause {
    let previous: Vec<Access> = raws.iter().map(|raw| raw.race.previous).collect();
    let access: Vec<Access> = raws.iter().map(|raw| raw.race.access).collect();
    // An event that the program has already: the places of the cause stay those of the plain wait.
    let plain = found.plain.as_ref().unwrap_or(&found.wait);
    let first = End::of(elaborator, plain.after.first(), &previous);
    let then = End::of(elaborator, plain.before.first(), &access);
    let recorded = found.plain.as_ref().and(found.wait.after.first());
    let recorded = recorded.map(|at| site(&elaborator.stacks.resolve(at.stack)).unwrap_or_default());
    let (kind, missing): (Word, String) = match plain.join {
        Join::Event | Join::Existing => {
            let (who, whom) = (then.who(), first.who());
            let what = first.place("what was submitted at", "a place that is not known");
            ("missing-wait", format!("Nothing makes {who} wait until {whom} {} finished {what}.", first.have()))
        }
        Join::Host => {
            let what = first.place("what was submitted at", "a place that is not known");
            (
                "missing-host-wait",
                format!("The host does not wait until {} {} finished {what}.", first.who(), first.have()),
            )
        }
        Join::KeepAlive => {
            let at = then.place("at", "a place that is not known");
            let missing = format!("Memory goes back to its pool {at} while {} may still use it.", first.who());
            ("missing-record_stream", missing)
        }
        Join::Capture => {
            let (from, to) = (first.place("captured at", "one place"), then.place("captured at", "the other place"));
            ("missing-graph-edge", format!("In the graph nothing makes what is {to} wait for what is {from}."))
        }
    };
    let driver = first.is_driver() && then.is_driver();
    let cuda = if driver { Api::Driver } else { Api::Runtime };
    let mut mend = Vec::new();
    if python {
        let both: Vec<Frame> = first.point.stack.iter().chain(&then.point.stack).cloned().collect();
        let api = Api::of_python(&both);
        mend.push(MendingLines { api: api.name(), lines: python_lines(api, plain.join, &first, &then) });
    }
    let lines = cuda_lines(cuda, plain.join, &first, &then, recorded.as_deref());
    mend.push(MendingLines { api: cuda.name(), lines });
    let fingerprint = of_cause(kind, &first.point.stack, &then.point.stack);
    RootCause { fingerprint, kind, missing, after: first.point, before: then.point, mend, tried: true }
}

/// Lines with their comments below each other.
fn aligned(lines: &[(String, String)]) -> Vec<String> {
    let width = lines.iter().map(|(code, _)| code.len()).max().unwrap_or_default();
    lines.iter().map(|(code, comment)| format!("{code:width$}  {comment}")).collect()
}

fn cuda_lines(api: Api, join: Join, first: &End, then: &End, recorded: Option<&str>) -> Vec<String> {
    let driver = api == Api::Driver;
    let name = |runtime: &str, of_driver: &str| if driver { of_driver.to_string() } else { runtime.to_string() };
    let (s, t) = (first.stream(), then.stream());
    let record = format!("{}(event, {s});", name("cudaEventRecord", "cuEventRecord"));
    let wait = format!("{}({t}, event, 0);", name("cudaStreamWaitEvent", "cuStreamWaitEvent"));
    let after = first.place("// after", "the previous access");
    let before = then.place("// before", "this access");
    let (each, all) = match first.streams.len() {
        0 | 1 => (String::new(), String::new()),
        n => (format!(", an event for each of its {n} streams"), ", for each of these events".to_string()),
    };
    match join {
        Join::Event | Join::Existing => match recorded {
            Some(at) => aligned(&[(wait, format!("{before}, for the event that is recorded at {at}"))]),
            None => aligned(&[(record, format!("{after}{each}")), (wait, format!("{before}{all}"))]),
        },
        Join::Host => {
            vec![format!("{}({s});  {before}", name("cudaStreamSynchronize", "cuStreamSynchronize"))]
        }
        Join::KeepAlive => aligned(&[
            (record, format!("{after}{each}")),
            (wait, format!("// on the stream of the block, {}", then.place("before", "it goes back"))),
        ]),
        Join::Capture if then.call.contains("GraphAdd") => {
            let mut line = "cudaGraphAddDependencies(graph, &from, &to, ...);".to_string();
            if driver {
                line = "cuGraphAddDependencies(graph, &from, &to, ...);".into();
            }
            let from = first.place("the node of", "the first access");
            let to = then.place("the node of", "the second");
            vec![format!("{line}  // from {from} to {to}")]
        }
        Join::Capture => {
            let (s, t) = ("stream_of_first", "stream_of_second");
            let record = format!("{}(event, {s});", name("cudaEventRecord", "cuEventRecord"));
            let wait = format!("{}({t}, event, 0);", name("cudaStreamWaitEvent", "cuStreamWaitEvent"));
            let on = "on the captured stream of that line";
            aligned(&[(record, format!("{after}, {on}")), (wait, format!("{before}, {on}"))])
        }
    }
}

fn python_lines(api: Api, join: Join, first: &End, then: &End) -> Vec<String> {
    let (s, t) = (first.python_stream(api), then.python_stream(api));
    let (after, before) = (first.place("# after", "the previous access"), then.place("# before", "this access"));
    let many = first.streams.len() > 1;
    let all = if many { format!(", for each of {} streams", first.streams.len()) } else { String::new() };
    match (api, join) {
        (Api::Jax, _) => vec![format!("jax.block_until_ready(result)  {before}: JAX has no events of its own")],
        (Api::CudaCore, Join::Host) => vec![format!("{s}.sync()  {before}")],
        (Api::CudaCore, Join::Event | Join::Existing) => vec![format!("{t}.wait({s})  {before}{all}")],
        (Api::CudaCore, _) => vec![format!("{t}.wait(event)  {before}, for an event of {s}")],
        (_, Join::KeepAlive) => vec![format!("tensor.record_stream({s})  {before}, where its last reference goes")],
        (_, Join::Host) => vec![format!("{s}.synchronize()  {before}")],
        (Api::CuPy, _) => aligned(&[
            (format!("event = {s}.record()"), after),
            (format!("{t}.wait_event(event)"), format!("{before}{all}")),
        ]),
        (_, Join::Capture) => vec![format!("side.wait_stream(main)  {before}, inside the capture")],
        _ => vec![format!("{t}.wait_stream({s})  {before}{all}")],
    }
}

fn of_overrun(elaborator: &mut Elaborator<'_>, at: OpSite, overrun: &Overrun, raws: &[&RawFinding]) -> RootCause {
    let side = |raw: &&RawFinding| if overrun.later { raw.race.access } else { raw.race.previous };
    let other = |raw: &&RawFinding| if overrun.later { raw.race.previous } else { raw.race.access };
    let kernels: Vec<Access> = raws.iter().map(side).collect();
    let others: Vec<Access> = raws.iter().map(other).collect();
    let kernel = End::of(elaborator, Some(&at), &kernels);
    let name = crate::report::format::text::short_kernel(&elaborator.kernel_name(at.kernel));
    let (start, limit, end) = overrun.bytes;
    let (total, _) = overrun.threads;
    let meant = (limit - start) / overrun.each;
    let missing = format!(
        "The range of kernel {name} exceeds the memory that it was meant for by {} bytes: each of its {total} threads touches \
         {} bytes of {}, and other memory begins behind {} of them. A wait would order the two and leave the overrun.",
        end - limit,
        overrun.each,
        end - start,
        limit - start,
    );
    let inside = kernels.first().and_then(|access| elaborator.side(access, start).inside);
    let place = inside
        .map_or_else(String::new, |i| format!(", before {}:{}", i.file.rsplit('/').next().unwrap_or_default(), i.line));
    let line = format!("if (i < {meant}) ...  // in {name}{place}; i is the thread's number in the grid");
    let before = others.first().map_or_else(CausePoint::default, |access| {
        let (site, stream) = (OpSite::of_access(access), access.site.stream);
        let mut point = End::of(elaborator, Some(&site), &others).point;
        point.streams.truncate(if stream.is_none() { 0 } else { usize::MAX });
        point
    });
    // The neighbour differs from chunk to chunk: the kernel alone is the cause.
    let fingerprint = of_cause("kernel-range", &kernel.point.stack, &[]);
    let mend = vec![MendingLines { api: "CUDA runtime", lines: vec![line] }];
    RootCause { fingerprint, kind: "kernel-range", missing, after: kernel.point, before, mend, tried: false }
}
