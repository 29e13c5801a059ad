//! Counts what the PTX front end makes of PTX texts: which do not parse, and for the others what
//! share of the instructions has a rule. Not a test: the measuring tool behind
//! `cargo xtask ptx-census`.
//!
//! `cargo run --release -p kernels --example ptx_survey -- [-v] FOLDER...` prints one row for each
//! folder (all `.ptx` files under it). An instruction counts once for each kernel that contains it,
//! inlined or not. With `-v`, also prints every kernel with words of unknown extent or indirect
//! accesses.
//!
//! `ptx_survey --compare FOLDER...`: where `ptxas` made `NAME.cubin` of `NAME.ptx`, both must say
//! the same of every kernel. Exit code 1 if not.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use device_code::ptx::{Module, parse_bytes};
use kernels::explain;
use kernels::ir::{Addr, Op, Reason};
use kernels::{Summary, WordExtent, lower_ptx};

/// What became of the instructions of a folder.
#[derive(Default)]
struct Tally {
    modules: usize,
    /// Texts that do not parse, by message.
    rejected: BTreeMap<String, usize>,
    kernels: usize,
    /// Kernels that could not be lowered, by message.
    failed: BTreeMap<String, usize>,
    instructions: usize,
    /// Instructions whose result is data (loaded, floating point, of other lanes): no rule could
    /// say more.
    data: usize,
    /// Instructions whose result has no rule, by opcode and reason.
    missing: BTreeMap<(String, Reason), usize>,
    /// Instructions that are taken to touch anything, by opcode.
    anything: BTreeMap<String, usize>,
    /// Parameter words behind accesses, and those of them whose extent is unknown, by reason.
    words: usize,
    open: BTreeMap<Reason, usize>,
    /// Kernels with accesses that derive from no parameter, by reason.
    indirect: BTreeMap<Reason, usize>,
}

fn main() {
    let mut verbose = false;
    let mut compare = false;
    let mut folders = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "-v" => verbose = true,
            "--compare" => compare = true,
            _ => folders.push(PathBuf::from(argument)),
        }
    }
    if folders.is_empty() {
        eprintln!("usage: ptx_survey [-v] FOLDER... | ptx_survey --compare FOLDER...");
        std::process::exit(2);
    }
    if compare {
        let differences: usize = folders.iter().map(|f| comparison(f)).sum();
        std::process::exit(i32::from(differences > 0));
    }
    let mut rows = Vec::new();
    for folder in &folders {
        let mut tally = Tally::default();
        for path in files(folder, "ptx") {
            match std::fs::read(&path) {
                Ok(text) => tally.text(&path, &text, verbose),
                Err(error) => eprintln!("{}: {error}", path.display()),
            }
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        rows.push((name, tally));
    }
    print(&rows);
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(path) = todo.pop() {
        match std::fs::read_dir(&path) {
            Ok(entries) => todo.extend(entries.filter_map(|e| Some(e.ok()?.path()))),
            Err(_) if path.extension().is_some_and(|e| e == extension) => out.push(path),
            Err(_) => {}
        }
    }
    out.sort();
    out
}

/// The longest part of a message that texts have in common: without its line number.
fn message(error: &str) -> String {
    let text = error.split_once(": ").map_or(error, |(line, rest)| if line.starts_with("line") { rest } else { error });
    text.to_owned()
}

impl Tally {
    fn text(&mut self, path: &Path, text: &[u8], verbose: bool) {
        self.modules += 1;
        let module = match parse_bytes(text) {
            Ok(module) => module,
            Err(error) => {
                println!("{}: {error}", path.display());
                *self.rejected.entry(message(&error.to_string())).or_default() += 1;
                return;
            }
        };
        // Opcodes by line: what was lowered knows no more.
        let mut opcodes: HashMap<u32, Vec<&str>> = HashMap::new();
        for body in module.functions.iter().filter_map(|f| f.body.as_ref()) {
            for instruction in &body.code {
                opcodes.entry(instruction.line).or_default().push(&module.opcode(instruction.opcode).text);
            }
        }
        for name in lower_ptx::kernel_names(&module) {
            self.kernel(path, &module, name, &opcodes, verbose);
        }
    }

    fn kernel(&mut self, path: &Path, module: &Module, name: &str, opcodes: &HashMap<u32, Vec<&str>>, verbose: bool) {
        self.kernels += 1;
        let function = match lower_ptx::lower(module, name) {
            Ok(function) => function,
            Err(error) => {
                println!("{}: {name}: {error}", path.display());
                *self.failed.entry(error.to_string()).or_default() += 1;
                return;
            }
        };
        let mut lines: BTreeMap<u32, (bool, Option<Reason>, bool)> = BTreeMap::new();
        for instruction in function.blocks.iter().flat_map(|b| &b.insts) {
            let (data, missing, anything) = lines.entry(instruction.at).or_default();
            match &instruction.op {
                Op::Unknown(
                    Reason::Loaded
                    | Reason::Float
                    | Reason::Shared
                    | Reason::CrossLane
                    | Reason::AtomicResult
                    | Reason::Descriptor,
                ) => *data = true,
                Op::Unknown(reason) => *missing = Some(*reason),
                Op::ClobberAll => *anything = true,
                Op::Mem(mem) if matches!(mem.addr, Addr::Unknown(reason) if reason != Reason::Local) => {
                    *anything = true
                }
                _ => {}
            }
        }
        let entry = module.find_name(name).and_then(|n| module.function(n)).and_then(|f| f.body.as_ref());
        let own = entry.map_or(0, |body| body.code.len());
        self.instructions += own.max(lines.len());
        for (line, (data, missing, anything)) in lines {
            let opcode = opcodes.get(&line).map_or_else(|| "?".to_owned(), |list| list.join(" & "));
            if anything {
                *self.anything.entry(opcode).or_default() += 1;
            } else if let Some(reason) = missing {
                *self.missing.entry((opcode, reason)).or_default() += 1;
            } else {
                self.data += usize::from(data);
            }
        }
        let summary = Summary::new(&function);
        let mut gaps = Vec::new();
        for word in summary.words() {
            self.words += 1;
            if word.extent == WordExtent::Unknown {
                let gap = word.why.map(|g| (g.reason, g.at));
                *self.open.entry(gap.map_or(Reason::Budget, |g| g.0)).or_default() += 1;
                gaps.push(format!("{}: {gap:?}", word.offset));
            }
        }
        if let Some(gap) = summary.indirect().why {
            *self.indirect.entry(gap.reason).or_default() += 1;
            gaps.push(format!("indirect: {:?}", (gap.reason, gap.at)));
        }
        if verbose && !gaps.is_empty() {
            println!("{}: {name}: {}", path.display(), gaps.join(", "));
        }
    }
}

fn print(rows: &[(String, Tally)]) {
    println!(
        "| source | modules | rejected | kernels | instructions | without a rule | may touch anything | pointers | extent unknown | kernels with indirect accesses |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for (name, t) in rows {
        let sum = |m: &BTreeMap<Reason, usize>| m.values().sum::<usize>();
        let (missing, anything): (usize, usize) = (t.missing.values().sum(), t.anything.values().sum());
        let share = 100.0 * missing as f64 / t.instructions.max(1) as f64;
        println!(
            "| {name} | {} | {} | {} | {} | {missing} ({share:.2} %) | {anything} | {} | {} | {} |",
            t.modules,
            t.rejected.values().sum::<usize>() + t.failed.values().sum::<usize>(),
            t.kernels,
            t.instructions,
            t.words,
            sum(&t.open),
            sum(&t.indirect),
        );
    }
    for (name, t) in rows {
        println!("\n{name}: {} of {} instructions give data", t.data, t.instructions);
        for (error, count) in t.rejected.iter().chain(&t.failed) {
            println!("  rejected {count}: {error}");
        }
        println!("  extents unknown: {:?}; indirect: {:?}", t.open, t.indirect);
        let mut missing: Vec<_> = t.missing.iter().collect();
        missing.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for ((opcode, reason), count) in missing {
            println!("  no rule {count:6} {opcode} ({reason:?})");
        }
        for (opcode, count) in &t.anything {
            println!("  anything {count:5} {opcode}");
        }
    }
}

/// Compares every pair of a folder; the number of differences.
fn comparison(folder: &Path) -> usize {
    let (mut pairs, mut kernels, mut same, mut wrong) = (0, 0, 0, 0);
    for cubin in files(folder, "cubin") {
        let ptx = cubin.with_extension("ptx");
        let both = [&ptx, &cubin].map(|path| {
            let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
            explain(&bytes, None, None).map_err(|e| e.to_string())
        });
        let [Ok(text), Ok(code)] = both else {
            println!("{}: {both:?}", cubin.display());
            wrong += 1;
            continue;
        };
        pairs += 1;
        for of_code in &code {
            kernels += 1;
            let of_text = text.iter().find(|k| k.name == of_code.name);
            let (a, b) = (of_text.map(|k| said(&k.summary)).unwrap_or_default(), said(&of_code.summary));
            if a == b {
                same += 1;
                continue;
            }
            wrong += 1;
            println!("{}: {}", cubin.display(), of_code.name);
            println!("   PTX:  {a}");
            println!("   SASS: {b}");
        }
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}: {pairs} modules, {kernels} kernels, {same} the same, {wrong} not");
    wrong
}

/// Words with their directions, and whether there are indirect accesses.
fn said(summary: &Result<std::sync::Arc<Summary>, String>) -> String {
    let summary = match summary {
        Ok(summary) => summary,
        Err(error) => return error.clone(),
    };
    let mut out = String::new();
    for w in summary.words() {
        out += &format!("{}:", w.offset);
        for (is, letter) in [(w.reads, 'r'), (w.writes, 'w'), (w.atomic, 'a')] {
            out.extend(is.then_some(letter));
        }
        if w.extent == WordExtent::Unknown {
            out.push('?');
        }
        out.push(' ');
    }
    let i = summary.indirect();
    if i.any() {
        out += "indirect:";
        for (is, letter) in [(i.reads, 'r'), (i.writes, 'w'), (i.atomic, 'a')] {
            out.extend(is.then_some(letter));
        }
    }
    out
}
