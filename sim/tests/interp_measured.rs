//! What the simulated GPU makes of single instructions against what an H100 makes of them, as PTX
//! and as machine code: `measured/instructions.txt`, which `tests/gpu instructions` has written.
//! Approximate functions are not in it: their last bits differ.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::interp_support::both::Both;

/// An instruction, the combinations of its values, and the GPU's results.
struct Asked<'t> {
    body: &'t str,
    inputs: Vec<[u64; 3]>,
    results: Vec<u64>,
}

/// The text of a kernel, and what is asked.
fn parse(text: &str) -> (String, Vec<Asked<'_>>) {
    let bits = |word: &str| u64::from_str_radix(word, 16).unwrap_or_else(|_| panic!("{word}: no number"));
    let mut values: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let (mut kernel, mut asked) = (String::new(), Vec::<Asked>::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("values ") {
            let (name, numbers) = rest.split_once(' ').expect("values");
            values.entry(name).or_default().extend(numbers.split(' ').map(bits));
        } else if let Some(rest) = line.strip_prefix("do ") {
            let (names, body) = rest.split_once(": ").expect("an instruction");
            let mut inputs = vec![[0; 3]];
            for (at, name) in names.split(' ').enumerate() {
                let with = |before: [u64; 3]| {
                    values[name].iter().map(move |&value| {
                        let mut input = before;
                        input[at] = value;
                        input
                    })
                };
                inputs = inputs.into_iter().flat_map(with).collect();
            }
            asked.push(Asked { body, inputs, results: Vec::new() });
        } else if let (true, Some(last)) = (line.starts_with(' '), asked.last_mut()) {
            last.results.extend(line.split_whitespace().map(bits));
        } else if line.starts_with(' ') {
            writeln!(kernel, "{line}").unwrap();
        }
    }
    (kernel, asked)
}

#[test]
fn instructions_make_what_an_h100_makes() {
    let (kernel, asked) = parse(include_str!("measured/instructions.txt"));
    assert!(asked.len() > 300, "{} instructions", asked.len());
    let mut module = String::from(".version 8.3\n.target sm_90\n.address_size 64\n");
    for (at, asked) in asked.iter().enumerate() {
        module += &kernel.replace("NAME", &format!("k{at}")).replace("BODY", asked.body);
    }
    let both = Both::on(&module, "sm_90");
    let mut wrong = String::new();
    for (at, asked) in asked.iter().enumerate() {
        let input: Vec<u8> = asked.inputs.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        let threads = asked.inputs.len();
        assert_eq!(asked.results.len(), threads, "{}", asked.body);
        let outputs = both.run(&format!("k{at}"), threads as u32, &input, 32 * threads);
        let outputs = outputs.unwrap_or_else(|error| panic!("{}: {error}", asked.body));
        for (code, output) in ["PTX", "machine code"].into_iter().zip(outputs) {
            let made = output.chunks_exact(32).map(|row| u64::from_le_bytes(row[..8].try_into().unwrap()));
            let differ: Vec<usize> =
                made.clone().enumerate().filter(|&(n, value)| value != asked.results[n]).map(|(n, _)| n).collect();
            if let Some(&first) = differ.first() {
                let value = made.clone().nth(first).unwrap();
                writeln!(
                    wrong,
                    "{} ({code}): {} of {threads}, such as {:x?}: {value:x}, not {:x}",
                    asked.body,
                    differ.len(),
                    asked.inputs[first],
                    asked.results[first]
                )
                .unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
