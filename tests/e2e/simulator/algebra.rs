//! The stand-ins for cuSOLVER and cuSPARSE: what they compute, and the races of their operands.
//!
//! The programs generate their calls, over types, functions, sizes and modes. Each operand of each
//! function is written on another stream, in order and not; so is all that a call leaves alone.

use super::libraries::{built, number_before, sim};

/// Programs that compute, how many comparisons they make at least, and the library.
const COMPUTE: [(&str, u32, &str); 2] = [("solvers", 20_000, "cuSOLVER"), ("sparse", 1_500, "cuSPARSE")];

#[test]
fn solvers_and_sparse_products_compute_what_loops_compute() {
    for (name, least, library) in COMPUTE {
        let ended = sim(&built(name), &[], &[]);
        assert_eq!(ended.code(), Some(0), "{name}: {}{}", ended.out, ended.err);
        let made = number_before(&ended.out, " comparisons, 0 failed");
        assert!(made.is_some_and(|made| made >= least), "{name}: {}", ended.out);
        let calls = number_before(&ended.err, &format!(" calls of {library} by the simulator's stand-in"));
        assert!(calls.is_some_and(|calls| calls > 1000), "{name}: {}", ended.err);
        assert!(ended.err.contains(" 0 unknown, "), "{name}: {}", ended.err);
    }
}

/// Programs that race, and how many operands a function of theirs has at most.
const RACE: [(&str, u32); 2] = [("solver_races", 6), ("sparse_races", 7)];

/// A line that such a program prints: the kind of the operand that was written meanwhile, and the
/// function.
fn raced(out: &str) -> Vec<(&str, &str)> {
    out.lines().filter_map(|line| line.split_once(' ')).collect()
}

#[test]
fn races_of_each_operand_of_solvers_and_sparse_products_are_found() {
    let mut all = 0;
    for (name, operands) in RACE {
        let program = built(name);
        for operand in 0..operands {
            let ended = sim(&program, &[], &["races", &operand.to_string()]);
            assert_eq!(ended.code(), Some(66), "{name} {operand}: {}{}", ended.out, ended.err);
            let races = raced(&ended.out);
            all += races.len();
            assert_eq!(
                number_before(ended.err.rsplit("SUMMARY: ").next().unwrap_or_default(), " finding"),
                Some(races.len() as u32),
                "{name} {operand}: {}",
                ended.err
            );
            let findings: Vec<&str> = ended.err.split("streamsan: DATA RACE: ").skip(1).collect();
            for (kind, function) in races {
                let wanted = match kind {
                    "w" => "write-after-write (",
                    "s" => "write-after-write (likely)",
                    "r" => "write-after-read (certain)",
                    // Elements of a dense operand that no entry names are not read.
                    "p" => "write-after-read (likely)",
                    _ => panic!("{name}: an operand of kind {kind}"),
                };
                let kernel = format!("Previous access: kernel streamsan_{function}, ");
                let found = findings.iter().any(|finding| finding.starts_with(wanted) && finding.contains(&kernel));
                assert!(found, "{name} {operand}: no {wanted} of {function}: {}", ended.err);
            }
        }
    }
    assert!(all >= 120, "{all} races");
}

#[test]
fn ordered_operands_of_solvers_and_sparse_products_and_their_gaps_are_silent() {
    for (name, _) in RACE {
        let ended = sim(&built(name), &["--pedantic"], &["fixed"]);
        assert_eq!(ended.code(), Some(0), "{name}: {}{}", ended.out, ended.err);
        assert!(ended.err.contains(" 0 unknown, "), "{name}: {}", ended.err);
    }
}
