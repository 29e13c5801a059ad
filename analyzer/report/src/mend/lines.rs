//! The calls that mend a missing synchronisation, in each interface.
//!
//! Owns the calls. Where they go is said in the comment behind each, whose words the caller gives.

use super::api::Api;
use crate::cause::Join;
use crate::model::StreamName;
use crate::words::LaneKind;

/// Of two atomic accesses that race.
pub const NARROW_SCOPE: &str = "Both are atomic, but the scope of a store is its own device. A scope that contains both \
    (atomicAdd_system, cuda::thread_scope_system, .sys) needs no wait.";

/// One end of a wait.
#[derive(Clone, Debug, Default)]
pub struct WaitEnd {
    /// The streams that have run it: in a captured graph those that were captured.
    pub streams: Vec<StreamName>,
    /// Where the call goes: `after app.cu:22`, `before this access, app.cu:30`.
    pub comment: String,
    /// What the node of a graph is called, `node_3`, if it was added by hand; otherwise empty.
    pub node: String,
}

impl WaitEnd {
    /// In a line of CUDA.
    fn stream(&self) -> String {
        if let [one] = &self.streams[..] { one.short.clone() } else { "stream".into() }
    }

    /// In a line of Python.
    fn python_stream(&self, api: Api) -> String {
        let [one] = &self.streams[..] else { return "stream".into() };
        let names = match api {
            Api::CudaCore => ("device.default_stream", "device.default_stream"),
            Api::CuPy => ("cupy.cuda.Stream.null", "cupy.cuda.Stream.ptds"),
            Api::Numba => ("cuda.default_stream()", "cuda.per_thread_default_stream()"),
            _ => ("torch.cuda.default_stream()", "torch.cuda.ExternalStream(2)"),
        };
        match one.kind {
            LaneKind::Legacy => names.0.into(),
            LaneKind::PerThread => names.1.into(),
            _ => one.short.clone(),
        }
    }
}

/// How two nodes of a graph are joined.
enum Joined {
    /// By a wait between the streams that they were captured on.
    Streams,
    /// By such a wait, on streams that are not known.
    Unnamed,
    /// By an edge: one of them was added by hand, or both were captured on one stream.
    Edge,
}

fn joined(first: &WaitEnd, then: &WaitEnd) -> Joined {
    let ids = |end: &WaitEnd| end.streams.iter().map(|stream| stream.id).collect::<Vec<_>>();
    match (ids(first), ids(then)) {
        _ if !first.node.is_empty() || !then.node.is_empty() => Joined::Edge,
        (first, then) if first.is_empty() || then.is_empty() => Joined::Unnamed,
        (first, then) if first == then && first.len() == 1 => Joined::Edge,
        _ => Joined::Streams,
    }
}

/// Lines with their comments below each other.
fn aligned(lines: &[(String, String)]) -> Vec<String> {
    let width = lines.iter().map(|(code, _)| code.len()).max().unwrap_or_default();
    lines.iter().map(|(code, comment)| format!("{code:width$}  {comment}")).collect()
}

/// In CUDA. `recorded`: where the program records an event that serves already.
pub fn cuda(api: Api, join: Join, first: &WaitEnd, then: &WaitEnd, recorded: Option<&str>) -> Vec<String> {
    let driver = api == Api::Driver;
    let name = |runtime: &str, of_driver: &str| if driver { of_driver.to_string() } else { runtime.to_string() };
    let (s, t) = (first.stream(), then.stream());
    let record = format!("{}(event, {s});", name("cudaEventRecord", "cuEventRecord"));
    let wait = format!("{}({t}, event, 0);", name("cudaStreamWaitEvent", "cuStreamWaitEvent"));
    let (after, before) = (format!("// {}", first.comment), format!("// {}", then.comment));
    let (each, all) = match first.streams.len() {
        0 | 1 => (String::new(), String::new()),
        n => (format!(", an event for each of its {n} streams"), ", for each of these events".to_string()),
    };
    match join {
        Join::Event | Join::Existing => match recorded {
            Some(at) => aligned(&[(wait, format!("{before}, for the event that is recorded at {at}"))]),
            None => aligned(&[(record, format!("{after}{each}")), (wait, format!("{before}{all}"))]),
        },
        Join::Host => vec![format!("{}({s});  {before}", name("cudaStreamSynchronize", "cuStreamSynchronize"))],
        Join::KeepAlive => aligned(&[
            (record, format!("{after}{each}")),
            (wait, format!("// on the stream of the block, {}", then.comment)),
        ]),
        Join::Capture => match joined(first, then) {
            Joined::Edge => {
                let add = name("cudaGraphAddDependencies", "cuGraphAddDependencies");
                let node = |end: &WaitEnd, otherwise: &str| match end.node.is_empty() {
                    true => otherwise.to_string(),
                    false => end.node.clone(),
                };
                let (from, to) = (node(first, "from"), node(then, "to"));
                vec![format!("{add}(graph, &{from}, &{to}, ...);")]
            }
            how => {
                let names = match how {
                    Joined::Streams => (s, t),
                    _ => ("stream_of_first".to_string(), "stream_of_second".to_string()),
                };
                let record = format!("{}(event, {});", name("cudaEventRecord", "cuEventRecord"), names.0);
                let wait = format!("{}({}, event, 0);", name("cudaStreamWaitEvent", "cuStreamWaitEvent"), names.1);
                let inside = "inside the capture";
                aligned(&[(record, format!("{after}{each}, {inside}")), (wait, format!("{before}{all}, {inside}"))])
            }
        },
    }
}

/// In Python, that the host waits until all that a process has submitted is over.
pub fn python_waits_for_all(api: Api) -> &'static str {
    match api {
        Api::CuPy => "cupy.cuda.runtime.deviceSynchronize()",
        Api::Jax => "jax.block_until_ready(result)",
        Api::CudaCore => "device.sync()",
        Api::Numba => "cuda.synchronize()",
        _ => "torch.cuda.current_stream().synchronize()",
    }
}

/// In Python.
pub fn python(api: Api, join: Join, first: &WaitEnd, then: &WaitEnd) -> Vec<String> {
    let (s, t) = (first.python_stream(api), then.python_stream(api));
    let (after, before) = (format!("# {}", first.comment), format!("# {}", then.comment));
    let many = first.streams.len() > 1;
    let all = if many { format!(", for each of {} streams", first.streams.len()) } else { String::new() };
    let inside = if join == Join::Capture { ", inside the capture" } else { "" };
    if join == Join::Capture && !matches!(joined(first, then), Joined::Streams) {
        return vec![format!("side.wait_stream(main)  {before}{inside}")];
    }
    match (api, join) {
        (Api::Jax, _) => vec![format!("jax.block_until_ready(result)  {before}: JAX has no events of its own")],
        (Api::CudaCore, Join::Host) => vec![format!("{s}.sync()  {before}")],
        (Api::CudaCore, Join::KeepAlive) => {
            vec![format!("{t}.wait({s})  # on the stream of the block, {}", then.comment)]
        }
        (Api::CudaCore, _) => vec![format!("{t}.wait({s})  {before}{all}{inside}")],
        (_, Join::Host) => vec![format!("{s}.synchronize()  {before}")],
        (Api::Numba, _) => {
            let of_block = format!("# on the stream of the block, {}", then.comment);
            let wait = if join == Join::KeepAlive { of_block } else { format!("{before}{all}{inside}") };
            aligned(&[
                ("event = cuda.event()".to_string(), "# from numba import cuda".to_string()),
                (format!("event.record({s})"), format!("{after}{inside}")),
                (format!("event.wait({t})"), wait),
            ])
        }
        (Api::CuPy, Join::KeepAlive) => aligned(&[
            (format!("event = {s}.record()"), after),
            (format!("{t}.wait_event(event)"), format!("# on the stream of the block, {}", then.comment)),
        ]),
        (Api::CuPy, _) => aligned(&[
            (format!("event = {s}.record()"), format!("{after}{inside}")),
            (format!("{t}.wait_event(event)"), format!("{before}{all}{inside}")),
        ]),
        (_, Join::KeepAlive) => {
            vec![format!("tensor.record_stream({s})  {before}, where its last reference goes")]
        }
        _ => vec![format!("{t}.wait_stream({s})  {before}{all}{inside}")],
    }
}
