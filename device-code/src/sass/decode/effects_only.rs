//! Decodes instructions of which only the effects matter: barriers, and what the decoder does not
//! know in full of floating point and tensor cores.
//!
//! Owns which registers and predicates they write, rounded up where the encoding was not measured.
//! An operation may be listed here only if it touches no global memory through an address.

use super::{floating, forms};
use crate::arch::Generation::{Ampere, Blackwell, BlackwellConsumer, Hopper, Turing};
use crate::sass::decode::instruction_word::{Word, run};
use crate::sass::inst::MachineInst;
use crate::sass::opcode::{Opcode, OtherKind};
use crate::sass::operand::{ConstRef, File};

/// Every register from the destination field up: for results whose size is not decoded.
const ALL: u8 = u8::MAX;

/// The constant operand of an arithmetic instruction: in these forms all of them have it in slot X.
fn constant(w: &Word) -> Option<ConstRef> {
    matches!(w.form(), 3 | 5).then(|| w.constant())
}

pub(super) fn decode(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    use OtherKind::{Control, Float, Integer, Kill, Tensor};
    if let Some(op) = floating::decode(w, i) {
        return Some(Opcode::Arithmetic(op));
    }
    let at_least = |g| w.arch >= g;
    let any = forms(w, 0b1111_1110);
    let one = 1;
    let (kind, file, regs) = match w.base() {
        // Floating point, one register: FSEL FMNMX FSET FMUL FADD FSWZADD FFMA HADD2 HFMA2 HMUL2
        // HSET2.
        0x008 | 0x009 | 0x00a | 0x020 | 0x021 | 0x022 | 0x023 | 0x030 | 0x031 | 0x032 | 0x033 if any => {
            (Float, File::R, one)
        }
        // HFMA2.MMA.
        0x035 if any && at_least(Ampere) && w.arch < Blackwell => (Float, File::R, one),
        // HMNMX2, F2FP, F2IP, I2FP, FMNMX3.
        0x040 | 0x03e | 0x043 | 0x045 | 0x076 if any => (Float, File::R, one),
        // DMUL DADD DFMA, and pairs of floats: FFMA2 FMUL2 FADD2.
        0x028 | 0x029 | 0x02b if any => (Float, File::R, 2),
        0x049..=0x04b if any && w.arch == Blackwell => (Float, File::R, 2),
        // HSETP2 FCHK: predicates only.
        0x034 if any => {
            i.pdst = [w.p(81, false), w.p(84, false)];
            i.constant = constant(w);
            return Some(Opcode::Other(Float));
        }
        0x102 if any => {
            i.pdst[0] = w.p(81, false);
            return Some(Opcode::Other(Float));
        }
        // F2F FRND: 64-bit forms have their own numbers; the result's size is 2^(75..77) bytes.
        0x104 | 0x107 | 0x110 | 0x113 if any => (Float, File::R, if w.b(75, 77) == 3 { 2 } else { 1 }),
        // Integer dot products, absolute differences, conversions to packed integers.
        0x014 | 0x015 | 0x026 | 0x038 | 0x039 if any => (Integer, File::R, one),
        // Uniform floating point of sm_120.
        0x051 | 0x054..=0x056 | 0x05a..=0x05e if any && at_least(BlackwellConsumer) => (Float, File::UR, one),
        0x0ba if at_least(BlackwellConsumer) => (Float, File::UR, one),
        0x053 if any && at_least(BlackwellConsumer) => {
            i.pdst = [w.p(81, true), w.p(84, true)];
            return Some(Opcode::Other(Float));
        }
        0x0cc if w.opcode == 0x2cc && at_least(Blackwell) => (Integer, File::UR, one),
        // Tensor cores: HMMA IMMA BMMA DMMA QMMA.
        0x036 if w.arch <= Turing && any => (Tensor, File::R, 8),
        0x037 | 0x03c | 0x03d if any => (Tensor, File::R, 8),
        0x03f | 0x07a | 0x07b | 0x07c if any => (Tensor, File::R, 8),
        // Warp group MMA (HGMMA IGMMA QGMMA BGMMA), tensor memory loads. A row of 64 by N numbers
        // of 4 bytes is in N/2 registers of each of 128 threads; of HGMMA, N/8 - 1 is in bits 53 to
        // 57 (`nvdisasm`, N from 8 to 256).
        0x1f0 if w.arch == Hopper => (Tensor, File::R, (4 * (w.b(53, 58) + 1)) as u8),
        0x1f0..=0x1f4 if at_least(Hopper) => (Tensor, File::R, ALL),
        0x1ee if w.opcode == 0x9ee && at_least(Blackwell) => (Tensor, File::R, ALL),
        0x1ed if w.opcode == 0x9ed && at_least(Blackwell) => return Some(Opcode::Other(Tensor)),
        // MOVM transposes tiles between lanes; RPCMOV reads the return address.
        0x03a if w.opcode == 0x23a => (Tensor, File::R, 2),
        0x153 if w.opcode == 0x353 => (Control, File::R, one),
        // Register pools and tensor memory allocation: USETMAXREG, UTCATOMSWS.
        0x1c8 if w.opcode == 0x9c8 && at_least(Hopper) => {
            i.pdst[0] = w.p(81, true);
            return Some(Opcode::Other(Control));
        }
        0x1e3 if matches!(w.opcode, 0x5e3 | 0x9e3) && at_least(Blackwell) => {
            if w.opcode == 0x5e3 {
                i.pdst[0] = w.p(81, true);
            }
            (Tensor, File::UR, one)
        }
        // Tensor core operations between shared and tensor memory: UTCBAR, UTCHMMA and its kin,
        // UTCCP; UVIRTCOUNT.
        0x1e9 | 0x1ea | 0x1e7 if (w.base() == 0x1ea || matches!(w.opcode, 0x3e9 | 0x9e7)) && at_least(Blackwell) => {
            return Some(Opcode::Other(Tensor));
        }
        0x04c if w.opcode == 0x84c && w.arch == Blackwell => return Some(Opcode::Other(Control)),
        // UGETNEXTWORKID writes the next block's number into shared memory.
        0x1ca if w.opcode == 0x3ca && at_least(Blackwell) => return Some(Opcode::Other(Control)),
        // B2R.
        0x11c if w.opcode == 0x31c => {
            i.pdst[0] = w.p(81, false);
            (Control, File::R, one)
        }
        // The number is at 54..58 where it is no register, what it does at 77..79: wait, arrive, or
        // reduce.
        0x11d if matches!(w.opcode, 0x31d | 0x51d | 0x91d | 0xb1d) => {
            let number = matches!(w.opcode, 0x91d | 0xb1d).then(|| w.b(54, 58) as u8);
            return Some(Opcode::Other(OtherKind::Barrier { number, arrives: w.b(77, 79) == 1 }));
        }
        // MEMBAR: scope 0 is CTA, 2 GPU, 3 SYS (sm_75 to sm_120, from `nvdisasm`).
        0x192 if w.opcode == 0x992 => return Some(Opcode::Other(OtherKind::Fence { device: w.b(76, 78) >= 2 })),
        // Nothing written: PMTRIG NOP DEPBAR NANOSLEEP BPT ERRBAR LDGDEPBAR
        // ENDCOLLECTIVE CGAERRBAR FENCE WARPGROUP UCGABAR UTMACMDFLUSH USETSHMSZ.
        _ if matches!(
            w.opcode,
            0x801
                | 0x918
                | 0x91a
                | 0x35d
                | 0xb5d
                | 0x352
                | 0x95d
                | 0x95c
                | 0x9ab
                | 0x9af
                | 0x91b
                | 0x5ab
                | 0x3c6
                | 0x9c5
                | 0x9c7
                | 0xdc7
                | 0x9b7
                | 0x9c9
        ) =>
        {
            return Some(Opcode::Other(Control));
        }
        0x15b if w.opcode == 0x95b => return Some(Opcode::Other(Kill)),
        _ => return None,
    };
    if matches!(kind, Float | Integer) {
        i.constant = constant(w);
    }
    i.dst = Some(match file {
        File::R => run(File::R, w.r(16).0, regs),
        File::UR => run(File::UR, w.ur(16).0, regs),
    });
    Some(Opcode::Other(kind))
}
