//! Compiles every kernel of the machine code in files (cubins, fatbins, host libraries) for the
//! interpreter and prints how many it would refuse, by the instruction that stands in the way. Not
//! a test: a measuring tool for libraries that are not ours to ship.
//!
//! `cargo run --release -p sim --example machine_survey -- FILE...`; `--arch 80` is the
//! architecture, `--name TEXT` lists the kernels whose reason contains it.

use std::collections::BTreeMap;

use device_code::image::{CodeRef, Image, find_in_host};
use streamsan_sim::interp::{MachineModule, Program};

#[derive(Default)]
struct Tally {
    modules: u64,
    kernels: u64,
    instructions: u64,
    refused: BTreeMap<String, (u64, String)>,
}

/// The reason without what differs from kernel to kernel: names, registers, numbers.
fn kind(reason: &str) -> String {
    match reason.split_once('(') {
        Some((head, rest)) if head.ends_with("Unsupported") => {
            let name = rest.split([' ', ')']).find(|word| !word.starts_with('@')).unwrap_or(rest);
            name.to_owned()
        }
        _ => reason.chars().filter(|c| !c.is_ascii_digit()).take(90).collect(),
    }
}

fn survey(module: &MachineModule, tally: &mut Tally, wanted: Option<&str>) {
    tally.modules += 1;
    // Addresses are not followed: any will do.
    let blocks: Vec<u64> = (1..=module.blocks().len() as u64).map(|at| at << 32).collect();
    for kernel in module.kernels() {
        tally.kernels += 1;
        let Some(program) = Program::compile_machine(module, &blocks, &kernel.name) else { continue };
        let Some(error) = program.kernel(&kernel.name).and_then(|kernel| kernel.error()) else {
            tally.instructions += program.instructions() as u64;
            continue;
        };
        let reason = error.to_string();
        if wanted.is_some_and(|text| reason.contains(text)) {
            println!("{}: {reason}", kernel.name);
        }
        let entry = tally.refused.entry(kind(&reason)).or_insert((0, reason));
        entry.0 += 1;
    }
}

fn main() {
    let mut sm = 80;
    let mut wanted = None;
    let mut args = std::env::args().skip(1);
    while let Some(path) = args.next() {
        match path.as_str() {
            "--arch" => {
                sm = args.next().and_then(|value| value.parse().ok()).expect("--arch NUMBER");
                continue;
            }
            "--name" => {
                wanted = Some(args.next().expect("--name TEXT"));
                continue;
            }
            _ => {}
        }
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("{path}: {error}");
                continue;
            }
        };
        let images = match Image::parse(&bytes) {
            Ok(image) => vec![image],
            Err(_) => match find_in_host(&bytes) {
                Ok(found) => found.into_iter().filter_map(|host| host.image.ok()).collect(),
                Err(error) => {
                    eprintln!("{path}: {error}");
                    continue;
                }
            },
        };
        let mut tally = Tally::default();
        for entry in images.iter().flat_map(|image| image.entries()).filter(|entry| entry.arch.sm == sm) {
            let Ok(CodeRef::Cubin(code)) = entry.unpack() else { continue };
            match MachineModule::parse(code.into_owned()) {
                Ok(module) => survey(&module, &mut tally, wanted.as_deref()),
                Err(error) => eprintln!("{path}: {error}"),
            }
        }
        let refused: u64 = tally.refused.values().map(|entry| entry.0).sum();
        println!(
            "{path}: sm_{sm}: {} modules, {} kernels, {refused} refused ({:.2} %); {} instructions of the interpreter in the others",
            tally.modules,
            tally.kernels,
            100.0 * refused as f64 / tally.kernels.max(1) as f64,
            tally.instructions,
        );
        let mut list: Vec<_> = tally.refused.into_iter().collect();
        list.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (kind, (count, example)) in list {
            println!("{count:8}  {kind:40}  {example}");
        }
    }
}
