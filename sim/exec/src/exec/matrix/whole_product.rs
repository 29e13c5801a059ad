//! Products of `wmma` fragments that a whole warp has: entries of a fragment lie in registers one
//! after the other (`matrix::of_fragment`), so factors and sums are moved as whole rows of words
//! and computed in vectors. Gives the bits that `matrix` gives, which says what they are; does not
//! know `mma.sync`, whose entries lie otherwise, and not forms that leave part of a register free.

use std::cell::RefCell;

use crate::arch::in_widest_vectors;
use crate::exec::matrix::fragment_words::{MOST, Words};
use crate::exec::matrix::{Element, Form};
use crate::float::Rounding;
use crate::float::float16::{Brain, Half, Small};
use crate::program::{LANES, Slot};
use crate::warp::Warp;

/// What a thread computes in. It stays as it was left: to clear it takes as long as a product.
#[repr(C, align(64))]
struct Scratch {
    words: [Words; 4],
    doubles: [[f64; MOST]; 3],
    integers: [[i32; MOST]; 3],
}

/// Lends words to a function, with anything in them. They are aligned for every element.
pub(in crate::exec) fn with_words<R>(f: impl FnOnce(&mut Words) -> R) -> R {
    with_scratch(|scratch| f(&mut scratch.words[0]))
}

fn with_scratch<R>(f: impl FnOnce(&mut Scratch) -> R) -> R {
    thread_local! {
        static SCRATCH: RefCell<Box<Scratch>> = RefCell::new(Box::new(Scratch {
            words: [const { Words([0; MOST]) }; 4],
            doubles: [[0.0; MOST]; 3],
            integers: [[0; MOST]; 3],
        }));
    }
    SCRATCH.with_borrow_mut(|scratch| f(scratch))
}

/// Takes a product's fragments from the warp's registers and puts the result there. False, and
/// nothing is done, where this file does not know the form.
pub(in crate::exec) fn multiply(w: &mut Warp<'_>, form: Form, [to, c, a, b]: [&[Slot]; 4]) -> bool {
    let Some(counts) = registers(form) else { return false };
    if [to.len(), c.len(), a.len(), b.len()].iter().zip(counts).any(|(&have, need)| have < need) {
        return false;
    }
    let [of_d, of_c, of_a, of_b] = counts;
    with_scratch(|scratch| {
        let [words_a, words_b, words_c, _] = &mut scratch.words;
        words_a.gather(w, &a[..of_a], form.a);
        words_b.gather(w, &b[..of_b], form.b);
        words_c.gather(w, &c[..of_c], form.c);
        product(form, scratch);
        scratch.words[3].scatter(w, &to[..of_d], form.d);
    });
    true
}

/// The product of the first two words of the scratch, added to the third, into the fourth.
fn product(form: Form, scratch: &mut Scratch) {
    in_widest_vectors!(of_types(form: Form, scratch: &mut Scratch));
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

#[inline(always)]
fn of_types(form: Form, scratch: &mut Scratch) {
    let Form { m, n, k, .. } = form;
    let [a, b, c, out] = &mut scratch.words;
    if form.d == Element::S32 {
        let [left, right, sums] = &mut scratch.integers;
        bytes(form.a == Element::S8, &a.0[..m * k / 4], left);
        bytes(form.b == Element::S8, &b.0[..k * n / 4], right);
        sums.iter_mut().zip(&c.0[..m * n]).for_each(|(sum, &word)| *sum = word as i32);
        // Sums of so few products of bytes do not wrap; with what was there they may.
        add_rows([m, n, k], left, right, sums, |a, b, sum| sum.wrapping_add(a * b));
        out.0.iter_mut().zip(&sums[..m * n]).for_each(|(word, &sum)| *word = sum as u32);
        return;
    }
    let [left, right, sums] = &mut scratch.doubles;
    numbers(form.a, a, m * k, left);
    numbers(form.b, b, k * n, right);
    numbers(form.c, c, m * n, sums);
    add_rows([m, n, k], left, right, sums, f64::mul_add);
    match form.d {
        Element::F64 => out.longs_mut().iter_mut().zip(&sums[..m * n]).for_each(|(to, sum)| *to = sum.to_bits()),
        Element::F16 => {
            let halves = out.halves_mut().iter_mut().zip(&sums[..m * n]);
            halves.for_each(|(to, &sum)| *to = Half::cut(sum, Rounding::Nearest));
        }
        _ => out.0.iter_mut().zip(&sums[..m * n]).for_each(|(word, &sum)| *word = (sum as f32).to_bits()),
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
    fn each<T: Copy>(from: &[T], into: &mut [f64; MOST], read: impl Fn(T) -> f64) {
        into.iter_mut().zip(from).for_each(|(to, &from)| *to = read(from));
    }
    match element {
        Element::F16 => each(&words.halves()[..count], into, |half| f64::from(Half::widen(half))),
        Element::Bf16 => each(&words.halves()[..count], into, |half| f64::from(Brain::widen(half))),
        // The lower fraction bits are ignored.
        Element::Tf32 => each(&words.0[..count], into, |word| f64::from(f32::from_bits(word & !0x1fff))),
        Element::F64 => each(&words.longs()[..count], into, f64::from_bits),
        _ => each(&words.0[..count], into, |word| f64::from(f32::from_bits(word))),
    }
}

/// Adds a product to sums. Each sum grows in the order of the inner index.
#[inline(always)]
fn add_rows<T: Copy>(
    [m, n, k]: [usize; 3],
    a: &[T; MOST],
    b: &[T; MOST],
    sums: &mut [T; MOST],
    step: impl Fn(T, T, T) -> T + Copy,
) {
    match n {
        8 => four_rows::<T, 8>([m, k], a, b, sums, step),
        16 => four_rows::<T, 16>([m, k], a, b, sums, step),
        _ => four_rows::<T, 32>([m, k], a, b, sums, step),
    }
}

/// Four rows of sums stay in registers.
#[inline(always)]
fn four_rows<T: Copy, const N: usize>(
    [m, k]: [usize; 2],
    a: &[T; MOST],
    b: &[T; MOST],
    sums: &mut [T; MOST],
    step: impl Fn(T, T, T) -> T + Copy,
) {
    let rows = sums.as_chunks_mut::<N>().0;
    for (at, rows) in rows[..m].as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let mut sum = *rows;
        let factors: [&[T]; 4] = std::array::from_fn(|row| &a[(4 * at + row) * k..][..k]);
        for (inner, b) in b.as_chunks::<N>().0[..k].iter().enumerate() {
            for (sum, factors) in sum.iter_mut().zip(factors) {
                let factor = factors[inner];
                for (sum, &b) in sum.iter_mut().zip(b) {
                    *sum = step(factor, b, *sum);
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
            return words.longs()[entry];
        }
        let (packed, size) = (element.packed(), 8 * element.size() as usize);
        u64::from(words.0[entry / packed] >> (entry % packed * size)) & (u64::MAX >> (64 - size))
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
                        words.0.fill_with(|| random() & if d == S32 { u32::MAX } else { 0xbfff_bfff });
                    }
                    product(form, scratch);
                    let [left, right, sums, out] = &scratch.words;
                    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                        let at = row * n + column;
                        let mut sum = c.read(bits(c, sums, at));
                        for inner in 0..k {
                            let factor = a.read(bits(a, left, row * k + inner));
                            sum = factor.mul_add(b.read(bits(b, right, inner * n + column)), sum);
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
