//! What an AArch64 instruction reads or writes in memory, by the encodings of Arm's architecture
//! reference manual (C4, "Loads and Stores").

/// An instruction's access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LoadStore {
    /// Bytes touched.
    pub bytes: u64,
    /// Stores, also if it loads before.
    pub writes: bool,
    /// Loads and stores as one step, or is half of a pair that does.
    pub atomic: bool,
}

/// `None`: no load and no store, or one that is not known here.
pub(crate) fn decode(code: u32) -> Option<LoadStore> {
    let field = |low: u32, width: u32| code >> low & ((1 << width) - 1);
    let (size, vector, load) = (field(30, 2), field(26, 1) == 1, field(22, 1) == 1);
    let plain = |bytes: u64, writes| Some(LoadStore { bytes, writes, atomic: false });
    let atomic = |bytes: u64, writes| Some(LoadStore { bytes, writes, atomic: true });
    if code & 0xffff_ffe0 == 0xd50b_7420 {
        // `dc zva`: clears a block, 64 bytes on every processor that runs CUDA.
        return plain(64, true);
    }
    if field(27, 1) == 0 || field(25, 1) == 1 {
        return None;
    }
    match (field(28, 2), field(24, 6)) {
        // Exclusive, ordered, compare and swap.
        (_, 0b00_1000) => match (field(23, 1), field(21, 1)) {
            (1, 0) => plain(1 << size, !load),
            (1, _) => atomic(1 << size, true),
            (_, 0) => atomic(1 << size, !load),
            _ if size >= 2 => atomic(2 << size, !load),
            _ => atomic(8 << size, true),
        },
        // Structures of vectors.
        (_, 0b00_1100) => {
            let registers = match field(12, 4) {
                0b0000 | 0b0010 => 4,
                0b0100 | 0b0110 => 3,
                0b0111 => 1,
                0b1000 | 0b1010 => 2,
                _ => return None,
            };
            plain(registers * (8 << field(30, 1)), !load)
        }
        // One lane of each vector.
        (_, 0b00_1101) => {
            let lanes = u64::from(field(13, 1) << 1 | field(21, 1)) + 1;
            let scale = match field(14, 2) {
                0 => 0,
                1 => 1,
                2 => 2 + field(10, 1),
                _ => field(10, 2),
            };
            plain(lanes << scale, !load)
        }
        _ => match field(27, 3) {
            0b011 if field(24, 1) == 0 => match (vector, size) {
                (false, 3) => None,
                (false, 1) => plain(8, false),
                (false, _) => plain(4, false),
                (true, _) => plain(4 << size, false),
            },
            0b101 => {
                let each = if vector { 4 << size } else { 4 << (size >> 1) };
                plain(2 * each, !load)
            }
            0b111 => {
                if field(24, 1) == 0 && field(21, 1) == 1 && field(10, 2) == 0 {
                    // `ldapr` is a load alone.
                    let acquires = field(12, 4) == 0b1100;
                    return if acquires { plain(1 << size, false) } else { atomic(1 << size, true) };
                }
                let (wide, low) = (field(23, 1) == 1, load);
                match (vector, wide, low) {
                    (true, true, _) if size == 0 => plain(16, !low),
                    (true, ..) => plain(1 << size, !low),
                    // `prfm` never faults.
                    (false, true, false) if size == 3 => None,
                    (false, wide, low) => plain(1 << size, !wide && !low),
                }
            }
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_as_an_assembler_writes_them() {
        let plain = |bytes, writes| Some(LoadStore { bytes, writes, atomic: false });
        let atomic = |bytes, writes| Some(LoadStore { bytes, writes, atomic: true });
        for (code, text, access) in [
            (0xb940_0020, "ldr w0, [x1]", plain(4, false)),
            (0xf900_0020, "str x0, [x1]", plain(8, true)),
            (0x3940_0020, "ldrb w0, [x1]", plain(1, false)),
            (0x7822_6820, "strh w0, [x1, x2]", plain(2, true)),
            (0xb980_0020, "ldrsw x0, [x1]", plain(4, false)),
            (0x3dc0_0020, "ldr q0, [x1]", plain(16, false)),
            (0x3d80_0020, "str q0, [x1]", plain(16, true)),
            (0xa940_0440, "ldp x0, x1, [x2]", plain(16, false)),
            (0xad00_0440, "stp q0, q1, [x2]", plain(32, true)),
            (0xc85f_7c20, "ldxr x0, [x1]", atomic(8, false)),
            (0xc802_7c20, "stxr w2, x0, [x1]", atomic(8, true)),
            (0xc8df_fc20, "ldar x0, [x1]", plain(8, false)),
            (0x889f_fc20, "stlr w0, [x1]", plain(4, true)),
            (0xc8e0_fc41, "casal x0, x1, [x2]", atomic(8, true)),
            (0xb820_0041, "ldadd w0, w1, [x2]", atomic(4, true)),
            (0x4c40_7020, "ld1 {v0.16b}, [x1]", plain(16, false)),
            (0x0d40_8020, "ld1 {v0.s}[0], [x1]", plain(4, false)),
            (0x5800_0040, "ldr x0, #8", plain(8, false)),
            (0xd50b_7420, "dc zva, x0", plain(64, true)),
            (0xf980_0020, "prfm pldl1keep, [x1]", None),
            (0x9100_0420, "add x0, x1, #1", None),
            (0xd65f_03c0, "ret", None),
        ] {
            assert_eq!(decode(code), access, "{text}");
        }
    }
}
