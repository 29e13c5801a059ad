//! The start-up of Rust's programs and threads, which says nothing about a call.
//!
//! Owns where it ends. Rust's own backtraces end there, too: everything outside of
//! `__rust_begin_short_backtrace` is the runtime's (`library/std/src/sys/backtrace.rs`), and so is
//! the `FnOnce::call_once` through which it calls `main` or a thread's closure.

use super::object::SourceLocation;

/// The name of the folded frames.
pub(super) const START_UP: &str = "Rust's start-up";

const MARK: &str = "__rust_begin_short_backtrace";

/// The index from which on the frames of a stack, innermost first, are Rust's start-up; their
/// number, where there is none. Of a frame that is in part the program's, inlined into the
/// start-up, only that part stays.
pub(super) fn start_up<'a>(frames: impl Iterator<Item = &'a mut Vec<SourceLocation>>) -> usize {
    let mut frames: Vec<_> = frames.collect();
    let Some(at) = frames.iter().position(|places| places.iter().any(is_mark)) else { return frames.len() };
    for index in (0..=at).rev() {
        let places = &mut frames[index];
        let outer = if index == at { places.iter().position(is_mark) } else { None };
        let outer = outer.unwrap_or(places.len());
        let own = places[..outer].iter().rposition(|place| !is_call(place));
        match own {
            Some(own) => {
                places.truncate(own + 1);
                return index + 1;
            }
            None => continue,
        }
    }
    0
}

fn is_mark(place: &SourceLocation) -> bool {
    place.function.as_deref().is_some_and(|function| function.contains(MARK))
}

/// Whether it is a call of a closure or function by the standard library.
fn is_call(place: &SourceLocation) -> bool {
    let function = place.function.as_deref().unwrap_or("");
    function.contains("FnOnce") && function.contains("call_once")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames, each with the functions inlined into it, innermost first.
    fn stack(frames: &[&[&str]]) -> Vec<Vec<SourceLocation>> {
        let place = |function: &&str| SourceLocation { function: Some((*function).into()), ..Default::default() };
        frames.iter().map(|frame| frame.iter().map(place).collect()).collect()
    }

    fn kept(frames: &[&[&str]]) -> Vec<String> {
        let mut frames = stack(frames);
        let end = start_up(frames.iter_mut());
        frames[..end].iter().flatten().filter_map(|place| place.function.clone()).collect()
    }

    const OUTER: [&[&str]; 4] =
        [&["std::rt::lang_start::{{closure}}"], &["std::rt::lang_start_internal"], &["main"], &["_start"]];

    #[test]
    fn everything_outside_of_the_program_s_main_or_closure_goes() {
        let call = "core::ops::function::FnOnce::call_once";
        let boxed = "<alloc::boxed::Box<F,A> as core::ops::function::FnOnce<Args>>::call_once";
        for mark in [
            "std::sys::backtrace::__rust_begin_short_backtrace",
            "std::sys_common::backtrace::__rust_begin_short_backtrace",
        ] {
            // As debug and release builds have it: each call a frame, inlined in part, and whole.
            let forms: [&[&[&str]]; 5] = [
                &[&["app::main"], &[call], &[mark]],
                &[&["app::main"], &[call, mark]],
                &[&["app::main", call], &[mark]],
                &[&["app::main", call, mark]],
                &[&["app::main"], &[boxed], &[mark, "app::spawn"]],
            ];
            for form in forms {
                let inner: [&[&str]; 2] = [&["rustacuda::launch"], &["app::step", "app::run"]];
                let all = [&inner[..], form, &OUTER[..]].concat();
                assert_eq!(kept(&all), ["rustacuda::launch", "app::step", "app::run", "app::main"], "{form:?}");
            }
        }
    }

    #[test]
    fn the_innermost_start_counts_and_without_one_everything_stays() {
        // A test of Rust's harness runs in a thread of its.
        let test: [&[&str]; 5] = [
            &["app::tests::races"],
            &["core::ops::function::FnOnce::call_once"],
            &["test::__rust_begin_short_backtrace"],
            &["test::run_test"],
            &["std::sys::backtrace::__rust_begin_short_backtrace"],
        ];
        assert_eq!(kept(&test), ["app::tests::races"]);
        let cpp: [&[&str]; 2] = [&["std::_Function_handler::_M_invoke", "FnOnce::call_once"], &["main"]];
        assert_eq!(kept(&cpp).len(), 3);
        assert!(kept(&[]).is_empty());
    }
}
