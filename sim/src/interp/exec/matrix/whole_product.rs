//! Products of `wmma` fragments that a whole warp has: entries of a fragment lie in registers one
//! after the other (`matrix::of_fragment`), so factors and sums are moved as whole rows of words
//! and computed in vectors. Gives the bits that `matrix` gives, which says what they are; does not
//! know `mma.sync`, whose entries lie otherwise, and not forms that leave part of a register free.

use std::cell::RefCell;

use crate::interp::exec::matrix::{Element, Form};
use crate::interp::float::Rounding;
use crate::interp::float::float16::{Brain, Half, Small};
use crate::interp::program::{LANES, Slot};
use crate::interp::warp::Warp;

/// Entries that a fragment has at most.
pub(in crate::interp::exec) const MOST: usize = 512;

/// The words of a fragment, in the order of its entries. One of 64 bits is two.
pub(in crate::interp::exec) type Words = [u32; MOST];

/// What a thread computes in. It stays as it was left: to clear it takes as long as a product.
#[repr(C, align(64))]
struct Scratch {
    words: [Words; 4],
    doubles: [[f64; MOST]; 3],
    integers: [[i32; MOST]; 3],
}

/// Lends words to a function, with anything in them. They are aligned for every element.
pub(in crate::interp::exec) fn with_words<R>(f: impl FnOnce(&mut Words) -> R) -> R {
    with_scratch(|scratch| f(&mut scratch.words[0]))
}

fn with_scratch<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    thread_local! {
        static SCRATCH: RefCell<Box<Scratch>> = RefCell::new(Box::new(Scratch {
            words: [[0; MOST]; 4],
            doubles: [[0.0; MOST]; 3],
            integers: [[0; MOST]; 3],
        }));
    }
    SCRATCH.with_borrow_mut(|scratch| f(scratch))
}

/// Takes a product's fragments from the warp's registers and puts the result there. False, and
/// nothing is done, where this file does not know the form.
pub(in crate::interp::exec) fn multiply(w: &mut Warp<'_>, form: Form, [to, c, a, b]: [&[Slot]; 4]) -> bool {
    let Some(counts) = registers(form) else { return false };
    if [to.len(), c.len(), a.len(), b.len()].iter().zip(counts).any(|(&have, need)| have < need) {
        return false;
    }
    let [of_d, of_c, of_a, of_b] = counts;
    with_scratch(|scratch| {
        let [words_a, words_b, words_c, _] = &mut scratch.words;
        gather(w, &a[..of_a], form.a, words_a);
        gather(w, &b[..of_b], form.b, words_b);
        gather(w, &c[..of_c], form.c, words_c);
        product(form, scratch);
        scatter(w, &to[..of_d], form.d, &scratch.words[3]);
    });
    true
}

/// Registers of d, c, a, b that hold entries, where the form is known here.
fn registers(form: Form) -> Option<[usize; 4]> {
    let Form { m, n, k, .. } = form;
    let count = |element: Element, entries: usize| {
        let each = entries / LANES;
        let count = each / element.packed();
        let fits = entries == count * element.packed() * LANES && entries <= MOST;
        (fits && matches!(count, 1 | 2 | 4 | 8 | 16)).then_some(count)
    };
    let whole = match (form.a, form.b, form.c, form.d) {
        (Element::F16 | Element::Bf16 | Element::Tf32, b, Element::F16 | Element::F32, Element::F16 | Element::F32) => {
            b == form.a
        }
        (Element::F64, Element::F64, Element::F64, Element::F64) => {
            [m * n, m * k, k * n].iter().all(|&n| n <= MOST / 2)
        }
        (Element::S8 | Element::U8, Element::S8 | Element::U8, Element::S32, Element::S32) => !form.saturate,
        _ => false,
    };
    if !whole || !matches!(n, 8 | 16 | 32) || !m.is_multiple_of(4) {
        return None;
    }
    Some([count(form.d, m * n)?, count(form.c, m * n)?, count(form.a, m * k)?, count(form.b, k * n)?])
}

/// Calls a generic function with a count that is known when it is compiled.
macro_rules! with_count {
    ($count:expr, $call:ident($($argument:expr),*)) => {
        match $count {
            1 => $call::<1>($($argument),*),
            2 => $call::<2>($($argument),*),
            4 => $call::<4>($($argument),*),
            8 => $call::<8>($($argument),*),
            16 => $call::<16>($($argument),*),
            _ => unreachable!("fragments have 1, 2, 4, 8 or 16 registers"),
        }
    };
}

/// A fragment's words.
pub(in crate::interp::exec) fn gather(w: &Warp<'_>, slots: &[Slot], element: Element, into: &mut Words) {
    fn narrow<const COUNT: usize>(w: &Warp<'_>, slots: &[Slot], into: &mut Words) {
        for (at, &slot) in slots.iter().enumerate().take(COUNT) {
            // SAFETY: a live row, which nobody writes meanwhile.
            let row = unsafe { &(*w.row(slot)).0 };
            for (own, &value) in into.as_chunks_mut::<COUNT>().0.iter_mut().zip(row) {
                own[at] = value as u32;
            }
        }
    }
    fn wide<const COUNT: usize>(w: &Warp<'_>, slots: &[Slot], into: &mut Words) {
        for (at, &slot) in slots.iter().enumerate().take(COUNT) {
            // SAFETY: as above.
            let row = unsafe { &(*w.row(slot)).0 };
            for (own, &value) in into.as_chunks_mut::<2>().0.as_chunks_mut::<COUNT>().0.iter_mut().zip(row) {
                own[at] = [value as u32, (value >> 32) as u32];
            }
        }
    }
    if element == Element::F64 {
        with_count!(slots.len(), wide(w, slots, into))
    } else {
        with_count!(slots.len(), narrow(w, slots, into))
    }
}

/// Puts a fragment's words into registers.
pub(in crate::interp::exec) fn scatter(w: &mut Warp<'_>, slots: &[Slot], element: Element, from: &Words) {
    fn narrow<const COUNT: usize>(w: &mut Warp<'_>, slots: &[Slot], from: &Words) {
        for (at, &slot) in slots.iter().enumerate().take(COUNT) {
            // SAFETY: a live row; no other reference to it is there.
            let row = unsafe { &mut (*w.row_mut(slot)).0 };
            for (value, own) in row.iter_mut().zip(from.as_chunks::<COUNT>().0) {
                *value = u64::from(own[at]);
            }
        }
    }
    fn wide<const COUNT: usize>(w: &mut Warp<'_>, slots: &[Slot], from: &Words) {
        for (at, &slot) in slots.iter().enumerate().take(COUNT) {
            // SAFETY: as above.
            let row = unsafe { &mut (*w.row_mut(slot)).0 };
            for (value, own) in row.iter_mut().zip(from.as_chunks::<2>().0.as_chunks::<COUNT>().0) {
                *value = u64::from(own[at][0]) | u64::from(own[at][1]) << 32;
            }
        }
    }
    if element == Element::F64 {
        with_count!(slots.len(), wide(w, slots, from))
    } else {
        with_count!(slots.len(), narrow(w, slots, from))
    }
}

/// The product of the first two words of the scratch, added to the third, into the fourth; for the
/// widest vectors that the processor has.
fn product(form: Form, scratch: &mut Scratch) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn widest(form: Form, scratch: &mut Scratch) {
            of_types(form, scratch);
        }
        #[target_feature(enable = "avx2")]
        fn wide(form: Form, scratch: &mut Scratch) {
            of_types(form, scratch);
        }
        if std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
        {
            // SAFETY: the processor has them.
            unsafe { widest(form, scratch) };
            return;
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has them.
            unsafe { wide(form, scratch) };
            return;
        }
    }
    of_types(form, scratch);
}

#[inline(always)]
fn of_types(form: Form, scratch: &mut Scratch) {
    let Form { m, n, k, .. } = form;
    let [a, b, c, out] = &mut scratch.words;
    if form.d == Element::S32 {
        let [left, right, sums] = &mut scratch.integers;
        bytes(form.a == Element::S8, &a[..m * k / 4], left);
        bytes(form.b == Element::S8, &b[..k * n / 4], right);
        sums.iter_mut().zip(&c[..m * n]).for_each(|(sum, &word)| *sum = word as i32);
        // Sums of so few products of bytes do not wrap; with what was there they may.
        add_rows([m, n, k], left, right, sums, |a, b| a * b, i32::wrapping_add);
        out.iter_mut().zip(&sums[..m * n]).for_each(|(word, &sum)| *word = sum as u32);
        return;
    }
    let [left, right, sums] = &mut scratch.doubles;
    numbers(form.a, a, m * k, left);
    numbers(form.b, b, k * n, right);
    numbers(form.c, c, m * n, sums);
    add_rows([m, n, k], left, right, sums, |a, b| a * b, |a, b| a + b);
    match form.d {
        Element::F64 => {
            for (words, sum) in out.as_chunks_mut::<2>().0.iter_mut().zip(&sums[..m * n]) {
                *words = [sum.to_bits() as u32, (sum.to_bits() >> 32) as u32];
            }
        }
        Element::F16 => {
            for (word, [low, high]) in out.iter_mut().zip(sums[..m * n].as_chunks::<2>().0) {
                let half = |sum: f64| u32::from(Half::cut(sum, Rounding::Nearest));
                *word = half(*low) | half(*high) << 16;
            }
        }
        _ => out.iter_mut().zip(&sums[..m * n]).for_each(|(word, &sum)| *word = (sum as f32).to_bits()),
    }
}

/// Bytes as integers.
#[inline(always)]
fn bytes(signed: bool, words: &[u32], into: &mut [i32; MOST]) {
    for (four, word) in into.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        let own = word.to_le_bytes();
        *four = if signed { own.map(|byte| i32::from(byte as i8)) } else { own.map(i32::from) };
    }
}

/// Entries as doubles.
#[inline(always)]
fn numbers(element: Element, words: &Words, count: usize, into: &mut [f64; MOST]) {
    #[inline(always)]
    fn halves<S: Small>(words: &[u32], into: &mut [f64; MOST]) {
        for (two, &word) in into.as_chunks_mut::<2>().0.iter_mut().zip(words) {
            *two = [f64::from(S::widen(word as u16)), f64::from(S::widen((word >> 16) as u16))];
        }
    }
    match element {
        Element::F16 => halves::<Half>(&words[..count / 2], into),
        Element::Bf16 => halves::<Brain>(&words[..count / 2], into),
        Element::Tf32 => {
            // The lower fraction bits are ignored.
            let read = |word: u32| f64::from(f32::from_bits(word & !0x1fff));
            into.iter_mut().zip(&words[..count]).for_each(|(to, &word)| *to = read(word));
        }
        Element::F64 => {
            for (to, &[low, high]) in into.iter_mut().zip(words[..2 * count].as_chunks::<2>().0) {
                *to = f64::from_bits(u64::from(low) | u64::from(high) << 32);
            }
        }
        _ => into.iter_mut().zip(&words[..count]).for_each(|(to, &word)| *to = f64::from(f32::from_bits(word))),
    }
}

/// Adds a product to sums. Each sum grows in the order of the inner index.
#[inline(always)]
fn add_rows<T: Copy>(
    [m, n, k]: [usize; 3],
    a: &[T; MOST],
    b: &[T; MOST],
    sums: &mut [T; MOST],
    times: impl Fn(T, T) -> T + Copy,
    plus: impl Fn(T, T) -> T + Copy,
) {
    match n {
        8 => four_rows::<T, 8>([m, k], a, b, sums, times, plus),
        16 => four_rows::<T, 16>([m, k], a, b, sums, times, plus),
        _ => four_rows::<T, 32>([m, k], a, b, sums, times, plus),
    }
}

/// Four rows of sums stay in registers.
#[inline(always)]
fn four_rows<T: Copy, const N: usize>(
    [m, k]: [usize; 2],
    a: &[T; MOST],
    b: &[T; MOST],
    sums: &mut [T; MOST],
    times: impl Fn(T, T) -> T + Copy,
    plus: impl Fn(T, T) -> T + Copy,
) {
    let rows = sums.as_chunks_mut::<N>().0;
    for (at, rows) in rows[..m].as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let mut sum = *rows;
        let factors: [&[T]; 4] = std::array::from_fn(|row| &a[(4 * at + row) * k..][..k]);
        for (inner, b) in b.as_chunks::<N>().0[..k].iter().enumerate() {
            for (sum, factors) in sum.iter_mut().zip(factors) {
                let factor = factors[inner];
                for (sum, &b) in sum.iter_mut().zip(b) {
                    *sum = plus(*sum, times(factor, b));
                }
            }
        }
        *rows = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry's bits in a fragment's words.
    fn bits(element: Element, words: &Words, entry: usize) -> u64 {
        if element == Element::F64 {
            return u64::from(words[2 * entry]) | u64::from(words[2 * entry + 1]) << 32;
        }
        let (packed, size) = (element.packed(), 8 * element.size() as usize);
        u64::from(words[entry / packed] >> (entry % packed * size)) & (u64::MAX >> (64 - size))
    }

    #[test]
    fn products_have_the_bits_of_sums_entry_by_entry() {
        use Element::*;
        let kinds = [
            (F16, F16, F16, F16, [[16, 16, 16], [32, 8, 16], [8, 32, 16]].as_slice()),
            (F16, F16, F32, F32, &[[16, 16, 16], [32, 8, 16], [8, 32, 16]]),
            (F16, F16, F32, F16, &[[16, 16, 16]]),
            (F16, F16, F16, F32, &[[16, 16, 16]]),
            (Bf16, Bf16, F32, F32, &[[16, 16, 16], [32, 8, 16], [8, 32, 16]]),
            (Tf32, Tf32, F32, F32, &[[16, 16, 8]]),
            (F64, F64, F64, F64, &[[8, 8, 4]]),
            (S8, S8, S32, S32, &[[16, 16, 16], [32, 8, 16], [8, 32, 16]]),
            (U8, U8, S32, S32, &[[16, 16, 16], [32, 8, 16], [8, 32, 16]]),
        ];
        let mut seed = 1u64;
        let mut random = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 32) as u32
        };
        for (a, b, c, d, shapes) in kinds {
            for &[m, n, k] in shapes {
                let form = Form { a, b, c, d, saturate: false, m, n, k };
                assert!(registers(form).is_some(), "{form:?}");
                with_scratch(|scratch| {
                    for words in &mut scratch.words {
                        // No exponent so large that a sum is no number: which NaN it is, is open.
                        words.fill_with(|| random() & if d == S32 { u32::MAX } else { 0xbfff_bfff });
                    }
                    product(form, scratch);
                    let [left, right, sums, out] = &scratch.words;
                    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                        let at = row * n + column;
                        let mut sum = c.read(bits(c, sums, at));
                        for inner in 0..k {
                            let factor = a.read(bits(a, left, row * k + inner));
                            sum += factor * b.read(bits(b, right, inner * n + column));
                        }
                        let size = 8 * d.size();
                        let expected = d.write(sum, false) & (u64::MAX >> (64 - size));
                        assert_eq!(bits(d, out, at), expected, "{form:?} {row} {column}");
                    }
                });
            }
        }
    }
}
