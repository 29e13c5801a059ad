//! GPUVerify's tests of CUDA: kernels without a host. Makes a program of each, which launches it as
//! its head says (`--blockDim`, `--gridDim`), with arguments by the types of its parameters.

use std::path::{Path, PathBuf};

use ::tests::build;
use anyhow::{Context, Result};

use super::sources::Source;
use super::table::Row;
use super::trial::{self, Code, Made};
use crate::workspace;

/// The commit of the tests.
pub const SOURCE: Source = Source {
    repository: "mc-imperial/gpuverify",
    commit: "49219770aad01231edd0d8e0fa3ed036006cf32a",
    paths: &["testsuite/CUDA"],
};

/// More threads than this in a block no device takes; more blocks than this show nothing new of two
/// threads, and take long.
const THREADS: u32 = 1024;
const BLOCKS: u32 = 64;

/// What a parameter that is a number is, unless the table says otherwise.
const NUMBER: &str = "5";

/// One test; its name is its folder below `testsuite/CUDA`.
pub fn test(unpacked: &Path, row: &Row, code: Code) -> Result<Made> {
    let file = unpacked.join("testsuite/CUDA").join(&row.name).join("kernel.cu");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(Made { file: compile(&file, &text, &row.arguments, code)?, arguments: Vec::new() })
}

/// The names of all tests.
pub fn names(unpacked: &Path) -> Result<Vec<String>> {
    let root = unpacked.join("testsuite/CUDA");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with("kernel.cu") {
                found.push(folder.strip_prefix(&root)?.display().to_string());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The compiler leaves out what nobody reads, which is most of these kernels: they are compiled as
/// they stand.
fn compile(file: &Path, text: &str, arguments: &[String], code: Code) -> Result<PathBuf> {
    let main = program(file, text, arguments)?;
    let source = build::generated("gpuverify.cu", &main);
    let harness = workspace::root().join("tests/inside_suites/gpuverify.cuh");
    let include = format!("-I{}", harness.parent().context("a file lies in a folder")?.display());
    let mut defines: Vec<String> = head(text).filter(|word| word.starts_with("-D")).map(str::to_owned).collect();
    if text.contains("cooperative_groups") {
        defines.push("-DSUITE_GROUPS".to_owned());
    }
    let options: Vec<String> =
        ["-G", "-std=c++17"].map(String::from).into_iter().chain([include]).chain(defines).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    trial::compile_including("gpuverify", code, &options, &[&source], &[&harness, file])
}

/// The words of a test's second line.
fn head(text: &str) -> impl Iterator<Item = &str> {
    text.lines().nth(1).unwrap_or_default().trim_start_matches('/').split_whitespace()
}

/// The dimensions behind an option of the head, made smaller until no more than `most` are left.
fn dimensions(text: &str, option: &str, most: u32) -> [u32; 3] {
    let given = head(text).find_map(|word| word.strip_prefix(option)).unwrap_or("1");
    let mut sizes = [1; 3];
    for (size, number) in sizes.iter_mut().zip(given.trim_matches(['[', ']']).split(',')) {
        *size = number.parse().unwrap_or(1).max(1);
    }
    while sizes.iter().product::<u32>() > most {
        let largest = sizes.iter_mut().max().expect("three sizes");
        *largest = largest.div_ceil(2);
    }
    sizes
}

/// The first kernel's name, and its parameters' names.
fn kernel(text: &str) -> Result<(String, Vec<String>)> {
    let (_, behind) = text.split_once("__global__").context("there is no kernel")?;
    let (before, list) = behind.split_once('(').context("a kernel has parameters")?;
    let name = last_word(before).to_owned();
    let mut depth = 1;
    let end = list.find(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth == 0
    });
    let list = &list[..end.context("the list of parameters ends")?];
    let parameters = list.split(',').map(|parameter| last_word(parameter).to_owned());
    Ok((name, parameters.filter(|name| !name.is_empty()).collect()))
}

fn last_word(text: &str) -> &str {
    text.rsplit(|letter: char| !letter.is_alphanumeric() && letter != '_').find(|word| !word.is_empty()).unwrap_or("")
}

/// Functions that are declared and nowhere defined get a body: what they give is nothing.
fn missing_functions(text: &str) -> String {
    let mut bodies = String::new();
    for line in text.lines() {
        let declared = line.trim().strip_prefix("__device__ ").and_then(|rest| rest.strip_suffix(";"));
        let Some(declared) = declared.filter(|declared| declared.ends_with(')') && !declared.contains("__attribute__"))
        else {
            continue;
        };
        let Some((before, _)) = declared.split_once('(') else { continue };
        let kind = before.trim_end().strip_suffix(last_word(before)).unwrap_or("void").trim();
        let gives = if kind == "void" { "" } else { " return {}; " };
        bodies.push_str(&format!("__device__ {declared} {{{gives}}}\n"));
    }
    bodies
}

/// The source of the program. An argument `NAME=VALUE` is the value of a parameter; with `&`, the
/// address of a function of the device.
fn program(file: &Path, text: &str, arguments: &[String]) -> Result<String> {
    let (name, parameters) = kernel(text)?;
    let mut values = vec![NUMBER.to_owned(); parameters.len().max(1)];
    let mut functions = String::new();
    for argument in arguments {
        let (parameter, value) = argument.split_once('=').with_context(|| format!("NAME=VALUE: {argument}"))?;
        let at = parameters.iter().position(|known| known == parameter);
        let at = at.with_context(|| format!("{name} has no parameter {parameter}"))?;
        values[at] = match value.strip_prefix('&') {
            Some(function) => {
                functions.push_str(&format!(
                    "__global__ void suite_address_{at}(long long* to) {{ *to = (long long)(void*)&{function}; }}\n"
                ));
                format!("suite_function(suite_address_{at})")
            }
            None => value.to_owned(),
        };
    }
    let [grid, block] = [("--gridDim=", BLOCKS), ("--blockDim=", THREADS)].map(|(option, most)| {
        let [x, y, z] = dimensions(text, option, most);
        format!("dim3({x}, {y}, {z})")
    });
    let whole = text.contains("grid_group");
    Ok(format!(
        "#include \"gpuverify.cuh\"\n#include \"{}\"\n{}{functions}\
         static long long suite_function(void (*kernel)(long long*)) {{\n    \
             long long* to = nullptr;\n    \
             suite::check(cudaMallocManaged(&to, sizeof(*to)));\n    \
             kernel<<<1, 1>>>(to);\n    \
             suite::check(cudaDeviceSynchronize());\n    \
             return *to;\n}}\n\
         int main() {{\n    \
             (void)suite_function;\n    \
             long long values[] = {{{}}};\n    \
             suite::launch({name}, {grid}, {block}, {whole}, values);\n}}\n",
        file.display(),
        missing_functions(text),
        values.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "//pass\n//--blockDim=[64,64,64] --gridDim=64 -DWIDTH=8 --no-inline\n\
        __device__ int other(void);\n__device__ void done() {}\n__device__ int always() __attribute__((always_inline));\n\
        __global__ void\nfoo(int* p, float * __restrict q, funcType f, int w)\n{\n}\n";

    #[test]
    fn the_head_gives_sizes_that_a_device_takes() {
        assert_eq!(dimensions(TEXT, "--gridDim=", 64), [64, 1, 1]);
        assert_eq!(dimensions(TEXT, "--blockDim=", 1024).iter().product::<u32>(), 1024);
        assert_eq!(dimensions("//pass\n//--blockDim=2048\n", "--blockDim=", 1024), [1024, 1, 1]);
        assert_eq!(dimensions("//pass\n//--blockDim=2\n", "--gridDim=", 64), [1, 1, 1]);
        assert_eq!(head(TEXT).filter(|word| word.starts_with("-D")).collect::<Vec<_>>(), ["-DWIDTH=8"]);
    }

    #[test]
    fn a_kernel_is_found_with_its_parameters_and_what_it_lacks() {
        let (name, parameters) = kernel(TEXT).expect("a kernel");
        assert_eq!((name.as_str(), parameters.join(" ").as_str()), ("foo", "p q f w"));
        assert_eq!(missing_functions(TEXT), "__device__ int other(void) { return {}; }\n");
        let none = kernel("__global__ void k() {}").expect("a kernel");
        assert!(none.1.is_empty());
        assert!(kernel("__device__ int f() { return 1; }").is_err());
    }

    #[test]
    fn arguments_are_values_of_parameters_and_addresses_of_functions() {
        let words = ["w=7".to_owned(), "f=&twice".to_owned()];
        let made = program(Path::new("k.cu"), TEXT, &words).expect("a program");
        assert!(made.contains("values[] = {5, 5, suite_function(suite_address_2), 7}"), "{made}");
        assert!(made.contains("*to = (long long)(void*)&twice"), "{made}");
        assert!(program(Path::new("k.cu"), TEXT, &["x=1".to_owned()]).is_err());
    }
}
