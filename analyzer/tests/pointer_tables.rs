//! Pointer tables in device memory, behind a parameter or in a variable: followed when a copy
//! revealed their contents, and forgotten when anything may have changed them.

use crate::support::*;
use trace::*;

const N: u64 = 1 << 16;
const TABLE: u64 = X + (1 << 24);

/// Where the table lies.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Place {
    /// In an allocation that a parameter points to.
    Allocation,
    /// In a `__device__` or `__constant__` variable.
    Variable,
}

const PLACES: [Place; 2] = [Place::Allocation, Place::Variable];

impl Place {
    fn make(self, p: &mut Program) {
        let image = ImageId(1);
        match self {
            Place::Allocation => p.malloc(TABLE, 16),
            Place::Variable => {
                p.does("cudaMemcpyToSymbol", Op::Global { ptr: TABLE, size: 16, image, name: "table".into() })
            }
        }
    }

    /// Both rows, by the table.
    fn rows(self) -> Shape {
        match self {
            Place::Allocation => Shape::PointerTable(2, 0, 64),
            Place::Variable => Shape::VariableTable(2, 0, 64),
        }
    }
}

/// Two rows, a table of both that the host has filled, and a kernel that fills the rows through the
/// table on stream A.
fn program(place: Place, source: u64) -> (Program, KernelId) {
    let mut p = Program::new();
    p.malloc(X, N);
    p.malloc(X + N, N);
    place.make(&mut p);
    fill(&mut p, source, &[X, X + N]);
    let rows = p.kernel("rows", &[reads(0, Shape::Exact(0, 16)), writes(0, place.rows())]);
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
    for place in PLACES {
        let (mut p, rows) = program(place, PAGEABLE);
        p.launch(A, rows, &[TABLE]);
        p.go(B, X + N, &[reads(0, Shape::Exact(60, 100))]);
        let f = p.finds("read-after-write certain");
        assert_eq!((f.from, f.to), (60, 64));
        assert_eq!(p.outcome().coverage.launches_indirect, 0);
    }
}

#[test]
fn other_bytes_of_the_row_and_ordered_reads_are_silent() {
    for place in PLACES {
        let (mut p, rows) = program(place, PAGEABLE);
        p.launch(A, rows, &[TABLE]);
        p.go(B, X + N, &[reads(0, Shape::Exact(64, 100))]);
        p.order(A, B);
        p.go(B, X + N, &[reads(0, Shape::Exact(0, 100))]);
        p.silent();
    }
}

#[test]
fn a_table_that_may_have_changed_is_not_followed() {
    for place in PLACES {
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
            let (mut p, rows) = program(place, PAGEABLE);
            change(&mut p);
            p.launch(A, rows, &[TABLE]);
            p.go(B, X + N, &[reads(0, Shape::Exact(0, 100))]);
            assert!(p.findings().is_empty(), "{place:?}: change {i}");
            assert!(p.outcome().coverage.launches_indirect > 0, "{place:?}: change {i}");
        }
    }
}

#[test]
fn a_table_is_followed_as_it_was_filled_last() {
    for place in PLACES {
        let (mut p, rows) = program(place, PAGEABLE);
        p.malloc(X + 4 * N, N);
        fill(&mut p, PAGEABLE, &[X, X + 4 * N]);
        p.launch(A, rows, &[TABLE]);
        p.go(B, X + N, &[reads(0, Shape::Exact(0, 100))]);
        p.silent();
        p.go(B, X + 4 * N, &[reads(0, Shape::Exact(0, 100))]);
        p.finds("read-after-write certain");
    }
}

#[test]
fn only_pageable_sources_and_whole_tables_count() {
    for place in PLACES {
        // Pinned memory may be overwritten before the copy gets there.
        let mut p = Program::new();
        p.malloc(X, N);
        place.make(&mut p);
        p.alloc(PINNED, N, MemoryKind::PinnedHost);
        fill(&mut p, PINNED, &[X, X + 64]);
        let rows = p.kernel("rows", &[writes(0, place.rows())]);
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
        place.make(&mut p);
        contents(&mut p, &[X, X]);
        let rows = p.kernel("rows", &[writes(0, place.rows())]);
        p.launch(A, rows, &[TABLE]);
        p.go(B, X, &[reads(0, Shape::Exact(0, 100))]);
        p.silent();
    }
}

#[test]
fn a_launch_that_changes_its_own_table_is_not_followed() {
    for place in PLACES {
        let (mut p, _) = program(place, PAGEABLE);
        let own = p.kernel("own", &[writes(0, Shape::Exact(0, 8)), writes(0, place.rows())]);
        p.launch(A, own, &[TABLE]);
        p.go(B, X + N, &[reads(0, Shape::Exact(0, 100))]);
        p.silent();
    }
}
