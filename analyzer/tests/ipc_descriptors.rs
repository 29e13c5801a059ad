//! Races in memory that goes from process to process as a descriptor (physical memory), or whose
//! owner is not checked, each with a twin that must stay silent. Order between processes is
//! [`crate::ipc`]'s.

use crate::ipc::{N, RAW, Run, Y, whole};
use crate::support::*;
use trace::*;

/// A key of memory that goes from process to process as a descriptor.
fn physical(number: u8) -> Vec<u8> {
    [PHYSICAL_KEY, &[number; 16]].concat()
}

/// Physical memory appears in a process.
fn appears(run: &mut Run, process: usize, ptr: u64, kind: MemoryKind, key: &[u8]) {
    run.at(process).alloc(ptr, N, kind);
    run.at(process).does("cuMemMap", Op::SharedMemory { ptr, key });
}

#[test]
fn physical_memory_is_one_whoever_maps_it_first() {
    for first in [0, 1] {
        for mended in [false, true] {
            let mut run = Run::new(2, true);
            for process in [first, 1 - first] {
                let (ptr, kind) = [(X, MemoryKind::Mapped), (Y, MemoryKind::Imported)][process];
                appears(&mut run, process, ptr, kind, &physical(1));
            }
            run.at(0).go(A, X, &[writes(0, whole())]);
            if mended {
                run.at(0).sync(A);
            }
            run.at(1).go(B, Y, &[reads(0, whole())]);
            run.judge(!mended, RAW);
        }
    }
}

#[test]
fn physical_memory_with_another_key_is_other_memory() {
    let mut run = Run::new(2, true);
    appears(&mut run, 0, X, MemoryKind::Mapped, &physical(1));
    appears(&mut run, 1, Y, MemoryKind::Imported, &physical(2));
    run.at(0).go(A, X, &[writes(0, whole())]);
    run.at(1).go(B, Y, &[reads(0, whole())]);
    run.silent();
}

/// CUDA driver API, virtual memory management: memory lives until its last handle and its last
/// mapping are gone, in whichever process.
#[test]
fn physical_memory_outlives_the_mapping_of_its_maker() {
    for mended in [false, true] {
        let mut run = Run::new(3, true);
        appears(&mut run, 0, X, MemoryKind::Mapped, &physical(1));
        for process in [1, 2] {
            appears(&mut run, process, Y, MemoryKind::Imported, &physical(1));
        }
        run.at(1).go(B, Y, &[writes(0, whole())]);
        if mended {
            run.at(1).sync(B);
        }
        // That is no access, and ends nothing for the others.
        run.at(0).free(X, FreeKind::Unmap, StreamId::NONE);
        run.at(2).go(B, Y, &[reads(0, whole())]);
        run.judge(!mended, RAW);
    }
}

#[test]
fn two_that_opened_memory_of_an_unchecked_process_share_it() {
    for mended in [false, true] {
        let mut run = Run::new(2, true);
        for process in [0, 1] {
            appears(&mut run, process, Y, MemoryKind::Imported, &physical(1));
        }
        run.at(0).go(A, Y, &[writes(0, whole())]);
        if mended {
            run.at(0).sync(A);
        }
        run.at(1).go(B, Y, &[reads(0, whole())]);
        run.judge(!mended, RAW);
    }
}
