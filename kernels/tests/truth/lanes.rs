//! Values out of other lanes, and the 64-bit sums and quotients that go with them in the kernels of
//! attention and of copies.

use super::Arg::{I32, I64, Ptr};
use super::Sharp::{Bounded, Sound};
use super::{Case, Thread, case};

/// The index along the first axis of the thread that is `back` lanes before this one, or of lane 0
/// for `None`. Below lane 0 there is none: the thread itself counts.
fn lane(x: &Thread, back: Option<i64>) -> i64 {
    let at = x.t[0] + x.bd[0] * (x.t[1] + x.bd[1] * x.t[2]);
    let from = match back {
        None => at / 32 * 32,
        Some(k) if at % 32 >= k => at - k,
        Some(_) => at,
    };
    from % x.bd[0]
}

/// Shift and factor that divide by `d`: `(high word of j * factor + j) >> shift`.
fn divider(d: i64) -> (i64, i64) {
    let shift = (0..32).find(|s| 1 << s >= d).unwrap_or(0);
    (((1i64 << 32) * ((1 << shift) - d)) / d + 1, shift)
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "k_lane_number",
            Bounded,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let i = (x.b[0] * 8 + lane(&x, None) / 32) * 32 + x.t[0] % 32;
                if i < n {
                    t.w(0, i)
                }
            },
        ),
        case(
            "k_lane_pointer",
            Bounded,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                if x.t[0] < n {
                    t.w(0, x.b[0] * n + x.t[0])
                }
            },
        ),
        case(
            "k_lane_above",
            Bounded,
            |n| vec![Ptr(0), Ptr(1), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    let j = 2 * lane(&x, Some(1));
                    t.w(0, j);
                    t.r(1, j + 1)
                }
            },
        ),
        case(
            "k_lane_loop",
            Sound,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                let (mut i, mut first) = (x.t[0], lane(&x, None));
                while i < n {
                    t.w(0, first);
                    i += 256;
                    first += 256
                }
            },
        ),
        case(
            "k_back",
            Bounded,
            |n| vec![Ptr(0), I64(n), I32(n)],
            |t, x, n| {
                if x.i() < n {
                    [4, 0, 32].into_iter().for_each(|k| t.w(0, x.i() + k * n))
                }
            },
        ),
        case(
            "k_eighths",
            Bounded,
            |n| vec![Ptr(0), I32(n)],
            |t, x, n| {
                if x.t[0] % 8 == 0 {
                    t.w(0, x.t[0] / 8 + x.b[0] * n)
                }
            },
        ),
        case(
            "k_dividers",
            Sound,
            |n| vec![Ptr(0), I32(n), I32(divider(70).0), I32(divider(70).1), I32(70)],
            |t, x, n| {
                (0..4)
                    .map(|u| x.b[0] * 512 + x.t[0] + 128 * u)
                    .filter(|j| *j < n)
                    .for_each(|j| t.w(0, j % 70 * 10 + j / 70))
            },
        ),
    ]
}
