//! Counts launches by class of kernel, and lists the kernels without ranges.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::Kernels;
use crate::columns::Table;

/// What has a target comes first: these classes.
const TARGET: [&str; 4] = ["elementwise", "reduction", "copy", "matmul"];

/// A kernel is of the first class of which its name holds a word.
pub const CLASSES: [(&str, &str); 10] = [
    ("sort, scan, select", "cub:: RadixSort DeviceScan DeviceSelect scan_ _scan sort topk TopK unique mode_kernel"),
    (
        "index, gather, embedding",
        "index gather scatter embedding Embedding one_hot histogram bincount searchsorted nonzero bucketize",
    ),
    ("attention", "flash fmha attention mha"),
    ("convolution, pooling", "conv Conv cudnn fprop dgrad wgrad winograd fft pool"),
    (
        "matmul",
        "gemm gemv matmul nvjet cutlass xmma splitK dot_kernel cublas trsm syrk symm geam asum nrm2 axpy scal_ iamax",
    ),
    ("random", "distribution dropout philox random threefry"),
    ("copy", "copy Copy Cat cat_ transpose Fill fill flip roll pad tril triu arange memset clone"),
    (
        "reduction",
        "reduce Reduce argm logsumexp sum_functor reduction softmax SoftMax norm Norm GammaBeta welford nll_loss dot",
    ),
    (
        "elementwise",
        "elementwise Elementwise pointwise CUDAFunctor functor where multi_tensor FusedAdam fused_adam foreach",
    ),
    ("fusion (XLA)", "fusion input_ loop_ wrapped_"),
];

/// What is counted of each kernel.
const COLUMNS: [&str; 7] = ["launches", "exact", "ranges", "kinds_only", "several", "unknown", "indirect"];

/// The class of a kernel, by its name.
pub fn class(name: &str) -> &'static str {
    let holds = |words: &str| words.split(' ').any(|word| name.contains(word));
    // `wgrad_indexed_implicit_gemm` is cuDNN's: neither a gather nor a product that was asked for.
    if holds("implicit_gemm ImplicitGemm") {
        return "convolution, pooling";
    }
    CLASSES.iter().find(|(_, words)| holds(words)).map_or("other", |(class, _)| class)
}

fn count(kernel: &Value, column: &str) -> u64 {
    kernel[column].as_u64().unwrap_or(0)
}

fn name(kernel: &Value) -> &str {
    kernel["kernel"].as_str().unwrap_or_default()
}

/// Launches of kernels that no range is known of, or that follow pointers in memory.
fn without_ranges(kernel: &Value) -> u64 {
    ["kinds_only", "unknown", "indirect"].iter().map(|column| count(kernel, column)).sum()
}

/// Sums over kernels.
#[derive(Default)]
struct Total {
    kernels: u64,
    known: u64,
    columns: [u64; COLUMNS.len()],
}

impl Total {
    fn of<'a>(kernels: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut total = Self::default();
        for kernel in kernels {
            total.kernels += 1;
            total.known += u64::from(count(kernel, "ranges") == count(kernel, "launches"));
            for (sum, column) in total.columns.iter_mut().zip(COLUMNS) {
                *sum += count(kernel, column);
            }
        }
        total
    }

    fn row(&self, label: &str) -> Vec<String> {
        let [launches, exact, ranges, rest @ ..] = self.columns;
        let share =
            if launches == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * ranges as f64 / launches as f64) };
        let numbers = [self.kernels, self.known, launches, exact, ranges].map(|number| number.to_string());
        let mut cells = vec![label.to_owned()];
        cells.extend(numbers);
        cells.push(share);
        cells.extend(rest.map(|number| number.to_string()));
        cells
    }
}

fn table(title: &str, rows: Vec<(String, Total)>) -> String {
    let mut table = Table::new(&[
        title,
        "kernels",
        "with ranges",
        "launches",
        "exact",
        "ranges",
        "share",
        "directions only",
        "several",
        "unknown",
        "indirect",
    ]);
    for (label, total) in rows {
        table.row(total.row(&label));
    }
    table.markdown() + "\n"
}

fn by_class(title: &str, kernels: &[&Value]) -> String {
    let of =
        |wanted: &[&str]| Total::of(kernels.iter().copied().filter(|kernel| wanted.contains(&class(name(kernel)))));
    let mut rows: Vec<(String, Total)> = TARGET.iter().map(|class| ((*class).to_owned(), of(&[class]))).collect();
    rows.push(("these four".to_owned(), of(&TARGET)));
    let others = CLASSES.iter().map(|(class, _)| *class).chain(["other"]).filter(|class| !TARGET.contains(class));
    let mut others: Vec<_> = others.map(|class| (class.to_owned(), of(&[class]))).collect();
    others.sort_by_key(|(_, total)| std::cmp::Reverse(total.columns[0]));
    rows.extend(others);
    rows.retain(|(_, total)| total.kernels > 0);
    table(title, rows)
}

/// The whole report.
pub fn text(found: &BTreeMap<String, Kernels>, top: usize) -> String {
    let every: Vec<&Value> = found.values().flatten().collect();
    let mut rows: Vec<_> = found.iter().map(|(workload, kernels)| (workload.clone(), Total::of(kernels))).collect();
    rows.push(("all".to_owned(), Total::of(every.iter().copied())));
    let mut text = table("workload", rows) + &by_class("class", &every);
    for (workload, kernels) in found {
        text += &by_class(&format!("class, {workload}"), &kernels.iter().collect::<Vec<_>>());
    }
    let gaps = |kernel: &Value| kernel["gaps"].as_array().cloned().unwrap_or_default();
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for gap in every.iter().flat_map(|kernel| gaps(kernel)) {
        *reasons.entry(gap["reason"].as_str().unwrap_or_default().to_owned()).or_default() += count(&gap, "launches");
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, launches)| std::cmp::Reverse(*launches));
    let mut table = Table::new(&["first reason for an unknown extent", "launches"]);
    for (reason, launches) in reasons {
        table.row([reason, launches.to_string()]);
    }
    text += &table.markdown();
    let mut worst: Vec<(&str, &Value)> =
        found.iter().flat_map(|(workload, kernels)| kernels.iter().map(|kernel| (workload.as_str(), kernel))).collect();
    worst.sort_by_key(|(_, kernel)| std::cmp::Reverse(without_ranges(kernel)));
    let _ = writeln!(text, "\nThe {top} most launched kernels without ranges, or with indirect accesses:");
    for (workload, kernel) in worst.into_iter().take(top).filter(|(_, kernel)| without_ranges(kernel) > 0) {
        let at = |gap: &Value| format!("{} at {:#x}", gap["reason"].as_str().unwrap_or_default(), count(gap, "at"));
        let mut why: Vec<String> =
            gaps(kernel).iter().map(|gap| format!("{} ({})", at(gap), count(gap, "launches"))).collect();
        let indirect = &kernel["indirect_gap"];
        if !indirect.is_null() {
            why.push(format!("indirect: {}", at(indirect)));
        }
        let why = if why.is_empty() { "nothing is known".to_owned() } else { why.join("; ") };
        let short: String = name(kernel).chars().take(200).collect();
        let _ = writeln!(text, "  {:5} {workload}: {short}\n        {why}", count(kernel, "launches"));
    }
    text
}
