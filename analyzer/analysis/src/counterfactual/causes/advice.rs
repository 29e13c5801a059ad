//! The words of causes: what is missing, and the lines that mend it, in the interface that the
//! call sites use.
//!
//! Owns the wording. Which waits there are is decided in [`super::search`].

use super::overrun::Overrun;
use super::search::{FoundSet, FoundWait};
use crate::Analysis;
use detect::findings::RawFinding;
use detect::memory::Access;
use detect::state::op_site::OpSite;
use report::call_site::site;
use report::cause::Join;
use report::cause::{CausePoint, RootCause};
use report::elaborate::Elaborator;
use report::fingerprint::of_cause;
use report::mend::api::Api;
use report::mend::lines;
use report::model::{MendingLines, StreamName};
use report::words::CauseKind;
use rustc_hash::{FxHashMap, FxHashSet};

/// One end of a wait.
struct End {
    point: CausePoint,
    streams: Vec<StreamName>,
    /// The API function of the op.
    call: String,
    /// The place in prose, the same for all members of the wait.
    place: String,
}

impl End {
    /// `sites`: the first stands for all.
    fn of(elaborator: &mut Elaborator<'_>, sites: &[OpSite], accesses: &[Access]) -> Self {
        let stack = sites.first().map_or_else(Vec::new, |at| elaborator.frames(at.stack).to_vec());
        let mut ids: Vec<_> = accesses.iter().map(|access| access.site.stream).collect();
        ids.sort_unstable();
        ids.dedup();
        let streams: Vec<StreamName> = ids.into_iter().map(|id| elaborator.stream(id)).collect();
        let call = accesses.first().map_or_else(String::new, |access| elaborator.side(access, 0).call);
        let at = site(&stack).unwrap_or_default();
        let names = streams.iter().map(|stream| stream.long.clone()).collect();
        // One line of a helper with several callers is named without any of them.
        let mut places: Vec<_> = sites.iter().map(|at| elaborator.place(at.stack).unwrap_or_default()).collect();
        places.dedup();
        let place = if let [one] = &mut places[..] { std::mem::take(one) } else { at.clone() };
        Self { point: CausePoint { at, stack, streams: names }, streams, call, place }
    }

    /// The node of a graph: its stream is the one that was captured.
    fn captured_on(&mut self, streams: Vec<StreamName>) {
        self.point.streams = streams.iter().map(|stream| stream.long.clone()).collect();
        self.streams = streams;
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

    fn place(&self, word: &str, otherwise: &str) -> String {
        if self.place.is_empty() { format!("{word} {otherwise}") } else { format!("{word} {}", self.place) }
    }

    fn api(&self) -> Api {
        Api::of_call(&self.call, &self.point.stack)
    }

    /// For the lines that mend it. `word`: `after` or `before`.
    fn line(&self, word: &str, otherwise: &str) -> lines::WaitEnd {
        let at = if self.point.at.is_empty() { "it" } else { &self.point.at };
        let node = if self.call.contains("GraphAdd") { format!("node_of {at}") } else { String::new() };
        let node = node.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        lines::WaitEnd { streams: self.streams.clone(), comment: self.place(word, otherwise), node }
    }
}

/// The causes of a process: one for each wait, then one for each kernel that runs past its memory.
pub(crate) fn causes(analysis: &mut Analysis, raws: &[RawFinding], found: &FoundSet) -> Vec<RootCause> {
    let mut elaborator = analysis.elaborator();
    let mut of: Vec<Vec<&RawFinding>> = vec![Vec::new(); found.waits.len() + found.overruns.len()];
    for (at, raw) in raws.iter().enumerate() {
        of.get_mut(found.cause_of(at).unwrap_or(usize::MAX)).into_iter().for_each(|list| list.push(raw));
    }
    let mut causes: Vec<RootCause> = Vec::new();
    for (wait, of) in found.waits.iter().zip(&of) {
        causes.push(of_wait(&mut elaborator, wait, of));
    }
    for ((at, overrun), of) in found.overruns.iter().zip(&of[found.waits.len()..]) {
        causes.push(of_overrun(&mut elaborator, *at, overrun, of));
    }
    // One text twice in one function: numbered, as findings are.
    let (mut taken, mut numbers) = (FxHashSet::default(), FxHashMap::<String, u32>::default());
    for cause in &mut causes {
        let mut fingerprint = cause.fingerprint.clone();
        if taken.contains(&fingerprint) {
            let nth = numbers.entry(fingerprint.clone()).or_default();
            while taken.contains(&fingerprint) {
                *nth += 1;
                fingerprint = of_cause(&format!("{} {nth}", cause.kind), &cause.after.stack, &cause.before.stack);
            }
            cause.fingerprint.clone_from(&fingerprint);
        }
        taken.insert(fingerprint);
    }
    causes
}

fn of_wait(elaborator: &mut Elaborator<'_>, found: &FoundWait, raws: &[&RawFinding]) -> RootCause {
    let previous: Vec<Access> = raws.iter().map(|raw| raw.race.previous.clone()).collect();
    let access: Vec<Access> = raws.iter().map(|raw| raw.race.access.clone()).collect();
    // An event that the program has already: the places of the cause stay those of the plain wait.
    let plain = found.plain.as_ref().unwrap_or(&found.wait);
    let mut first = End::of(elaborator, &plain.after, &previous);
    let mut then = End::of(elaborator, &plain.before, &access);
    if plain.join == Join::Capture {
        first.captured_on(elaborator.captured_on(&plain.after));
        then.captured_on(elaborator.captured_on(&plain.before));
    }
    let recorded = found.plain.as_ref().and(found.wait.after.first());
    let recorded = recorded.map(|at| elaborator.place(at.stack).unwrap_or_default());
    let (kind, missing) = match plain.join {
        Join::Event | Join::Existing => {
            let (who, whom) = (then.who(), first.who());
            let what = first.place("what was submitted at", "a place that is not known");
            (CauseKind::MissingWait, format!("Nothing makes {who} wait until {whom} {} finished {what}.", first.have()))
        }
        Join::Host => {
            let what = first.place("what was submitted at", "a place that is not known");
            (
                CauseKind::MissingHostWait,
                format!("The host does not wait until {} {} finished {what}.", first.who(), first.have()),
            )
        }
        Join::KeepAlive => {
            let at = then.place("at", "a place that is not known");
            let missing = format!("Memory goes back to its pool {at} while {} may still use it.", first.who());
            (CauseKind::MissingRecordStream, missing)
        }
        Join::Capture => {
            let (from, to) = (first.place("captured at", "one place"), then.place("captured at", "the other place"));
            let of = |end: &End| if end.streams.is_empty() { String::new() } else { format!(" on {}", end.who()) };
            // Captured at one line: only the nodes tell them apart.
            let alike = first.point.at == then.point.at;
            let nodes = |end: &[Access]| if alike { nodes(elaborator, end) } else { String::new() };
            let missing = format!(
                "In the graph nothing makes what is {to}{}{} wait for what is {from}{}{}.",
                of(&then),
                nodes(&access),
                of(&first),
                nodes(&previous),
            );
            (CauseKind::MissingGraphEdge, missing)
        }
    };
    let (from, to) = (first.line("after", "the previous access"), then.line("before", "this access"));
    let mut mend = Vec::new();
    if elaborator.names.python {
        let frames = first.point.stack.iter().chain(&then.point.stack);
        for api in Api::of_python(frames, elaborator.names.torch) {
            mend.push(MendingLines { api, lines: lines::python(api, plain.join, &from, &to) });
        }
    }
    let cuda = Api::of_both(first.api(), then.api());
    let lines = lines::cuda(cuda, plain.join, &from, &to, recorded.as_deref());
    mend.push(MendingLines { api: cuda, lines });
    let fingerprint = of_cause(kind.name(), &first.point.stack, &then.point.stack);
    RootCause { fingerprint, kind, missing, after: first.point, before: then.point, mend, tried: true }
}

/// The nodes of a graph that made these accesses: ` as node 3 (scale)`, ` as nodes 1, 2 and 4`.
fn nodes(elaborator: &Elaborator<'_>, accesses: &[Access]) -> String {
    let mut nodes: Vec<u32> = accesses.iter().filter_map(|access| access.site.node.checked_sub(1)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    match &nodes[..] {
        [] => String::new(),
        [one] => {
            let kernel = accesses.first().map(|access| elaborator.kernel_name(access.site.kernel)).unwrap_or_default();
            let kernel = report::format::text::short_kernel(&kernel);
            let name = kernel.split('(').next().unwrap_or_default();
            if name.is_empty() { format!(", as node {one}") } else { format!(", as node {one} ({name})") }
        }
        [others @ .., last] => {
            let others: Vec<String> = others.iter().map(u32::to_string).collect();
            format!(", as nodes {} and {last}", others.join(", "))
        }
    }
}

fn of_overrun(elaborator: &mut Elaborator<'_>, at: OpSite, overrun: &Overrun, raws: &[&RawFinding]) -> RootCause {
    let side = |raw: &&RawFinding| if overrun.later { &raw.race.access } else { &raw.race.previous }.clone();
    let other = |raw: &&RawFinding| if overrun.later { &raw.race.previous } else { &raw.race.access }.clone();
    let kernels: Vec<Access> = raws.iter().map(side).collect();
    let others: Vec<Access> = raws.iter().map(other).collect();
    let kernel = End::of(elaborator, &[at], &kernels);
    let name = report::format::text::short_kernel(&elaborator.kernel_name(at.kernel));
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
        let mut point = End::of(elaborator, &[site], &others).point;
        point.streams.truncate(if stream.is_none() { 0 } else { usize::MAX });
        point
    });
    // The neighbour differs from chunk to chunk: the kernel alone is the cause.
    let fingerprint = of_cause(CauseKind::KernelRange.name(), &kernel.point.stack, &[]);
    let mend = vec![MendingLines { api: Api::Runtime, lines: vec![line] }];
    RootCause { fingerprint, kind: CauseKind::KernelRange, missing, after: kernel.point, before, mend, tried: false }
}
