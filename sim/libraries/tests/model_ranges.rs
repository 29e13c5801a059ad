//! The bytes that the analysis predicts for a model are the bytes of its blocks.

use std::collections::BTreeSet;

use device_code::arch::Arch;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};
use streamsan_sim_libraries::model::block::{Block, Dim, ONE, Part};
use streamsan_sim_libraries::model::text;

const AT: u64 = 0x7000_0000_0000;

fn dim(count: u64, stride: i64) -> Dim {
    Dim { count, stride }
}

type Bytes = BTreeSet<u64>;

/// The bytes of a block, one by one.
fn truth(block: &Block) -> Bytes {
    let mut out = Bytes::new();
    let [rows, columns, batch] = block.dims;
    for b in 0..batch.count as i64 {
        for j in 0..columns.count as i64 {
            for i in 0..rows.count as i64 {
                let is_in = match block.shape.part {
                    Part::Full => true,
                    Part::Lower => i >= j + i64::from(block.skip),
                    Part::Upper => j >= i + i64::from(block.skip),
                };
                let at = block.base as i64 + i * rows.stride + j * columns.stride + b * batch.stride;
                if is_in {
                    out.extend((at as u64)..(at as u64 + u64::from(block.shape.bytes)));
                }
            }
        }
    }
    out
}

/// What is predicted to be read or written, and whether all of it is exact.
fn predicted(blocks: &[Block], kind: AccessKind) -> (Bytes, bool) {
    let shapes: Vec<_> = blocks.iter().map(|block| block.shape).collect();
    let text = text::text("model", &shapes, 8);
    let image = CodeImage::load(text.as_bytes(), Arch::new(80)).expect("PTX");
    let params: Vec<u8> = [0; 8].into_iter().chain(blocks.iter().flat_map(Block::param)).collect();
    let most = |axis: usize| blocks.iter().map(|block| block.dims[axis].count).max().unwrap_or(1) as u32;
    let grid = [most(0).div_ceil(text::THREADS).max(1), most(1).max(1), most(2).max(1)];
    let mut accesses = Vec::new();
    image
        .summary("model")
        .expect("a summary")
        .evaluate(&LaunchArgs::new(grid, [text::THREADS, 1, 1], &params), &mut accesses);
    let (mut bytes, mut all_exact) = (Bytes::new(), true);
    for access in accesses.iter().filter(|access| access.kind == kind) {
        let Base::Word { value, .. } = access.base else { panic!("{access:?}") };
        let Extent::Bounded { lo, ref dims, width, exact, .. } = access.extent else { panic!("{access:?}") };
        all_exact &= exact;
        let mut starts = vec![value.wrapping_add_signed(lo)];
        for d in dims {
            starts =
                (0..d.count).flat_map(|k| starts.iter().map(move |s| s + k * d.stride).collect::<Vec<_>>()).collect();
        }
        bytes.extend(starts.iter().flat_map(|s| *s..*s + u64::from(width)));
    }
    (bytes, all_exact)
}

#[test]
fn strided_blocks_are_exact() {
    for bytes in [1, 2, 4, 8, 16_u8] {
        let e = i64::from(bytes);
        for dims in [
            [dim(7, e), dim(5, 9 * e), ONE],
            [dim(300, e), dim(5, 300 * e), ONE],
            [dim(70, e), dim(5, 90 * e), dim(3, 600 * e)],
            [dim(5, 90 * e), dim(70, e), dim(3, 500 * e)],
            [dim(40, 3 * e), ONE, ONE],
            [dim(40, -2 * e), ONE, ONE],
            [dim(1, e), dim(1, e), dim(1, 0)],
            [dim(16, e), dim(16, 16 * e), dim(4, 256 * e)],
            [dim(16, e), dim(16, 16 * e), dim(4, 0)],
        ] {
            let read = Block::read(AT, bytes, dims);
            let write = Block::write(AT + (1 << 20), bytes, [dims[1], dims[0], dims[2]], false);
            let blocks = [read.normal(), write.normal()];
            assert_eq!(predicted(&blocks, AccessKind::Read), (truth(&read), true), "{read:?}");
            assert_eq!(predicted(&blocks, AccessKind::Write), (truth(&write), true), "{write:?}");
            let update = Block { reads: true, ..write }.normal();
            assert_eq!(predicted(&[update], AccessKind::Read), (truth(&write), true), "{write:?}");
        }
    }
}

#[test]
fn triangles_are_bounds_that_hold_them() {
    for (part, diagonal) in [(Part::Lower, true), (Part::Upper, false)] {
        let block = Block::read(AT, 4, [dim(20, 4), dim(20, 100), ONE]).part(part, diagonal);
        let (bytes, exact) = predicted(&[block.normal()], AccessKind::Read);
        assert!(bytes.is_superset(&truth(&block)));
        assert!(!exact || bytes == truth(&block));
    }
}

#[test]
fn scratch_memory_is_claimed_by_nobody() {
    let block = Block::scratch(AT, 4096);
    let (bytes, exact) = predicted(&[block.normal()], AccessKind::Write);
    assert_eq!((bytes, exact), (truth(&block), false));
}

#[test]
fn what_is_read_in_part_is_a_bound() {
    let block = Block::read(AT, 2, [dim(20, 2), dim(20, 100), ONE]).in_part();
    let (bytes, exact) = predicted(&[block.normal()], AccessKind::Read);
    assert_eq!((bytes, exact), (truth(&block), false));
}

#[test]
fn nothing_is_touched_through_null() {
    let block = Block::read(0, 4, [dim(20, 4), dim(20, 100), ONE]);
    assert!(predicted(&[block.normal()], AccessKind::Read).0.is_empty());
}
