//! Pointer tables in device memory: followed when a copy revealed their contents, and forgotten
//! when anything may have changed them.

use crate::support::*;
use trace::*;

const N: u64 = 1 << 16;
const TABLE: u64 = X + (1 << 24);

/// Two rows, a table of both that the host has filled, and a kernel that fills the rows through the
/// table on stream A.
fn program(source: u64) -> (Program, KernelId) {
    let mut p = Program::new();
    p.malloc(X, N);
    p.malloc(X + N, N);
    p.malloc(TABLE, 16);
    fill(&mut p, source, &[X, X + N]);
    let rows = p.kernel("rows", &[reads(0, Shape::Exact(0, 16)), writes(0, Shape::PointerTable(2, 0, 64))]);
    (p, rows)
}

fn fill(p: &mut Program, source: u64, pointers: &[u64]) {
    p.copy(A, TABLE, source, 8 * pointers.len() as u64, H2D);
    contents(p, pointers);
}

fn contents(p: &mut Program, pointers: &[u64]) {
    let bytes: Vec<u8> = pointers.iter().flat_map(|w| w.to_le_bytes()).collect();
    p.does("cudaMemcpy", Op::Contents { ptr: TABLE, bytes: &bytes });
}

#[test]
fn a_row_behind_a_table_is_written() {
    let (mut p, rows) = program(PAGEABLE);
    p.launch(A, rows, &[TABLE]);
    p.go(B, X + N, &[reads(0, Shape::Exact(60, 100))]);
    let f = p.finds("read-after-write certain");
    assert_eq!((f.from, f.to), (60, 64));
    assert_eq!(p.outcome().coverage.launches_indirect, 0);
}

#[test]
fn other_bytes_of_the_row_and_ordered_reads_are_silent() {
    let (mut p, rows) = program(PAGEABLE);
    p.launch(A, rows, &[TABLE]);
    p.go(B, X + N, &[reads(0, Shape::Exact(64, 100))]);
    p.order(A, B);
    p.go(B, X + N, &[reads(0, Shape::Exact(0, 100))]);
    p.silent();
}

#[test]
fn a_table_that_may_have_changed_is_not_followed() {
    type Change = fn(&mut Program);
    let changes: [Change; 6] = [
        // Another copy, whose bytes are not known.
        |p| p.copy(A, TABLE + 8, PAGEABLE, 8, H2D),
        |p| p.set(A, TABLE, 1),
        |p| p.go(A, TABLE, &[writes(0, Shape::Exact(8, 16))]),
        |p| p.go(A, TABLE, &[writes(0, Shape::Unknown)]),
        // A kernel without readable code.
        |p| {
            let k = p.define("mystery");
            p.launch(A, k, &[7]);
        },
        // A kernel that writes through an unknown table.
        |p| p.go(A, X + 128, &[writes(0, Shape::PointerTable(1, 0, 8))]),
    ];
    for (i, change) in changes.iter().enumerate() {
        let (mut p, rows) = program(PAGEABLE);
        change(&mut p);
        p.launch(A, rows, &[TABLE]);
        p.go(B, X + N, &[reads(0, Shape::Exact(0, 100))]);
        assert!(p.findings().is_empty(), "change {i}");
        assert!(p.outcome().coverage.launches_indirect > 0, "change {i}");
    }
}

#[test]
fn a_table_is_followed_as_it_was_filled_last() {
    let (mut p, rows) = program(PAGEABLE);
    p.malloc(X + 4 * N, N);
    fill(&mut p, PAGEABLE, &[X, X + 4 * N]);
    p.launch(A, rows, &[TABLE]);
    p.go(B, X + N, &[reads(0, Shape::Exact(0, 100))]);
    p.silent();
    p.go(B, X + 4 * N, &[reads(0, Shape::Exact(0, 100))]);
    p.finds("read-after-write certain");
}

#[test]
fn only_pageable_sources_and_whole_tables_count() {
    // Pinned memory may be overwritten before the copy gets there.
    let mut p = Program::new();
    p.malloc(X, N);
    p.malloc(TABLE, 16);
    p.alloc(PINNED, N, MemoryKind::PinnedHost);
    fill(&mut p, PINNED, &[X, X + 64]);
    let rows = p.kernel("rows", &[writes(0, Shape::PointerTable(2, 0, 64))]);
    p.launch(A, rows, &[TABLE]);
    p.go(B, X, &[reads(0, Shape::Exact(0, 100))]);
    p.silent();
    // The second entry points nowhere: perhaps neither is used.
    fill(&mut p, PAGEABLE, &[X, 0x1234_5678_9abc]);
    p.launch(A, rows, &[TABLE]);
    p.go(B, X, &[reads(0, Shape::Exact(0, 100))]);
    p.silent();
    // Bytes that no copy was seen to bring.
    let mut p = Program::new();
    p.malloc(X, N);
    p.malloc(TABLE, 16);
    contents(&mut p, &[X, X]);
    let rows = p.kernel("rows", &[writes(0, Shape::PointerTable(2, 0, 64))]);
    p.launch(A, rows, &[TABLE]);
    p.go(B, X, &[reads(0, Shape::Exact(0, 100))]);
    p.silent();
}

#[test]
fn a_launch_that_changes_its_own_table_is_not_followed() {
    let (mut p, _) = program(PAGEABLE);
    let own = p.kernel("own", &[writes(0, Shape::Exact(0, 8)), writes(0, Shape::PointerTable(2, 0, 64))]);
    p.launch(A, own, &[TABLE]);
    p.go(B, X + N, &[reads(0, Shape::Exact(0, 100))]);
    p.silent();
}
