//! The operations of SASS: one variant for all operand forms and both datapaths (`IADD3` and
//! `UIADD3` are [`Opcode::Iadd3`], distinguished by `MachineInst::uniform`), with the modifiers
//! that change the result.
//!
//! Owns the list. Leaves out what no analysis needs: scheduling, cache hints, and names that mean
//! the same (`IMAD.MOV`, `IMAD.SHL`). Memory order and scope belong to the operand in memory.

pub use super::arithmetic::*;
pub use super::modifier::*;
use super::operand::AddressSpace;

/// Operation and modifiers. The documentation of each variant names the places of its operands:
/// `dst` and `pdst` are written, `src` and `psrc` read. `^` is addition with carry predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// dst = src\[0\]. 64 bits when `wide`. MOV, UMOV, and the idiom `HFMA2 R, -RZ, RZ, hi, lo` (an
    /// immediate).
    Mov {
        /// 64-bit form of sm_120.
        wide: bool,
    },
    /// dst = psrc\[0\] ? src\[0\] : src\[1\].
    Sel {
        /// 64-bit form of sm_120.
        wide: bool,
    },
    /// dst = src\[0\] + src\[1\] + src\[2\]; carries out in pdst\[0\], pdst\[1\]. With `x` the
    /// carries psrc\[0\] and psrc\[1\] are added, and negated sources are complemented (`inv`)
    /// instead.
    Iadd3 {
        /// Extended: with carry in.
        x: bool,
        /// 64-bit form (UIADD3.64).
        wide: bool,
    },
    /// dst = src\[0\] + src\[1\] (sm_120); carry out in pdst\[0\], carry in psrc\[0\] with `x`.
    Iadd {
        /// Extended: with carry in.
        x: bool,
        /// 64-bit form.
        wide: bool,
    },
    /// dst = src\[0\] + src\[1\], no carries (sm_90 on).
    Viadd {
        /// Lanes.
        lanes: Lanes,
    },
    /// dst = (src\[0\] << shift) + src\[1\]. With `hi`: the high word of ({src\[2\]:src\[0\]} <<
    /// shift) + src\[1\] as if src\[1\] were a high word too; with `sx32` (and `hi`) src\[0\] is
    /// sign-extended and there is no src\[2\]. Carry out pdst\[0\]; with `x` carry in psrc\[0\].
    Lea {
        /// High word.
        hi: bool,
        /// Extended: with carry in.
        x: bool,
        /// src\[0\] is sign-extended to 64 bits.
        sx32: bool,
        /// 0 to 31.
        shift: u8,
    },
    /// dst = src\[0\] * src\[1\] + src\[2\]. See [`MulKind`] for widths. With `x` the carry
    /// psrc\[0\] is added; carry out of WIDE and HI in pdst\[0\].
    Imad {
        /// Which part of the product.
        kind: MulKind,
        /// Operands are signed.
        signed: bool,
        /// Extended: with carry in.
        x: bool,
    },
    /// dst = |src\[0\]|.
    Iabs,
    /// dst = src\[0\] with its bits reversed.
    Brev,
    /// dst = number of ones in src\[0\].
    Popc,
    /// dst = position of the leading one (or, signed, of the leading bit that differs from the
    /// sign) of src\[0\], or -1.
    Flo {
        /// Signed search.
        signed: bool,
        /// The result is the shift amount (31 - position).
        sh: bool,
    },
    /// dst = psrc\[0\] ? min : max of src\[0\], src\[1\]. On sm_120 also pdst\[0\], pdst\[1\],
    /// psrc\[1\].
    Imnmx {
        /// Type compared.
        ty: IntTy,
    },
    /// dst = psrc\[0\] ? min : max of src\[0\], src\[1\] (sm_90 on).
    Vimnmx {
        /// Lanes and sign.
        ty: VecTy,
        /// Clamp at zero.
        relu: bool,
    },
    /// The same of three sources.
    Vimnmx3 {
        /// Lanes and sign.
        ty: VecTy,
        /// Clamp at zero.
        relu: bool,
    },
    /// dst = psrc\[0\] ? min : max of (src\[0\] + src\[1\]) and src\[2\].
    Viaddmnmx {
        /// Lanes and sign.
        ty: VecTy,
        /// Clamp at zero.
        relu: bool,
    },
    /// dst = lut(src\[0\], src\[1\], src\[2\]) bit by bit, where the table's index bits are f0, cc,
    /// aa in that order. pdst\[0\] = (dst != 0) combined with psrc\[0\].
    Lop3 {
        /// The truth table: result for inputs a=0xf0, b=0xcc, c=0xaa.
        lut: u8,
        /// Predicate combined by AND instead of OR.
        pand: bool,
    },
    /// Funnel shift of {src\[2\]:src\[0\]} by src\[1\]. Right: the low word of the shifted value
    /// unless `hi`. `SHF.R.x32.HI` with src\[0\] = RZ is a plain right shift of src\[2\];
    /// `SHF.L.U32` a plain left shift of src\[0\].
    Shf {
        /// Right, else left.
        right: bool,
        /// Shift count modulo 32 (else clamped).
        wrap: bool,
        /// Type of the value.
        ty: IntTy,
        /// Take the high word.
        hi: bool,
    },
    /// dst = bytes of {src\[2\]:src\[0\]} picked by the selector src\[1\].
    Prmt {
        /// 0 is the plain form; 1..=6 F4E, B4E, RC8, ECL, ECR, RC16.
        mode: u8,
    },
    /// dst = low src\[1\] bits of src\[0\], sign- or zero-extended.
    Sgxt {
        /// Sign-extend.
        signed: bool,
        /// Count modulo 32.
        wrap: bool,
    },
    /// dst = a mask of src\[1\] ones from bit src\[0\] up.
    Bmsk {
        /// Counts modulo 32.
        wrap: bool,
    },
    /// pdst\[0\] = (src\[0\] cmp src\[1\]) bop psrc\[0\]; pdst\[1\] = !(…) bop psrc\[0\]. With `ex`
    /// these are the high words and psrc\[1\] the result of the low words' compare.
    Isetp {
        /// The comparison.
        cmp: Comparison,
        /// How psrc\[0\] takes part.
        bop: BoolOp,
        /// Type compared (64-bit only on sm_120).
        ty: IntTy,
        /// High half of a 64-bit compare.
        ex: bool,
    },
    /// The same for floating point: `cmp` has a bit for each way that numbers may compare (1: less,
    /// 2: equal, 4: greater, 8: not ordered). Of double precision 0 and 15 are other comparisons,
    /// for minima and maxima.
    Fsetp {
        /// Which comparisons hold.
        cmp: u8,
        /// How psrc\[0\] takes part.
        bop: BoolOp,
        /// Double precision.
        wide: bool,
        /// Denormal numbers count as zero.
        ftz: bool,
    },
    /// pdst\[0\] = lut0(psrc), pdst\[1\] = lut1(psrc); tables as in LOP3.
    Plop3 {
        /// Table of pdst\[0\].
        lut0: u8,
        /// Table of pdst\[1\].
        lut1: u8,
    },
    /// dst = predicates as bits, masked by src\[1\], put into byte `byte` of src\[0\].
    P2r {
        /// 0 to 3.
        byte: u8,
    },
    /// Predicates = bits of byte `byte` of src\[0\], for those set in the mask src\[1\].
    R2p {
        /// 0 to 3.
        byte: u8,
    },
    /// dst = ballot of psrc\[0\]; pdst\[0\] = all, any, or all equal.
    Vote {
        /// Kind.
        mode: VoteMode,
    },
    /// dst = src\[0\] of another lane; src\[1\] lane, src\[2\] bound; pdst\[0\] = lane was valid.
    Shfl {
        /// How the lane is computed.
        mode: ShflMode,
    },
    /// dst = mask of lanes with the same src\[0\].
    Match {
        /// Any (else all; pdst\[0\]).
        any: bool,
        /// 64-bit value.
        wide: bool,
    },
    /// UR dst = reduction of src\[0\] over the warp.
    Redux {
        /// Operation.
        op: ReduxOp,
        /// Signed.
        signed: bool,
    },
    /// pdst\[0\] = this lane is the elected one; UR dst = its number.
    Elect,
    /// UR dst = src\[0\] of one lane; pdst\[0\] = the lane has another value there.
    R2ur {
        /// pdst\[0\] is or'ed to what it was, and lanes that have it are not asked.
        or: bool,
    },
    /// dst = special register. S2R, S2UR; CS2R, CS2UR when `wide` (a 64-bit read).
    S2r {
        /// Which.
        sr: SpecialReg,
        /// Two registers are written (of SRZ: 64 zero bits).
        wide: bool,
    },
    /// dst pair = pc of the next instruction + target.
    Lepc,
    /// dst = (float) src\[0\]. Width of the result: `dst.count`.
    I2f {
        /// The source is signed.
        signed: bool,
        /// Rounding 0 nearest, 1 down, 2 up, 3 to zero.
        round: u8,
        /// Bytes of the integer: 1, 2, 4, 8.
        from: u8,
        /// Bytes of the float: 2, 4, 8.
        to: u8,
        /// Which byte or half of the register the integer is in.
        part: u8,
    },
    /// dst = (int) src\[0\].
    F2i {
        /// The result is signed.
        signed: bool,
        /// Rounding 0 nearest, 1 down (floor), 2 up (ceil), 3 to zero (trunc).
        round: u8,
        /// Denormals flushed.
        ftz: bool,
        /// Bytes of the float: 2, 4, 8.
        from: u8,
        /// Bytes of the integer: 1, 2, 4, 8.
        to: u8,
        /// Which half of the register a number of half precision is in.
        part: u8,
        /// NaN becomes zero (else the integer with only its top bit set).
        nan_zero: bool,
    },
    /// dst = approximate function of src\[0\].
    Mufu {
        /// 0 COS, 1 SIN, 2 EX2, 3 LG2, 4 RCP, 5 RSQ, 6 RCP64H, 7 RSQ64H, 8 SQRT, 9 TANH.
        func: u8,
        /// Half precision.
        half: bool,
        /// Which half of the register a number of half precision is in.
        part: u8,
    },

    /// dst = constant src\[0\] (LDC, ULDC, LDCU), extended by its type.
    LoadConst {
        /// Type loaded.
        ty: MemTy,
        /// 0 plain; 1..=3 IL, IS, ISL: the index is split (its high half selects the bank).
        mode: u8,
    },
    /// dst = memory mem\[0\]. LDG, LD, LDS, LDL. psrc\[0\] false suppresses the load; pdst\[0\]
    /// says it was done.
    Load {
        /// Type loaded.
        ty: MemTy,
    },
    /// Memory mem\[0\] = src\[0\] (and src\[1\] for STG.256). STG, ST, STS, STL, STAS.
    Store {
        /// Type stored.
        ty: MemTy,
    },
    /// dst = old value; mem\[0\] updated with src\[0\]. ATOM, ATOMG, ATOMS. pdst\[0\].
    Atom {
        /// Operation.
        op: AtomOp,
        /// Type.
        ty: AtomTy,
    },
    /// mem\[0\] compared with src\[0\] and replaced by src\[1\]. `cast`: a compare-and-swap step of
    /// a retry loop.
    AtomCas {
        /// Type.
        ty: AtomTy,
        /// CAST variants.
        cast: CasKind,
    },
    /// mem\[0\] updated with src\[0\], nothing returned. RED, REDG, REDAS.
    Red {
        /// Operation.
        op: AtomOp,
        /// Type.
        ty: AtomTy,
    },
    /// dst = reduction over the members of a multicast object at mem\[0\] (LDGMC).
    LoadMulticast,
    /// Matrix load from or store to shared memory: `regs` registers of 8x8 tiles. LDSM (dst), STSM
    /// (src\[0\]).
    Matrix {
        /// 1, 2 or 4.
        regs: u8,
        /// STSM.
        store: bool,
    },
    /// Asynchronous copy of global mem\[1\] to shared mem\[0\] (LDGSTS). psrc\[0\] false: nothing
    /// is read.
    CopyAsync {
        /// Bytes: 4, 8 or 16.
        bytes: u8,
        /// Where psrc\[0\] is false, zeros are written.
        zfill: bool,
    },
    /// Bulk copy of src\[0\] units of 16 bytes from mem\[1\] to mem\[0\] (UBLKCP) or bulk
    /// reduction into it (UBLKRED, atomic).
    Bulk,
    /// Bulk prefetch into L2 of src\[0\] units of 16 bytes at mem\[0\] (UBLKPF).
    BulkPrefetch,
    /// Tensor copy or reduction: mem\[0\] the destination, mem\[1\] the source; the global side has
    /// `AddressSpace::TensorMap`. UTMALDG, UTMASTG, UTMAREDG, UTMAPF, UTMACCTL.
    TensorCopy {
        /// Dimensions 1 to 5 (0 where the encoding has none).
        dims: u8,
        /// A copy by the map of an image (IM2COL).
        image: bool,
    },
    /// Memory barrier objects in shared memory: mem\[0\]. SYNCS, ARRIVES.
    Mbarrier,
    /// Texture read by handle (TEX, TLD, TLD4, TXD); TXQ asks only for properties.
    Texture,
    /// Surface access by handle: read, write or reduction, as mem\[0\] says.
    Surface,
    /// Cache control at mem\[0\] (CCTL; prefetches included). No access.
    CacheCtl,
    /// pdst\[0\] = the generic address mem\[0\] lies in the tested space; no access.
    Qspc {
        /// The space asked about.
        space: AddressSpace,
    },

    /// Taken when the guard, psrc\[0\] and (BRA.U) psrc\[1\] hold; with a uniform source in
    /// src\[0\] its lane bits decide.
    Bra {
        /// Divergence mode.
        mode: BraMode,
    },
    /// Jump to register src\[0\] (pair or uniform pair) + `target` relative to the next instruction
    /// (BRX, BRXU).
    Brx,
    /// Jump to an absolute address.
    Jmp,
    /// Jump to absolute register src\[0\] + `target`.
    Jmx,
    /// Call. Computed when src\[0\] is present.
    Call {
        /// The target is an absolute address.
        abs: bool,
    },
    /// Return to the address in src\[0\].
    Ret {
        /// The register holds an absolute address (else it is relative to the section).
        abs: bool,
    },
    /// The thread ends when psrc\[0\] holds.
    Exit,
    /// Sets convergence barrier `barrier`; `target` is where threads meet again.
    Bssy {
        /// 0 to 15.
        barrier: u8,
    },
    /// Waits at a convergence barrier.
    Bsync {
        /// 0 to 15.
        barrier: u8,
    },
    /// Leaves a convergence barrier.
    Break {
        /// 0 to 15.
        barrier: u8,
    },
    /// Synchronises lanes; a collective one has a `target`: a helper that comes back here.
    Warpsync {
        /// The collective form.
        collective: bool,
        /// Lanes that are not members do not go on with them.
        exclusive: bool,
    },
    /// dst = convergence barrier (or the other way round: no dst).
    Bmov,
    /// Programmatic dependent launch: waits for the grids this one depends on
    /// (`griddepcontrol.wait`).
    AcqBulk,
    /// Programmatic dependent launch: lets dependents start (`griddepcontrol.launch_dependents`).
    PreExit,

    /// Arithmetic of the floating point, packed and tensor units.
    Arithmetic(Arithmetic),
    /// Known, but only its effects are decoded: `dst`, `pdst`. It touches no global memory by an
    /// address.
    Other(OtherKind),
    /// Not known. `dst`, `dst2`, [`MachineInst::pred_writes`](super::MachineInst::pred_writes) say
    /// what it could write at most; it may touch any memory.
    Unknown,
}
