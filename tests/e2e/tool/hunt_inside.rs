//! `streamsan hunt --inside`: programs that race inside their kernels, and mended ones, after more
//! barriers than 16 bits can number.

use tests::build;
use tests::run::end;

use super::hunt::{hunt, put, row};

#[test]
fn a_race_after_seventy_thousand_barriers_is_found_and_the_mended_program_is_clean() {
    let folder = build::scratch("hunt-inside");
    for (name, options) in [("racy", &["-DRACY", "-lineinfo"][..]), ("mended", &["-lineinfo"])] {
        let Some(program) = build::cuda_program_if_possible("sim/many_barriers.cu", "static", options) else { return };
        put(&program, &folder.join(name));
    }
    for code in ["ptx", "sass"] {
        let with = |options: &[&str]| end(hunt(options, &folder).env("STREAMSAN_SIM", format!("code={code}")));
        let ended = with(&["--sim", "--inside"]);
        assert_eq!(ended.code(), Some(66), "{code}: {}", ended.err);
        assert_eq!((row(&ended, "racy"), row(&ended, "mended")), ("findings", "clean"), "{code}: {}", ended.err);
        assert!(
            ended.err.contains("1 finding (1 certain") && ended.err.contains("2 launches checked inside"),
            "{}",
            ended.err
        );
        // Between kernels there is none.
        let ended = with(&["--sim"]);
        assert_eq!((ended.code(), row(&ended, "racy")), (Some(0), "clean"), "{code}: {}", ended.err);
    }
}
