//! `streamsan dump`: the ops of a trace, one a line.

use std::io::{BufWriter, ErrorKind, Write};

use serde_json::{Value, json};
use trace::file::{FileError, LATE};
use trace::{Op, Record};

use super::arguments::Takes;
use super::arguments::as_json::{AsJson, not_written, write_file};
use super::common::{failed, print_failed, readable};
use ingest::recorded;
use settings::exit_code::Ending;
use system::file_name::FileName;

/// Print the ops of a trace, one a line
#[derive(clap::Args, Debug)]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    json: AsJson,
    /// A trace
    #[arg(value_name = "FILE", required = true)]
    file: FileName,
    #[command(flatten)]
    _options: Takes<0>,
}

/// Prints them.
pub(crate) fn main(args: &DumpArgs) -> Ending {
    let file = &args.file;
    if let Err(ending) = readable(file) {
        return ending;
    }
    match args.json.file(std::slice::from_ref(file)) {
        Err(ending) => ending,
        Ok(Some(place)) => match write_file(&place, |to| lines_of_json(file, to)) {
            Err(FileError::Io(error)) => not_written(&place, &error),
            Err(error) => failed(&format!("{file}: {error}")),
            Ok(()) => Ending::default(),
        },
        Ok(None) => printed(file, args.json.is_asked()),
    }
}

fn printed(file: &FileName, json: bool) -> Ending {
    let mut to = BufWriter::new(std::io::stdout().lock());
    let dumped = if json { lines_of_json(file, &mut to) } else { recorded::dump(file, &mut to) };
    let flushed = to.flush();
    match dumped {
        // What can be read, but not written.
        Err(FileError::Io(error)) if error.kind() == ErrorKind::StorageFull => print_failed(&error),
        Err(error) => failed(&format!("{file}: {error}")),
        Ok(()) => flushed.map_or_else(|error| print_failed(&error), |()| Ending::default()),
    }
}

fn lines_of_json(path: &FileName, mut to: impl Write) -> Result<(), FileError> {
    let mut written = Ok(());
    recorded::each_record(path, |process, bytes| {
        if written.is_ok() {
            written = writeln!(to, "{}", object(process & !LATE, bytes));
        }
    })?;
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// One record: `process`, `thread`, `stack`, `timeline`, `time`, `call`, `op`, and the op's fields
/// under `fields`.
fn object(process: u32, bytes: &[u8]) -> Value {
    let record = match Record::decode(bytes) {
        Ok(record) => record,
        Err(error) => return json!({ "process": process, "unreadable": error.to_string() }),
    };
    // Machine code takes megabytes of digits that nobody reads.
    let (op, omitted) = match record.op {
        Op::Image { id, source, path, offset, size, bytes } => {
            (Op::Image { id, source, path, offset, size, bytes: &[] }, bytes.len())
        }
        op => (op, 0),
    };
    let origin = &record.origin;
    let mut line = json!({
        "process": process,
        "thread": origin.thread.0,
        "stack": origin.stack.0,
        "timeline": origin.epoch.timeline.0,
        "time": origin.epoch.time,
        "call": origin.call.0,
        "op": op.name(),
        "fields": fields(&op),
    });
    if omitted > 0 {
        line["omitted"] = omitted.into();
    }
    line
}

/// The fields of an op by name. One without fields has none.
fn fields(op: &Op<'_>) -> Value {
    match serde_json::to_value(op) {
        Ok(Value::Object(mut variants)) => variants.remove(op.name()).unwrap_or_default(),
        _ => json!({}),
    }
}
