//! Branches, moves between rows and predicates, special registers, and the ends of threads.

use sim_races::{FenceOrder, Proxies, Scope, SyncKind};

use crate::env::{RESERVED_SHARED_BYTES, reserved_middle};
use crate::exec::per_lane::each;
use crate::interface::{FaultKind, SMS};
use crate::observed_order::{OrderEvent, Reach};
use crate::operations::operands;
use crate::program::{Inst, Next};
use crate::warp::Warp;

/// `bra`
#[inline(never)]
pub(crate) fn branch(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    jump(w, operands::Branch::of(i).target(), mask)
}

/// To an instruction.
#[inline(always)]
pub(crate) fn jump(w: &mut Warp<'_>, target: u32, mask: u32) -> Next {
    if mask == w.active {
        w.pc = target;
        return Next::Jumped;
    }
    let stay = w.active & !mask;
    let group = w.here(w.pc + 1);
    w.send(stay, group);
    w.pc = target;
    Next::Repick
}

/// `brx.idx`: to an entry of a table.
#[inline(never)]
pub(crate) fn branch_table(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::BranchTable::of(i);
    let stay = w.active & !mask;
    let group = w.here(w.pc + 1);
    w.send(stay, group);
    let mut left = mask;
    while left != 0 {
        let lane = left.trailing_zeros();
        let index = w.get(i.index(), lane as usize) as u32;
        let mut same = 0;
        each(left, |l| same |= u32::from(w.get(i.index(), l) as u32 == index) << l);
        left &= !same;
        let Some(&target) = w.env.program.tables[i.table() as usize].get(index as usize) else {
            return w.fail(FaultKind::Trap, same);
        };
        let group = w.here(target);
        w.send(same, group);
    }
    Next::Repick
}

/// `exit`, and the end of a kernel.
#[inline(never)]
pub(crate) fn exit(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    w.exit(mask);
    w.pc += 1;
    Next::Repick
}

/// `trap`
#[inline(never)]
pub(crate) fn trap(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    w.fail(FaultKind::Trap, mask)
}

/// An instruction without effect here.
#[inline(never)]
pub(crate) fn nothing(_: &mut Warp<'_>, _: &Inst, _: u32) -> Next {
    Next::Step
}

/// `nanosleep`, `yield`: let others run.
#[inline(never)]
pub(crate) fn give_way(w: &mut Warp<'_>, _: &Inst, _: u32) -> Next {
    w.pc += 1;
    std::thread::yield_now();
    Next::Yield
}

/// `membar`, `fence`. The scope is for those who observe: see [`fence_scope`].
#[inline(never)]
pub(crate) fn fence(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    let scope = operands::Fence::of(i).scope();
    let kind = match scope & (PROXIES_GLOBAL | PROXIES_SHARED | MAPS_RELEASE | MAPS_ACQUIRE) {
        0 => SyncKind::Fence,
        _ => SyncKind::ProxyFence,
    };
    // That objects are initialised is known to nobody without it.
    w.tell_synchronises((scope & OF_INITS == 0).then_some((w.pc, kind)));
    if scope & (PROXIES_GLOBAL | PROXIES_SHARED | OF_INITS) != 0 {
        let proxies = Proxies { global: scope & PROXIES_GLOBAL != 0, shared: scope & PROXIES_SHARED != 0 };
        w.tell_lanes(mask, |events, lanes| {
            if proxies.global || proxies.shared {
                events.proxy_fence(lanes, proxies);
            }
            if scope & OF_INITS != 0 {
                events.init_fence(lanes);
            }
        });
    }
    // PTX ISA, "membar/fence": such a fence is part of a release or an acquire pattern, as others
    // are.
    if scope & MAPS_RELEASE != 0 {
        w.tell_lanes(mask, |events, lanes| {
            events.map_fence(lanes, false);
            events.fence(lanes, Scope::Device, FenceOrder::Both);
        });
    }
    if scope & MAPS_ACQUIRE != 0 {
        w.tell_lanes(mask, |events, lanes| {
            events.fence(lanes, Scope::Device, FenceOrder::Both);
            events.map_fence(lanes, true);
        });
    }
    if w.env.observing
        && let Some(&reach) = Scope::ALL.get((scope & 3) as usize)
    {
        let order = match scope & (SEQUENTIAL | ACQUIRES) {
            0 => FenceOrder::Both,
            ACQUIRES => FenceOrder::Acquire,
            _ => FenceOrder::Sequential,
        };
        w.tell_lanes(mask, |events, lanes| events.fence(lanes, reach, order));
        w.tell_order(OrderEvent::Fence(match reach {
            Scope::Device if scope & OF_SYSTEM != 0 => Reach::System,
            Scope::Device => Reach::Device,
            _ => Reach::Near,
        }));
    }
    Next::Step
}

/// CCTL.IVALL: the caches must not have what is older. It is the acquire half of what the assembler
/// makes of acquires and fences: whatever releases has a MEMBAR besides, in front of it (read in
/// ptxas 13.0's code of all orders, scopes and spaces for 7.5, 8.0, 9.0 and 10.0).
#[inline(never)]
pub(crate) fn invalidate_caches(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    w.tell_synchronises(Some((w.pc, SyncKind::Fence)));
    w.tell_lanes(mask, |events, lanes| events.fence(lanes, Scope::Device, FenceOrder::Acquire));
    w.tell_order(OrderEvent::Acquire);
    Next::Step
}

/// The scope as the instruction carries it, for sequential consistency (`sc`) or not. `system`: of
/// that of the device, whether it is the system's.
pub(crate) const fn fence_scope(scope: Scope, sc: bool, system: bool) -> u32 {
    scope as u32 | if sc { SEQUENTIAL } else { 0 } | if system { OF_SYSTEM } else { 0 }
}

const SEQUENTIAL: u32 = 4;
const OF_SYSTEM: u32 = 8;

/// The fence releases nothing (`fence.acquire`, of which the assembler makes CCTL.IVALL).
pub(crate) const ACQUIRES: u32 = 512;

/// The fence is between the generic and the asynchronous proxy, in global and in shared memory.
pub(crate) const PROXIES_GLOBAL: u32 = 16;
pub(crate) const PROXIES_SHARED: u32 = 32;

/// It releases to the proxy of tensor maps, or acquires for it.
pub(crate) const MAPS_RELEASE: u32 = 128;
pub(crate) const MAPS_ACQUIRE: u32 = 256;

/// It makes barrier objects known that were initialised (`fence.mbarrier_init`).
pub(crate) const OF_INITS: u32 = 64;

/// The scope of a fence between proxies.
pub(crate) const NO_SCOPE: u32 = Scope::ALL.len() as u32;

/// `selp`: `d = which ? a : b`.
#[inline(never)]
pub(crate) fn select(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Select::of(i);
    let p = w.pred(i.which());
    let (d, a, b) = (w.row_mut(i.d()), w.row(i.a()), w.row(i.b()));
    // SAFETY: rows of live memory; no references are made.
    each(mask, |l| unsafe { (*d).0[l] = if p >> l & 1 != 0 { (*a).0[l] } else { (*b).0[l] } });
    Next::Step
}

/// Operations on predicates: `d = a function b`.
#[inline(never)]
pub(crate) fn predicate(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Predicate::of(i);
    let (a, b) = (w.pred(i.a()), w.pred(i.b()));
    let bits = match i.function() {
        0 => a & b,
        1 => a | b,
        2 => a ^ b,
        _ => a,
    };
    w.set_pred(i.d(), mask, bits);
    Next::Step
}

/// Moves between vectors and scalars: the bits of the sources are spread over the destinations.
#[inline(never)]
pub(crate) fn repack(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Repack::of(i);
    let program = w.env.program;
    let (from_width, into_width) = (i.from_bits(), i.into_bits());
    let (from, into) = (i.from(program), i.into(program));
    let cut = |value: u128, width: u32| if width >= 64 { value as u64 } else { value as u64 & ((1 << width) - 1) };
    each(mask, |l| {
        let mut bits = 0u128;
        for (at, &slot) in from.iter().enumerate() {
            bits |= u128::from(cut(u128::from(w.get(slot, l)), from_width)) << (at as u32 * from_width).min(127);
        }
        for (at, &slot) in into.iter().enumerate() {
            w.set(slot, l, cut(bits >> (at as u32 * into_width).min(127), into_width));
        }
    });
    Next::Step
}

/// Which special register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Special {
    TidX,
    TidY,
    TidZ,
    NtidX,
    NtidY,
    NtidZ,
    CtaidX,
    CtaidY,
    CtaidZ,
    NctaidX,
    NctaidY,
    NctaidZ,
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    MaskEq,
    MaskLt,
    MaskLe,
    MaskGt,
    MaskGe,
    Clock,
    ClockHi,
    Clock64,
    Timer,
    TimerLo,
    TimerHi,
    DynamicShared,
    TotalShared,
    /// Shared memory that the system keeps: its begin, what cooperative groups have of it, its end,
    /// its size.
    ReservedShared,
    ReservedSharedMiddle,
    ReservedSharedEnd,
    ReservedSharedSize,
    ClusteridX,
    ClusteridY,
    ClusteridZ,
    NclusteridX,
    NclusteridY,
    NclusteridZ,
    ClusterCtaidX,
    ClusterCtaidY,
    ClusterCtaidZ,
    ClusterNctaidX,
    ClusterNctaidY,
    ClusterNctaidZ,
    ClusterCtarank,
    ClusterNctarank,
    IsExplicitCluster,
    WorkspaceHi,
    WorkspaceLo,
    /// Of machine code: the number of warps in bits 8 and up.
    Virtcfg,
    /// Of machine code: the warp's number in bits 8 and up, the multiprocessor's above.
    Virtid,
    Zero,
}

/// Warps that a multiprocessor has room for.
const WARPS: u64 = 64;

/// What the names of registers begin with that say where the system's part of shared memory is.
pub(crate) const RESERVED_SHARED: &str = "%reserved_smem_offset_";

/// The special register of a name with its percent sign and component.
pub(crate) fn special_by_name(name: &str) -> Option<Special> {
    use Special::*;
    let dimension = |kinds: [Special; 3]| match name.rsplit('.').next() {
        Some("x") => Some(kinds[0]),
        Some("y") => Some(kinds[1]),
        Some("z") => Some(kinds[2]),
        _ => None,
    };
    match name.split('.').next().unwrap_or("") {
        "%tid" => dimension([TidX, TidY, TidZ]),
        "%ntid" => dimension([NtidX, NtidY, NtidZ]),
        "%ctaid" => dimension([CtaidX, CtaidY, CtaidZ]),
        "%nctaid" => dimension([NctaidX, NctaidY, NctaidZ]),
        "%clusterid" => dimension([ClusteridX, ClusteridY, ClusteridZ]),
        "%nclusterid" => dimension([NclusteridX, NclusteridY, NclusteridZ]),
        "%cluster_ctaid" => dimension([ClusterCtaidX, ClusterCtaidY, ClusterCtaidZ]),
        "%cluster_nctaid" => dimension([ClusterNctaidX, ClusterNctaidY, ClusterNctaidZ]),
        "%cluster_ctarank" => Some(ClusterCtarank),
        "%cluster_nctarank" => Some(ClusterNctarank),
        "%is_explicit_cluster" => Some(IsExplicitCluster),
        "%laneid" => Some(Laneid),
        "%warpid" => Some(Warpid),
        "%nwarpid" => Some(Nwarpid),
        "%smid" => Some(Smid),
        "%nsmid" => Some(Nsmid),
        "%gridid" => Some(Gridid),
        "%lanemask_eq" => Some(MaskEq),
        "%lanemask_lt" => Some(MaskLt),
        "%lanemask_le" => Some(MaskLe),
        "%lanemask_gt" => Some(MaskGt),
        "%lanemask_ge" => Some(MaskGe),
        "%clock" => Some(Clock),
        "%clock_hi" => Some(ClockHi),
        "%clock64" => Some(Clock64),
        "%globaltimer" => Some(Timer),
        "%globaltimer_lo" => Some(TimerLo),
        "%globaltimer_hi" => Some(TimerHi),
        "%dynamic_smem_size" => Some(DynamicShared),
        // The address of the grid's workspace; zero when the launch is not cooperative.
        "%envreg1" => Some(WorkspaceHi),
        "%envreg2" => Some(WorkspaceLo),
        // Other words of the environment, and counters: nobody sets them, nobody has them count.
        name if name.starts_with("%envreg") || name.starts_with("%pm") => Some(Zero),
        "%total_smem_size" | "%aggr_smem_size" => Some(TotalShared),
        "%reserved_smem_offset_begin" | "%reserved_smem_offset_0" => Some(ReservedShared),
        "%reserved_smem_offset_1" => Some(ReservedSharedMiddle),
        "%reserved_smem_offset_end" => Some(ReservedSharedEnd),
        "%reserved_smem_offset_cap" => Some(ReservedSharedSize),
        _ => None,
    }
}

/// `mov d, %special`
#[inline(never)]
pub(crate) fn special(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Special::of(i);
    let y = i.number();
    let launch = w.env.launch;
    let index = w.block().index;
    let is = |kind: Special| y == kind as u32;
    let within = |first: Special| y.checked_sub(first as u32).filter(|&at| at < 3).map(|at| at as usize);
    if let Some(at) = within(Special::TidX) {
        let tid = w.tid[at];
        each(mask, |l| w.set(i.d(), l, u64::from(tid[l])));
        return Next::Step;
    }
    if is(Special::Laneid) {
        each(mask, |l| w.set(i.d(), l, l as u64));
        return Next::Step;
    }
    if let Some(at) = y.checked_sub(Special::MaskEq as u32).filter(|&at| at < 5) {
        each(mask, |l| {
            let eq = 1u32 << l;
            let value = [eq, eq - 1, eq | (eq - 1), !(eq | (eq - 1)), !(eq - 1)][at as usize];
            w.set(i.d(), l, u64::from(value));
        });
        return Next::Step;
    }
    let cluster = w.env.cluster;
    let uniform = if let Some(at) = within(Special::NtidX) {
        u64::from(launch.block[at])
    } else if let Some(at) = within(Special::CtaidX) {
        u64::from(index[at])
    } else if let Some(at) = within(Special::NctaidX) {
        u64::from(launch.grid[at])
    } else if let Some(at) = within(Special::ClusteridX) {
        u64::from(index[at] / cluster[at])
    } else if let Some(at) = within(Special::NclusteridX) {
        u64::from(launch.grid[at] / cluster[at])
    } else if let Some(at) = within(Special::ClusterCtaidX) {
        u64::from(index[at] % cluster[at])
    } else if let Some(at) = within(Special::ClusterNctaidX) {
        u64::from(cluster[at])
    } else {
        let workspace = if launch.cooperative { w.env.workspace().0 } else { 0 };
        // Something that advances about as clocks do: jumps, and the host's nanoseconds for what
        // spins on it.
        let nanos = || w.env.started.elapsed().as_nanos() as u64;
        let unix =
            || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        match y {
            y if y == Special::Warpid as u32 => u64::from(w.index),
            y if y == Special::Nwarpid as u32 => WARPS,
            y if y == Special::Virtcfg as u32 => WARPS << 8,
            y if y == Special::Smid as u32 => w.block().linear % SMS,
            y if y == Special::Nsmid as u32 => SMS,
            y if y == Special::Gridid as u32 => launch.grid_id,
            y if y == Special::Clock as u32 => nanos() & 0xffff_ffff,
            y if y == Special::ClockHi as u32 => nanos() >> 32,
            y if y == Special::Clock64 as u32 => nanos(),
            y if y == Special::Timer as u32 => unix(),
            y if y == Special::TimerLo as u32 => unix() & 0xffff_ffff,
            y if y == Special::TimerHi as u32 => unix() >> 32,
            y if y == Special::DynamicShared as u32 => u64::from(launch.dynamic_shared),
            y if y == Special::ReservedShared as u32 => u64::from(w.env.reserved_shared.start),
            y if y == Special::ReservedSharedMiddle as u32 => u64::from(reserved_middle(&w.env.reserved_shared)),
            y if y == Special::ReservedSharedEnd as u32 => u64::from(w.env.reserved_shared.end),
            y if y == Special::ReservedSharedSize as u32 => u64::from(RESERVED_SHARED_BYTES),
            y if y == Special::TotalShared as u32 => u64::from(w.env.shared_limit()),
            y if y == Special::ClusterCtarank as u32 => w.rank() as u64,
            y if y == Special::ClusterNctarank as u32 => cluster.iter().map(|&n| u64::from(n)).product(),
            y if y == Special::WorkspaceHi as u32 => workspace >> 32,
            y if y == Special::WorkspaceLo as u32 => workspace & 0xffff_ffff,
            y if y == Special::Virtid as u32 => u64::from(w.index) << 8 | (w.block().linear % SMS) << 20,
            y if y == Special::IsExplicitCluster as u32 => u64::from(w.env.explicit_cluster),
            _ => 0,
        }
    };
    each(mask, |l| w.set(i.d(), l, uniform));
    Next::Step
}
