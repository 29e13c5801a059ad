//! How instructions carry what an access is towards other threads: plain, volatile, or strong with
//! an order and a scope.
//!
//! PTX says it of every access. Machine code has strong accesses with a scope; their orders are
//! MEMBAR before a release and CCTL.IVALL behind an acquire (seen in what the assembler makes of
//! `ld.acquire` and `st.release`). Within the block, and in shared memory, it says nothing: strong
//! reads of a block's scope are taken to acquire, and so are loads of shared memory that are
//! polled, where a store of shared memory may be a flag's.

use sim_races::{Order, Scope, Strength};

use crate::observed_order::{AccessOrder, Reach};

/// Neither of the following.
pub(crate) const PLAIN: u32 = 0x7fff_ffff;

/// Volatile.
pub const VOLATILE: u32 = 0x7fff_fffe;

/// Plain, and carried out behind the thread's back.
pub(crate) const COPY: u32 = 0x7fff_fffd;

/// Plain, by a bulk operation through the proxy of tensor maps.
pub(crate) const MAP: u32 = 0x7fff_fffc;

/// A store to shared memory in machine code that has flags there: plain, or one of those.
pub(crate) const UNSAID: u32 = 0x7fff_fffb;

/// What strong ones begin with. Below are the scope in bits 0 and 1, and these bits.
const STRONG: u32 = 0x7fff_ff00;
const ACQUIRE: u32 = 1 << 2;
const RELEASE: u32 = 1 << 3;
/// The operation is one of a barrier object.
const OBJECT: u32 = 1 << 4;
/// And arrives when the thread's copies are done.
const COPIES: u32 = 1 << 5;
/// The scope of the device is that of the system.
const SYSTEM: u32 = 1 << 6;
/// The operation compares and swaps.
const COMPARES: u32 = 1 << 7;

const fn coded(order: Order, scope: Scope) -> u32 {
    STRONG | scope as u32 | if order.acquire { ACQUIRE } else { 0 } | if order.release { RELEASE } else { 0 }
}

/// A strong access.
pub(crate) const fn strong(order: Order, scope: Scope) -> u32 {
    coded(order, scope)
}

/// The same of a strong access, which reaches the host, too.
pub(crate) const fn of_system(strength: u32) -> u32 {
    strength | SYSTEM
}

/// The same of an atomic operation that compares and swaps.
pub(crate) const fn of_swap(strength: u32) -> u32 {
    strength | COMPARES
}

/// An atomic operation that orders nothing, of all threads.
pub(crate) const RELAXED: u32 = coded(Order::RELAXED, Scope::Device);

/// An operation on a barrier object. It is the block's or the cluster's.
pub(crate) const fn object(order: Order) -> u32 {
    coded(order, Scope::Cluster) | OBJECT
}

/// An arrival when the copies of the thread are done. Its thread learns nothing by that: neither of
/// its own copies nor of those of others that have arrived before.
pub(crate) const COPIES_ARRIVE: u32 = coded(Order { acquire: false, release: true }, Scope::Cluster) | OBJECT | COPIES;

/// What it is for the detector of races.
pub(crate) fn meaning(strength: u32) -> Strength {
    match strength {
        VOLATILE => Strength::Volatile,
        UNSAID => Strength::Unsaid,
        _ if is_strong(strength) => {
            let scope = Scope::ALL[(strength & 3).min(2) as usize];
            let order = Order { acquire: strength & ACQUIRE != 0, release: strength & RELEASE != 0 };
            Strength::Strong(order, scope)
        }
        _ => Strength::Plain,
    }
}

/// What it orders for others than its block.
pub(crate) fn order(strength: u32) -> AccessOrder {
    match meaning(strength) {
        Strength::Plain | Strength::Unsaid => AccessOrder::default(),
        // PTX ISA, `ld.volatile`: the same as `ld.relaxed.sys`.
        Strength::Volatile => AccessOrder { strong: Some(Reach::System), ..AccessOrder::default() },
        Strength::Strong(Order { acquire, release }, scope) => {
            let reach = match scope {
                Scope::Device if strength & SYSTEM != 0 => Reach::System,
                Scope::Device => Reach::Device,
                _ => Reach::Near,
            };
            AccessOrder { strong: Some(reach), acquire, release }
        }
    }
}

fn is_strong(strength: u32) -> bool {
    strength & !0xff == STRONG && strength < UNSAID
}

/// Whether other kernels see it as atomic.
pub(crate) fn reaches_kernels(strength: u32) -> bool {
    strength == VOLATILE || is_strong(strength) && strength & 3 == Scope::Device as u32
}

/// Whether it is of a barrier object.
pub(crate) fn is_of_object(strength: u32) -> bool {
    is_strong(strength) && strength & OBJECT != 0
}

/// Whether it stands for the ends of copies.
pub(crate) fn is_of_copies(strength: u32) -> bool {
    is_strong(strength) && strength & COPIES != 0
}

/// Whether it compares and swaps.
pub(crate) fn is_swap(strength: u32) -> bool {
    is_strong(strength) && strength & COMPARES != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_what_went_into_it() {
        assert_eq!(meaning(VOLATILE), Strength::Volatile);
        assert_eq!(super::order(VOLATILE).strong, Some(Reach::System));
        for code in [PLAIN, COPY, MAP, 0] {
            assert_eq!(meaning(code), Strength::Plain);
            assert_eq!(super::order(code), AccessOrder::default());
            assert!(!reaches_kernels(code) && !is_of_object(code) && !is_of_copies(code) && !is_swap(code));
        }
        assert_eq!(meaning(UNSAID), Strength::Unsaid);
        assert!(!reaches_kernels(UNSAID) && !is_of_object(UNSAID) && !is_of_copies(UNSAID) && !is_swap(UNSAID));
        for scope in Scope::ALL {
            for bits in 0..4 {
                let order = Order { acquire: bits & 1 != 0, release: bits & 2 != 0 };
                let code = strong(order, scope);
                assert_eq!(meaning(code), Strength::Strong(order, scope));
                assert_eq!(meaning(of_system(code)), Strength::Strong(order, scope));
                let wide = if scope == Scope::Device { [Reach::Device, Reach::System] } else { [Reach::Near; 2] };
                assert_eq!(meaning(of_swap(code)), Strength::Strong(order, scope));
                assert!(is_swap(of_swap(code)) && !is_swap(code) && !is_swap(of_system(code)));
                assert!(!is_of_object(of_swap(code)) && !is_of_copies(of_swap(code)));
                assert_eq!([code, of_system(code)].map(|code| super::order(code).strong), wide.map(Some));
                assert_eq!(reaches_kernels(code), scope == Scope::Device);
                assert!(!is_of_object(code) && is_of_object(object(order)) && !is_of_copies(object(order)));
            }
        }
        assert!(is_of_object(COPIES_ARRIVE) && is_of_copies(COPIES_ARRIVE));
    }
}
