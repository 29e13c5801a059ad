//! What `streamsan explain FILE [KERNEL]` prints: every kernel of a file, with the parameter words
//! that it reads and writes.
//!
//! Owns the text and the JSON. The JSON is a contract:
//! ```text
//! {"kernels":[{"name","arch","params":[{"offset","size","reads","writes","atomic","extent"}],
//!              "indirect"}]}
//! ```
//!
//! * `params` has one entry for each pointer-sized parameter word from which some access derives. A
//!   by-value struct gives one entry for each such word. `offset` counts from the start of the
//!   parameters.
//! * `extent` is one of `affine`, `unknown`. An unknown extent also has `reason` (the first thing
//!   that was not understood) and `at` (the memory instruction: byte offset in the code section, or
//!   line of PTX). A kernel with indirect accesses has them too (`indirect_reason`, `indirect_at`).
//! * Kernels whose code has a line table (`nvcc -lineinfo`) also have
//!   `"accesses":[{"kind","at","words","file","line"}]`, one entry for each instruction with a line
//!   that may touch global memory. `kind` is one of `read`, `write`, `atomic`; `words` are the
//!   offsets of the words from which its address derives.
//! * Kernels whose machine code leads from a store to shared memory to a bulk operation that reads
//!   it, without a fence between the proxies, have
//!   `"unfenced":[{"at","store","line","store_line"}]`: both instructions, and their lines if they
//!   have any (`{"file","line"}`).
//! * Kernels that could not be summarised are in `"failed":[{"name","arch","error"}]`.

use crate::code_image::CodeImage;
use crate::effects::{AccessKind, WordExtent};
use crate::ir::UnfencedCopy;
use crate::summary::Summary;
use crate::summary_cache::Cache;
use device_code::arch::Arch;
use device_code::image::{EntryKind, Image, ImageError, find_in_host};
use device_code::line_table::{SourceLine, user_line};
use serde_json::{Value, json};
use std::sync::Arc;

/// One kernel of the file.
#[derive(Debug)]
pub struct Explained {
    /// Mangled name; empty when a whole piece of code could not be read.
    pub name: String,
    /// Architecture the code is for.
    pub arch: Arch,
    /// PTX, whose instructions are counted in lines; else machine code.
    pub ptx: bool,
    /// The summary, or why there is none.
    pub summary: Result<Arc<Summary>, String>,
    /// The memory instructions that have a source line, in the order of the code.
    pub accesses: Vec<ExplainedAccess>,
    /// Bulk operations without a fence between the proxies in front of them.
    pub unfenced: Vec<ExplainedCopy>,
}

/// A bulk operation and the store in front of it, with their source lines.
#[derive(Debug)]
pub struct ExplainedCopy {
    /// Both.
    pub copy: UnfencedCopy,
    /// The line of the operation, if it has one.
    pub line: Option<SourceLine>,
    /// That of the store.
    pub store_line: Option<SourceLine>,
}

/// A memory instruction and its source line.
#[derive(Debug)]
pub struct ExplainedAccess {
    /// What it does.
    pub kind: AccessKind,
    /// Byte offset in the code section, or line of PTX.
    pub(crate) at: u32,
    /// Offsets of the parameter words that its address derives from.
    pub words: Vec<u16>,
    /// See [`crate::KernelAccess::early`].
    pub early: bool,
    /// The line: of calls that were inlined the innermost that is not in a header of CUDA's own.
    pub line: SourceLine,
}

fn accesses(code: &CodeImage, name: &str, summary: &Summary) -> Vec<ExplainedAccess> {
    let line = |at| user_line(&code.lines(name, at)).cloned();
    let all = summary.instructions().filter_map(|(kind, at, words)| Some((kind, at, words, line(at)?)));
    let early: Vec<_> = summary.early_instructions().collect();
    let whole = |(kind, at, words, line)| ExplainedAccess { kind, at, words, early: early.contains(&(kind, at)), line };
    all.map(whole).collect()
}

fn unfenced(code: &CodeImage, name: &str, summary: &Summary) -> Vec<ExplainedCopy> {
    let line = |at| user_line(&code.lines(name, at)).cloned();
    let whole = |copy: &UnfencedCopy| ExplainedCopy { copy: *copy, line: line(copy.at), store_line: line(copy.store) };
    summary.unfenced_copies().iter().map(whole).collect()
}

/// Summarises every kernel of a file: a fatbin, cubin, PTX text, or a program or library that holds
/// fatbins. With `only`, the kernels whose mangled name contains it; with `cache`, summaries are
/// kept there.
///
/// # Errors
///
/// [`ImageError`] when the file holds no code image at all, or a damaged one.
pub fn explain(bytes: &[u8], only: Option<&str>, cache: Option<&Arc<Cache>>) -> Result<Vec<Explained>, ImageError> {
    let mut out = Vec::new();
    match Image::parse(bytes) {
        Ok(image) => explain_image(&image, only, cache, &mut out),
        Err(first) => {
            let hosted = find_in_host(bytes).unwrap_or_default();
            if hosted.is_empty() {
                return Err(first);
            }
            for h in hosted.iter().filter(|h| !h.relocatable) {
                match &h.image {
                    Ok(image) => explain_image(image, only, cache, &mut out),
                    Err(e) => out.push(Explained {
                        name: String::new(),
                        arch: Arch::new(0),
                        ptx: false,
                        summary: Err(format!("fatbin at {:#x}: {e}", h.offset)),
                        accesses: Vec::new(),
                        unfenced: Vec::new(),
                    }),
                }
            }
        }
    }
    Ok(out)
}

fn explain_image(image: &Image<'_>, only: Option<&str>, cache: Option<&Arc<Cache>>, out: &mut Vec<Explained>) {
    // The PTX beside machine code says the same once more.
    let machine = image.entries().iter().any(|e| e.kind == EntryKind::Cubin);
    for e in image.entries().iter().filter(|e| !machine || e.kind == EntryKind::Cubin) {
        let ptx = e.kind != EntryKind::Cubin;
        let code = e.unpack().map_err(|e| e.to_string());
        let code = code.and_then(|c| CodeImage::from_code(c, e.arch).map_err(|e| e.to_string()));
        match code {
            Ok(code) => {
                let code = code.with_cache(cache.cloned());
                for name in code.kernel_names().filter(|n| only.is_none_or(|o| n.contains(o))) {
                    let summary = code.summary(name).map_err(|e| e.to_string());
                    let accesses = summary.as_ref().map_or_else(|_| Vec::new(), |s| accesses(&code, name, s));
                    let unfenced = summary.as_ref().map_or_else(|_| Vec::new(), |s| unfenced(&code, name, s));
                    out.push(Explained { name: name.to_owned(), arch: e.arch, ptx, summary, accesses, unfenced });
                }
            }
            Err(error) => out.push(Explained {
                name: String::new(),
                arch: e.arch,
                ptx,
                summary: Err(error),
                accesses: Vec::new(),
                unfenced: Vec::new(),
            }),
        }
    }
}

/// The mangled names of all kernels of a file, sorted; nothing of them is analysed.
pub fn kernel_names(bytes: &[u8]) -> Result<Vec<String>, ImageError> {
    let hosted = match Image::parse(bytes) {
        Ok(image) => return Ok(names_of(std::iter::once(&image))),
        Err(error) => find_in_host(bytes).map_err(|_| error)?,
    };
    Ok(names_of(hosted.iter().filter(|h| !h.relocatable).filter_map(|h| h.image.as_ref().ok())))
}

fn names_of<'a, 'b: 'a>(images: impl Iterator<Item = &'a Image<'b>>) -> Vec<String> {
    let mut names = Vec::new();
    for entry in images.flat_map(Image::entries) {
        let code = entry.unpack().ok().and_then(|code| CodeImage::from_code(code, entry.arch).ok());
        names.extend(code.iter().flat_map(|code| code.kernel_names().map(str::to_owned)));
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// The contract's JSON.
#[must_use]
pub fn explain_json(kernels: &[Explained]) -> Value {
    let mut list = Vec::new();
    let mut failed = Vec::new();
    for k in kernels {
        let arch = k.arch.to_string();
        match &k.summary {
            Err(error) => failed.push(json!({ "name": k.name, "arch": arch, "error": error })),
            Ok(s) => {
                let params: Vec<Value> = s
                    .words()
                    .iter()
                    .map(|w| {
                        let extent = match w.extent {
                            WordExtent::Affine => "affine",
                            WordExtent::Unknown => "unknown",
                        };
                        let mut v = json!({
                            "offset": w.offset, "size": 8, "reads": w.reads, "writes": w.writes, "atomic": w.atomic,
                            "extent": extent,
                        });
                        if let Some(gap) = w.why {
                            v["reason"] = gap.reason.words().into();
                            v["at"] = gap.at.into();
                        }
                        v
                    })
                    .collect();
                let mut v = json!({ "name": k.name, "arch": arch, "params": params, "indirect": s.indirect().any() });
                if let Some(gap) = s.indirect().why {
                    v["indirect_reason"] = gap.reason.words().into();
                    v["indirect_at"] = gap.at.into();
                }
                if !k.accesses.is_empty() {
                    v["accesses"] = k.accesses.iter().map(access).collect();
                }
                if !k.unfenced.is_empty() {
                    v["unfenced"] = k.unfenced.iter().map(unfenced_copy).collect();
                }
                list.push(v);
            }
        }
    }
    let mut v = json!({ "kernels": list });
    if !failed.is_empty() {
        v["failed"] = Value::Array(failed);
    }
    v
}

fn access(a: &ExplainedAccess) -> Value {
    let kind = match a.kind {
        AccessKind::Read => "read",
        AccessKind::Write => "write",
        AccessKind::Atomic => "atomic",
        AccessKind::AtomicRead => "atomic-read",
        AccessKind::AtomicWrite => "atomic-write",
    };
    json!({ "kind": kind, "at": a.at, "words": a.words, "file": a.line.file, "line": a.line.line })
}

fn unfenced_copy(found: &ExplainedCopy) -> Value {
    let line = |line: &Option<SourceLine>| line.as_ref().map(|line| json!({ "file": line.file, "line": line.line }));
    let (at, store) = (found.copy.at, found.copy.store);
    json!({ "at": at, "store": store, "line": line(&found.line), "store_line": line(&found.store_line) })
}
