//! The findings as a Parquet file: a row for each finding (races and broken rules) and process, so
//! that the files of many ranks and runs can be queried together.
//!
//! Owns the columns: text, integers and booleans, which DuckDB, Polars and Spark read without a
//! schema. Columns are added, never renamed or removed.

use crate::call_site::site_frame;
use crate::cause::RootCause;
use crate::doubt::Doubt;
use crate::format::json::fidelity;
use crate::format::{Event, Reporter, Verdict};
use crate::model::{Actor, AllocationInfo, Breach, Finding, GateStatus, Side};
use detect::state::names::Process;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;
use symbols::frame::Frame;

/// Rows of a row group.
const GROUP: usize = 1 << 16;

/// What a row is about.
#[derive(Clone)]
enum Subject {
    Race(Arc<Finding>, Arc<RootCause>),
    Breach(Arc<Breach>),
}

/// The data of a row.
struct Row {
    about: Subject,
    verdict: Verdict,
    process: Arc<Process>,
    count: u64,
    fidelity: Arc<str>,
}

impl Row {
    /// The race; of a broken rule none.
    fn race(&self) -> Option<&Finding> {
        if let Subject::Race(f, _) = &self.about { Some(f) } else { None }
    }

    fn breach(&self) -> Option<&Breach> {
        if let Subject::Breach(b) = &self.about { Some(b) } else { None }
    }

    fn cause(&self) -> Option<&RootCause> {
        if let Subject::Race(_, cause) = &self.about { Some(cause) } else { None }
    }

    fn memory(&self) -> Option<&AllocationInfo> {
        self.race()?.allocation.as_ref()
    }

    /// What both have.
    fn either<'a, T>(&'a self, of_race: fn(&'a Finding) -> T, of_breach: fn(&'a Breach) -> T) -> T {
        match &self.about {
            Subject::Race(f, _) => of_race(f),
            Subject::Breach(b) => of_breach(b),
        }
    }
}

/// How a column gets its value from a row, or from one side of a race.
enum Column<T> {
    Text(fn(&T) -> Option<String>),
    Number(fn(&T) -> Option<i64>),
    Truth(fn(&T) -> bool),
}
use Column::{Number, Text, Truth};

/// The columns of the finding, before its sides.
const FINDING: &[(&str, Column<Row>)] = &[
    ("streamsan_version", Text(|_| some(env!("CARGO_PKG_VERSION")))),
    ("trace", Text(|r| r.process.trace.clone())),
    ("pid", Number(|r| Some(r.process.pid.into()))),
    ("program", Text(|r| some(&r.process.exe))),
    ("arguments", Text(|r| some(&r.process.args.get(1..).unwrap_or_default().join(" ")))),
    ("cuda_driver", Number(|r| Some(r.process.driver.into()))),
    ("fingerprint", Text(|r| some(r.either(|f| &f.fingerprint, |b| &b.fingerprint)))),
    ("hazard", Text(|r| some(r.either(|f| f.hazard.name(), |b| b.kind.name())))),
    ("kind", Text(|r| some(r.either(|f| f.kind.name(), |_| "forbidden")))),
    ("confidence", Text(|r| some(r.either(|f| f.confidence, |b| b.confidence).name()))),
    ("established", Text(|r| some(r.either(|f| f.established.name(), |_| "call")))),
    ("verdict", Text(|r| some(r.verdict.name()))),
    ("standing", Text(|r| some(standing(r.either(|f| f.standing, |b| b.standing))))),
    ("latent", Truth(|r| r.race().is_some_and(|f| f.latent))),
    ("host", Truth(|r| r.either(|f| f.host, |b| b.side.actor == Actor::Host))),
    ("library_internal", Truth(|r| r.race().is_some_and(|f| f.internal))),
    ("occurrences", Number(|r| whole(r.count))),
    ("bytes_from", Number(|r| r.race().and_then(|f| whole(f.from)))),
    ("bytes_to", Number(|r| r.race().and_then(|f| whole(f.to)))),
];

/// The columns of each side, after `access_` and `previous_`.
const SIDE: &[(&str, Column<Side>)] = &[
    ("operation", Text(|s| some(s.actor.name()))),
    ("does", Text(|s| some(s.verb.name()))),
    ("call", Text(|s| some(&s.call))),
    ("kernel", Text(|s| s.kernel.clone())),
    ("operator", Text(|s| s.operator.clone())),
    ("stream", Text(|s| some(&s.stream.name))),
    ("stream_kind", Text(|s| some(s.stream.kind.name()))),
    ("thread", Number(thread)),
    ("region", Text(|s| some(&s.regions.join(" > ")))),
    ("function", Text(|s| function(&s.stack))),
    ("file", Text(|s| file(&s.stack))),
    ("line", Number(|s| line(&s.stack))),
    ("from", Number(|s| whole(s.from))),
    ("to", Number(|s| whole(s.to))),
    ("extent", Text(|s| some(s.precision.name()))),
];

/// The columns of the memory and of the missing synchronisation, after the sides.
const REST: &[(&str, Column<Row>)] = &[
    ("memory_kind", Text(|r| r.memory().map(|m| m.kind.to_string()))),
    ("memory_size", Number(|r| r.memory().and_then(|m| whole(m.size)))),
    ("memory_call", Text(|r| r.memory().and_then(|m| some(&m.call)))),
    ("memory_function", Text(|r| r.memory().and_then(|m| function(&m.stack)))),
    ("memory_file", Text(|r| r.memory().and_then(|m| file(&m.stack)))),
    ("memory_line", Number(|r| r.memory().and_then(|m| line(&m.stack)))),
    ("cause", Text(|r| r.cause().and_then(|c| some(&c.fingerprint)))),
    ("cause_kind", Text(|r| r.cause().and_then(|c| some(c.kind.name())))),
    ("cause_missing", Text(|r| r.cause().and_then(|c| some(&c.missing)))),
    ("cause_after", Text(|r| r.cause().and_then(|c| some(&c.after.at)))),
    ("cause_before", Text(|r| r.cause().and_then(|c| some(&c.before.at)))),
    ("cause_mend", Text(|r| r.cause().and_then(|c| some(&c.mend.first()?.lines.join("\n"))))),
    ("cause_tried", Truth(|r| r.cause().is_some_and(|c| c.tried))),
    ("missing", Text(|r| r.race().and_then(|f| some(&f.synchronisation.missing)))),
    ("mend_cuda", Text(|r| r.race().and_then(|f| some(&f.synchronisation.cuda().join("\n"))))),
    ("mend_torch", Text(|r| r.race().and_then(|f| some(&f.synchronisation.torch().join("\n"))))),
    ("mend_python", Text(|r| r.race().and_then(|f| some(&f.synchronisation.python()?.lines.join("\n"))))),
    ("rule", Text(|r| r.breach().and_then(|b| some(&b.rule)))),
    ("doubts", Text(|r| r.race().and_then(|f| some(&doubts(&f.doubts, |doubt| vec![doubt.sentence()]))))),
    ("settle", Text(|r| r.race().and_then(|f| some(&doubts(&f.doubts, |doubt| doubt.settle.clone()))))),
    ("rule_text", Text(|r| r.breach().and_then(|b| some(&b.text)))),
    ("fidelity", Text(|r| some(&r.fidelity))),
];

/// Picks a side.
type Of = fn(&Row) -> Option<&Side>;

/// The source of a column's values.
enum Source {
    Row(&'static Column<Row>),
    Side(Of, &'static Column<Side>),
}

/// All columns in order.
fn columns() -> Vec<(String, Source)> {
    let of_row = |(name, column): &'static (&str, Column<Row>)| ((*name).to_string(), Source::Row(column));
    let mut columns: Vec<(String, Source)> = FINDING.iter().map(of_row).collect();
    let sides: [(&str, Of); 2] =
        [("access", |r| Some(r.either(|f| &f.access, |b| &b.side))), ("previous", |r| r.race().map(|f| &f.previous))];
    for (prefix, side) in sides {
        columns.extend(SIDE.iter().map(|(name, column)| (format!("{prefix}_{name}"), Source::Side(side, column))));
    }
    columns.extend(REST.iter().map(of_row));
    columns
}

impl<T> Column<T> {
    /// The column in the schema's language.
    fn field(&self, name: &str) -> String {
        match self {
            Text(_) => format!("optional binary {name} (utf8);"),
            Number(_) => format!("optional int64 {name};"),
            Truth(_) => format!("required boolean {name};"),
        }
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_string()).filter(|text| !text.is_empty())
}

/// The number as a signed one. One that does not fit (an address of a damaged trace) is left out.
fn whole(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

fn thread(side: &Side) -> Option<i64> {
    side.thread.as_ref().map(|(tid, _)| i64::from(*tid))
}

fn function(stack: &[Frame]) -> Option<String> {
    site_frame(stack).or(stack.first()).and_then(|frame| some(&frame.function))
}

fn file(stack: &[Frame]) -> Option<String> {
    site_frame(stack).and_then(|frame| frame.file.clone())
}

fn line(stack: &[Frame]) -> Option<i64> {
    site_frame(stack).and_then(|frame| frame.line).map(i64::from)
}

/// Something of each reason why a finding is not certain, a line each and none twice.
fn doubts(doubts: &[Doubt], what: fn(&Doubt) -> Vec<String>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in doubts.iter().flat_map(what) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

fn standing(standing: GateStatus) -> &'static str {
    match standing {
        GateStatus::New => "new",
        GateStatus::Known => "known",
        GateStatus::Suppressed(_) => "suppressed",
    }
}

/// Writes the file.
#[derive(Default)]
pub struct Parquet {
    kept: Vec<(Subject, Verdict)>,
    processes: Vec<Arc<Process>>,
    causes: Vec<Arc<RootCause>>,
    /// Of the whole run; see [`fidelity`].
    fidelity: Arc<str>,
}

impl Reporter for Parquet {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(report) => {
                self.processes = report.processes.iter().cloned().map(Arc::new).collect();
                self.fidelity = fidelity::line(&report.coverage).into();
                self.causes = report.causes.iter().cloned().map(Arc::new).collect();
            }
            Event::Finding(f, verdict) => {
                let cause = self.causes.iter().find(|cause| cause.fingerprint == f.cause).cloned().unwrap_or_default();
                self.kept.push((Subject::Race(Arc::new(f.clone()), cause), verdict));
            }
            Event::Breach(b, verdict) => self.kept.push((Subject::Breach(Arc::new(b.clone())), verdict)),
            Event::End(_) => {}
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        let mut rows = Vec::new();
        for (about, verdict) in &self.kept {
            let (processes, occurrences) = match about {
                Subject::Race(f, _) => (&f.processes, &f.occurrences),
                Subject::Breach(b) => (&b.processes, &b.occurrences),
            };
            for (index, count) in processes.iter().zip(occurrences) {
                let Some(process) = self.processes.get(*index as usize) else { continue };
                let (about, process) = (about.clone(), Arc::clone(process));
                let fidelity = Arc::clone(&self.fidelity);
                rows.push(Row { about, verdict: *verdict, process, count: *count, fidelity });
            }
        }
        write(&rows).unwrap_or_else(|error| {
            // Writing to memory fails only if the columns are wrong.
            system::say!("the Parquet file could not be made: {error}");
            Vec::new()
        })
    }
}

fn write(rows: &[Row]) -> Result<Vec<u8>, ParquetError> {
    let columns = columns();
    let field = |(name, source): &(String, Source)| match source {
        Source::Row(column) => column.field(name),
        Source::Side(_, column) => column.field(name),
    };
    let fields: Vec<String> = columns.iter().map(field).collect();
    let schema = parse_message_type(&format!("message findings {{ {} }}", fields.join(" ")))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("streamsan version {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    for rows in rows.chunks(GROUP) {
        let mut group = file.next_row_group()?;
        for (_, source) in &columns {
            let Some(mut to) = group.next_column()? else { break };
            match source {
                Source::Row(column) => fill(&mut to, column, rows.iter().map(Some))?,
                Source::Side(side, column) => fill(&mut to, column, rows.iter().map(side))?,
            }
            to.close()?;
        }
        group.close()?;
    }
    file.into_inner()
}

/// Writes one column.
fn fill<'a, T: 'a>(
    to: &mut SerializedColumnWriter<'_>,
    column: &Column<T>,
    from: impl Iterator<Item = Option<&'a T>>,
) -> Result<(), ParquetError> {
    fn there<T>(values: &[Option<T>]) -> Vec<i16> {
        values.iter().map(|value| i16::from(value.is_some())).collect()
    }
    match column {
        Text(get) => {
            let values: Vec<Option<ByteArray>> =
                from.map(|v| v.and_then(get).map(|text| text.into_bytes().into())).collect();
            let there = there(&values);
            let values: Vec<ByteArray> = values.into_iter().flatten().collect();
            to.typed::<ByteArrayType>().write_batch(&values, Some(&there), None)?;
        }
        Number(get) => {
            let values: Vec<Option<i64>> = from.map(|v| v.and_then(get)).collect();
            let there = there(&values);
            let values: Vec<i64> = values.into_iter().flatten().collect();
            to.typed::<Int64Type>().write_batch(&values, Some(&there), None)?;
        }
        Truth(get) => {
            let values: Vec<bool> = from.map(|v| v.is_some_and(get)).collect();
            to.typed::<BoolType>().write_batch(&values, None, None)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_findings_makes_a_file_with_all_columns_and_no_row() {
        let bytes = write(&[]).expect("a file");
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let mut names: Vec<String> = columns().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[17..20], ["bytes_from", "bytes_to", "access_operation"]);
        assert_eq!(names[33..35], ["access_extent", "previous_operation"]);
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "each name once");
    }
}
