//! Waits for values that memory holds already, behind every call that can leave one there.

use tests::{build, run};

/// Waits of each way of leaving a value: four conditions, two widths.
const WAITS: u32 = 4 * 2;

#[test]
fn a_wait_orders_no_more_than_what_left_its_value() {
    let Some(program) = build::cuda_program_if_possible("sim/found_values.cu", "shared", &[]) else { return };
    for (how, ways) in [("found", 19), ("awaited", 19), ("touched", 18)] {
        let waits = ways * WAITS;
        let mut command = run::streamsan(["run", "--sim", "--"]);
        let ended = run::end(command.arg(&program).arg(how).env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.out, format!("{waits}\n"), "{how}: {}", ended.err);
        let code = if how == "found" { 66 } else { 0 };
        assert_eq!(ended.code(), Some(code), "{how}: {}", ended.err);
        if how == "found" {
            let summary = format!("SUMMARY: 1 finding (1 certain, 0 likely), {waits} occurrences");
            assert!(ended.err.contains(&summary), "{}", ended.err);
        }
    }
}
