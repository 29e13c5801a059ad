//! What depends on the processor: accesses to 16 bytes as one, and the widest vectors.
//!
//! Owns one file for each architecture, with the same names in each. Native code asks for
//! instructions by itself.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub(crate) use aarch64::{read_pair, write_pair};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{read_pair, write_pair};

/// Calls a function that is compiled for the widest vectors that the processor has, and returns
/// nothing. What it calls has to be inlined, or it is compiled as everything else is.
macro_rules! in_widest_vectors {
    ($function:ident($($name:ident: $type:ty),*)) => {
        '_done: {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
                fn widest($($name: $type),*) {
                    $function($($name),*);
                }
                #[target_feature(enable = "avx2,fma")]
                fn wide($($name: $type),*) {
                    $function($($name),*);
                }
                let has_all = std::arch::is_x86_feature_detected!("avx512f")
                    && std::arch::is_x86_feature_detected!("avx512bw")
                    && std::arch::is_x86_feature_detected!("avx512dq")
                    && std::arch::is_x86_feature_detected!("avx512vl");
                if has_all && std::arch::is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has them.
                    unsafe { widest($($name),*) };
                    break '_done;
                }
                if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has them.
                    unsafe { wide($($name),*) };
                    break '_done;
                }
            }
            $function($($name),*);
        }
    };
}
pub(crate) use in_widest_vectors;

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[repr(align(16))]
    struct Pair(UnsafeCell<[u64; 2]>);
    // SAFETY: accessed by `read_pair` and `write_pair` alone.
    unsafe impl Sync for Pair {}

    #[test]
    fn no_one_sees_half_of_a_pair() {
        let (pair, done) = (Pair(UnsafeCell::new([0, !0])), AtomicBool::new(false));
        let at = pair.0.get() as u64;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..100_000 {
                    // SAFETY: 16 bytes, aligned.
                    unsafe { write_pair(at, [n, !n]) };
                }
                done.store(true, Ordering::Release);
            });
            while !done.load(Ordering::Acquire) {
                // SAFETY: as above.
                let [low, high] = unsafe { read_pair(at) };
                assert_eq!(low, !high);
            }
        });
        // SAFETY: as above.
        assert_eq!(unsafe { read_pair(at) }, [99_999, !99_999]);
    }
}
