//! The findings as a Parquet file: a row for each finding and process, so that the files of many ranks and runs can be asked together.
//!
//! Owns the columns: text, whole numbers and truth values, which DuckDB, Polars and Spark read without being told. They are added, never
//! renamed nor removed.

use super::model::{Finding, Frame, Side, Standing, site_frame};
use super::reporter::{Event, Reporter, Verdict};
use crate::names::Process;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;

/// Rows that are written at once.
const GROUP: usize = 1 << 16;

/// What a row is made of.
struct Row<'a> {
    f: &'a Finding,
    verdict: Verdict,
    process: &'a Process,
    count: u64,
}

/// How a column gets its values.
enum Column {
    Text(fn(&Row<'_>) -> Option<String>),
    Number(fn(&Row<'_>) -> Option<i64>),
    Truth(fn(&Row<'_>) -> bool),
}
use Column::{Number, Text, Truth};

const COLUMNS: &[(&str, Column)] = &[
    ("streamsan_version", Text(|_| some(env!("CARGO_PKG_VERSION")))),
    ("trace", Text(|r| r.process.trace.clone())),
    ("pid", Number(|r| Some(r.process.pid.into()))),
    ("program", Text(|r| some(&r.process.exe))),
    ("arguments", Text(|r| some(&r.process.args.get(1..).unwrap_or_default().join(" ")))),
    ("cuda_driver", Number(|r| Some(r.process.driver.into()))),
    ("fingerprint", Text(|r| some(&r.f.fingerprint))),
    ("hazard", Text(|r| some(r.f.hazard.name()))),
    ("kind", Text(|r| some(r.f.kind))),
    ("confidence", Text(|r| some(r.f.confidence.name()))),
    ("established", Text(|r| some(r.f.established))),
    ("verdict", Text(|r| some(r.verdict.name()))),
    ("standing", Text(|r| some(standing(r.f.standing)))),
    ("latent", Truth(|r| r.f.latent)),
    ("host", Truth(|r| r.f.host)),
    ("library_internal", Truth(|r| r.f.internal)),
    ("occurrences", Number(|r| whole(r.count))),
    ("bytes_from", Number(|r| whole(r.f.from))),
    ("bytes_to", Number(|r| whole(r.f.to))),
    ("access_operation", Text(|r| some(r.f.access.actor.name()))),
    ("access_does", Text(|r| some(r.f.access.verb))),
    ("access_call", Text(|r| some(&r.f.access.call))),
    ("access_kernel", Text(|r| r.f.access.kernel.clone())),
    ("access_operator", Text(|r| r.f.access.operator.clone())),
    ("access_stream", Text(|r| some(&r.f.access.stream.name))),
    ("access_stream_kind", Text(|r| some(r.f.access.stream.kind))),
    ("access_thread", Number(|r| thread(&r.f.access))),
    ("access_region", Text(|r| some(&r.f.access.regions.join(" > ")))),
    ("access_function", Text(|r| function(&r.f.access.stack))),
    ("access_file", Text(|r| file(&r.f.access.stack))),
    ("access_line", Number(|r| line(&r.f.access.stack))),
    ("access_from", Number(|r| whole(r.f.access.from))),
    ("access_to", Number(|r| whole(r.f.access.to))),
    ("access_extent", Text(|r| some(r.f.access.precision))),
    ("previous_operation", Text(|r| some(r.f.previous.actor.name()))),
    ("previous_does", Text(|r| some(r.f.previous.verb))),
    ("previous_call", Text(|r| some(&r.f.previous.call))),
    ("previous_kernel", Text(|r| r.f.previous.kernel.clone())),
    ("previous_operator", Text(|r| r.f.previous.operator.clone())),
    ("previous_stream", Text(|r| some(&r.f.previous.stream.name))),
    ("previous_stream_kind", Text(|r| some(r.f.previous.stream.kind))),
    ("previous_thread", Number(|r| thread(&r.f.previous))),
    ("previous_region", Text(|r| some(&r.f.previous.regions.join(" > ")))),
    ("previous_function", Text(|r| function(&r.f.previous.stack))),
    ("previous_file", Text(|r| file(&r.f.previous.stack))),
    ("previous_line", Number(|r| line(&r.f.previous.stack))),
    ("previous_from", Number(|r| whole(r.f.previous.from))),
    ("previous_to", Number(|r| whole(r.f.previous.to))),
    ("previous_extent", Text(|r| some(r.f.previous.precision))),
    ("memory_kind", Text(|r| r.f.allocation.as_ref().map(|m| m.kind.to_string()))),
    ("memory_size", Number(|r| r.f.allocation.as_ref().and_then(|m| whole(m.size)))),
    ("memory_call", Text(|r| r.f.allocation.as_ref().and_then(|m| some(&m.call)))),
    ("memory_function", Text(|r| r.f.allocation.as_ref().and_then(|m| function(&m.stack)))),
    ("memory_file", Text(|r| r.f.allocation.as_ref().and_then(|m| file(&m.stack)))),
    ("memory_line", Number(|r| r.f.allocation.as_ref().and_then(|m| line(&m.stack)))),
    ("missing", Text(|r| some(&r.f.synchronisation.missing))),
    ("mend_cuda", Text(|r| some(&r.f.synchronisation.cuda.join("\n")))),
    ("mend_torch", Text(|r| some(&r.f.synchronisation.torch.join("\n")))),
];

fn some(text: &str) -> Option<String> {
    Some(text.to_string()).filter(|text| !text.is_empty())
}

/// What does not fit (an address of a damaged trace) is left out.
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

fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::New => "new",
        Standing::Known => "known",
        Standing::Suppressed(_) => "suppressed",
    }
}

/// Writes the file.
#[derive(Default)]
pub struct Parquet {
    kept: Vec<(Finding, Verdict)>,
    processes: Vec<Process>,
}

impl Reporter for Parquet {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(report) => self.processes.clone_from(&report.processes),
            Event::Finding(finding, verdict) => self.kept.push((finding.clone(), verdict)),
            Event::End(_) => {}
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        let mut rows = Vec::new();
        for (f, verdict) in &self.kept {
            for (index, count) in f.processes.iter().zip(&f.occurrences) {
                let Some(process) = self.processes.get(*index as usize) else { continue };
                rows.push(Row { f, verdict: *verdict, process, count: *count });
            }
        }
        write(&rows).unwrap_or_else(|error| {
            // Into memory only a mistake in the columns can fail.
            eprintln!("streamsan: the Parquet file could not be made: {error}");
            Vec::new()
        })
    }
}

fn write(rows: &[Row<'_>]) -> Result<Vec<u8>, ParquetError> {
    let field = |(name, column): &(&str, Column)| match column {
        Text(_) => format!("optional binary {name} (utf8);"),
        Number(_) => format!("optional int64 {name};"),
        Truth(_) => format!("required boolean {name};"),
    };
    let fields: Vec<String> = COLUMNS.iter().map(field).collect();
    let schema = parse_message_type(&format!("message findings {{ {} }}", fields.join(" ")))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("streamsan version {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    for rows in rows.chunks(GROUP) {
        let mut group = file.next_row_group()?;
        for (_, column) in COLUMNS {
            let Some(mut to) = group.next_column()? else { break };
            fill(&mut to, column, rows)?;
            to.close()?;
        }
        group.close()?;
    }
    file.into_inner()
}

/// Writes one column.
fn fill(to: &mut SerializedColumnWriter<'_>, column: &Column, rows: &[Row<'_>]) -> Result<(), ParquetError> {
    fn there<T>(values: &[Option<T>]) -> Vec<i16> {
        values.iter().map(|value| i16::from(value.is_some())).collect()
    }
    match column {
        Text(get) => {
            let values: Vec<Option<ByteArray>> =
                rows.iter().map(|row| get(row).map(|text| text.into_bytes().into())).collect();
            let there = there(&values);
            let values: Vec<ByteArray> = values.into_iter().flatten().collect();
            to.typed::<ByteArrayType>().write_batch(&values, Some(&there), None)?;
        }
        Number(get) => {
            let values: Vec<Option<i64>> = rows.iter().map(get).collect();
            let there = there(&values);
            let values: Vec<i64> = values.into_iter().flatten().collect();
            to.typed::<Int64Type>().write_batch(&values, Some(&there), None)?;
        }
        Truth(get) => {
            let values: Vec<bool> = rows.iter().map(get).collect();
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
        let mut names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COLUMNS.len(), "each name once");
    }
}
