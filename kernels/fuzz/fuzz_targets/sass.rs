//! Any words as instructions of every generation: decoding never fails, and what is decoded keeps
//! its own promises.
//!
//! `cargo +nightly fuzz run sass -- -max_total_time=600`; seeds: code sections of cubins.

#![no_main]

use device_code::arch::Generation::{self, *};
use device_code::sass::{File, Flow, Opcode, decode};
use libfuzzer_sys::fuzz_target;

const ALL: [Generation; 6] = [Volta, Turing, Ampere, Hopper, Blackwell, BlackwellConsumer];

fuzz_target!(|bytes: &[u8]| {
    for (n, chunk) in bytes.chunks_exact(16).enumerate() {
        let word = u128::from_le_bytes(chunk.try_into().expect("16 bytes"));
        for g in ALL {
            let i = decode(g, word, n as u32 * 16);
            assert_eq!(i.opcode, word as u16 & 0xfff);
            for run in i.defs() {
                assert!(run.numbers().all(|r| r != 255 && run.contains(run.file, r)));
                assert!(i.may_write(run.file, run.first));
            }
            let (p, up) = i.pred_writes();
            assert!(p & 0x80 == 0 && up & 0x80 == 0);
            assert!(i.mem.iter().all(|m| m.scale >= 1 && m.bytes <= 32));
            if let Flow::Branch(_) = i.flow() {
                assert!(i.target.is_some());
            }
            if i.op == Opcode::Unknown {
                assert!(i.unknown_memory() && p == 0x7f && up == 0x7f);
                assert!(word >> 16 & 0xff == 0xff || i.may_write(File::R, (word >> 16) as u8));
            }
            assert!(!i.to_string().is_empty());
        }
    }
});
