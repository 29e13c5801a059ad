//! Demangling: names as the programmer wrote them.
//!
//! Owns the choice between the manglings of Rust and of C++. A name in neither stays as it is.

/// The name of a function or kernel as the programmer wrote it. Rust's hash at the end is left out.
pub fn demangle(name: &str) -> String {
    // Symbol versions (`memcpy@@GLIBC_2.14`) are no part of the name.
    let name = name.split_once('@').map_or(name, |(name, _)| if name.is_empty() { "@" } else { name });
    // Nor are the suffixes that compilers append to parts and copies of a function.
    const PARTS: [&str; 6] = [".isra.", ".constprop.", ".part.", ".cold", ".lto_priv.", ".llvm."];
    let end = PARTS.iter().filter_map(|part| name.find(part)).filter(|at| *at > 0).min();
    let name = without_unit(&name[..end.unwrap_or(name.len())]);
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // A variable in namespaces of C++ looks the same.
        return without_internal(format!("{rust:#}"));
    }
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
        && let Ok(text) = symbol.demangle()
    {
        return without_internal(text);
    }
    name.to_string()
}

/// A static function's name without the prefix that makes it unique among the files of relocatable
/// device code: `__nv_static_`, a length, and so many characters that stand for the file (nvcc
/// 13.0, `-rdc=true`).
fn without_unit(name: &str) -> &str {
    let own = || {
        let (length, rest) = name.strip_prefix("__nv_static_")?.split_once('_')?;
        let own = rest.get(length.parse().ok()?..)?.strip_prefix('_')?;
        (!own.is_empty()).then_some(own)
    };
    own().unwrap_or(name)
}

/// A name without the namespace that nvcc puts around what is internal to a file, and with C++'s
/// words for the one that has no name.
fn without_internal(mut name: String) -> String {
    for (begins, words) in [("_INTERNAL_", ""), ("_GLOBAL__N_", "(anonymous namespace)::")] {
        while let Some(at) = name.find(begins) {
            let Some(length) = name[at..].find("::") else { break };
            name.replace_range(at..at + length + 2, words);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn names_of_three_languages() {
        assert_eq!(demangle("_Z3addPfS_i"), "add(float*, float*, int)");
        assert_eq!(
            demangle("_ZN2at6native3mulERKNS_6TensorES3_"),
            "at::native::mul(at::Tensor const&, at::Tensor const&)"
        );
        assert_eq!(demangle("_Z6kernelIfEvPT_"), "void kernel<float>(float*)");
        assert_eq!(demangle("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
        assert_eq!(demangle("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        assert_eq!(demangle("main"), "main");
        assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(demangle("_Z3addi.isra.0.cold"), "add(int)");
        assert_eq!(demangle("copy.part.3"), "copy");
        let unit = "80237b83_4_s_cu__Z3extv";
        assert_eq!(demangle(&format!("__nv_static_24__{unit}__Z2rdPKiPii")), "rd(int const*, int*, int)");
        assert_eq!(demangle(&format!("__nv_static_24__{unit}_counter")), "counter");
        assert_eq!(
            demangle(&format!("__nv_static_24__{unit}__ZN35_GLOBAL__N__{unit}2anEPi")),
            "(anonymous namespace)::an(int*)"
        );
        assert_eq!(demangle(&format!("_ZN33_INTERNAL_{unit}35_GLOBAL__N__{unit}2dvE")), "(anonymous namespace)::dv");
    }

    #[test]
    fn what_is_no_mangled_name_stays() {
        for name in [
            "__nv_static_",
            "__nv_static_9__x_y",
            "__nv_static_x__y",
            "__nv_static_2__a",
            "",
            "_Z",
            "_ZN",
            "_R",
            "_Znonsense\u{1f600}",
            "Z3addPf",
            "_ZNSt",
            "cudaMalloc",
            "(anonymous)",
        ] {
            assert_eq!(demangle(name), name);
        }
        // Deep nesting neither overflows the stack nor takes forever.
        let deep = format!("_Z1f{}i", "P".repeat(100_000));
        let _ = demangle(&deep);
        let _ = demangle(&format!("_Z1f{}", "N".repeat(100_000)));
    }
}
