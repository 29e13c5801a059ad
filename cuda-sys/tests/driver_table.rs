//! Checks what the table promises, without headers: classification, numbering, look-up, and the
//! shape that callbacks rely on.

use cuda_sys::*;
use std::collections::{BTreeMap, BTreeSet};

fn suffixed(name: &str) -> Option<&str> {
    name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds"))
}

#[test]
fn numbers_are_positions() {
    for (i, function) in DRIVER_FUNCTIONS.iter().enumerate() {
        assert_eq!(function.index as usize, i, "{}", function.name);
    }
    for (i, function) in RUNTIME_FUNCTIONS.iter().enumerate() {
        assert_eq!(function.index as usize, i, "{}", function.name);
    }
    assert_eq!(id::cuLaunchKernel_ptsz.name(), "cuLaunchKernel_ptsz");
    assert_eq!(runtime_id::cudaMemcpy_ptds.name(), "cudaMemcpy_ptds");
    assert_eq!(runtime_id::cudaMemcpy_ptds.info().family, "cudaMemcpy");
    assert_eq!(FnId::COUNT, DRIVER_FUNCTIONS.len());
}

#[test]
fn look_up_finds_exact_names_only() {
    for function in DRIVER_FUNCTIONS {
        assert_eq!(lookup(function.name.as_bytes()), Some(FnId(function.index)), "{}", function.name);
    }
    for absent in [
        "",
        "c",
        "cu",
        "cudnnCreate",
        "cublasCreate_v2",
        "cudaMalloc",
        "cuLaunchKerne",
        "cuLaunchKernelX",
        "culaunchkernel",
        "cuLaunchKernel\0",
        "cuMemGetAttribute",
        "dlsym",
        "cuMemcpyHtoD_v2_ptsz",
        "cuInit_v2",
    ] {
        assert_eq!(lookup(absent.as_bytes()), None, "{absent:?}");
    }
    // Every prefix and every extension of a name is another name, or none.
    for function in DRIVER_FUNCTIONS {
        for end in 0..function.name.len() {
            let found = lookup(&function.name.as_bytes()[..end]);
            assert!(found.is_none_or(|id| id.name() == &function.name[..end]), "{}", function.name);
        }
    }
}

#[test]
fn stream_0_means_what_the_suffix_says() {
    let by_name: BTreeMap<&str, &FunctionInfo> = DRIVER_FUNCTIONS.iter().map(|f| (f.name, f)).collect();
    let twin = |name: &str| ["_ptsz", "_ptds"].iter().any(|suffix| by_name.contains_key(&*format!("{name}{suffix}")));
    let per_thread: BTreeSet<&str> =
        DRIVER_FUNCTIONS.iter().filter(|f| f.stream0 == Stream0::PerThread).map(|f| f.family).collect();
    for function in DRIVER_FUNCTIONS {
        let name = function.name;
        match (suffixed(name), function.stream0) {
            (Some(base), Stream0::PerThread) => {
                let legacy = by_name.get(base).or_else(|| by_name.get(function.row));
                assert!(legacy.is_some_and(|f| f.stream0 == Stream0::Legacy && f.row == function.row), "{name}");
            }
            (None, Stream0::Legacy) if twin(name) => {}
            // From before there were per-thread default streams: first versions, and launches
            // without a grid.
            (None, Stream0::Legacy) => {
                let old = per_thread.contains(function.family) || name.starts_with("cuLaunch");
                assert!(
                    old || FnId(function.index).is_interop(),
                    "{name} has no per-thread twin: is it really about the legacy stream?"
                );
            }
            (None, Stream0::Plain) => {
                assert!(
                    !twin(name) && !per_thread.contains(function.family),
                    "{name} has a per-thread twin, so it is legacy"
                );
            }
            (suffix, stream0) => panic!("{name}: {suffix:?} but {stream0:?}"),
        }
    }
    let per_thread = DRIVER_FUNCTIONS.iter().filter(|f| f.stream0 == Stream0::PerThread);
    assert_eq!(per_thread.filter(|f| !FnId(f.index).is_interop()).count(), 105);
}

#[test]
fn functions_that_take_a_stream_know_what_0_means() {
    // The exceptions take a stream that must exist.
    let exceptions = ["cuStreamDestroy", "cuStreamDestroy_v2", "cuStreamGetGreenCtx"];
    macro_rules! check {
        ($($when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
           [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;)*) => {
            $( check!(@row $(($($ty),*))? [$($zero $symbol),+]); )*
        };
        (@row [$($alias:tt)*]) => {};
        (@row ($($ty:ty),*) [$($zero:ident $symbol:ident),+]) => {
            let takes_stream = [$(stringify!($ty)),*].contains(&"CUstream");
            $( assert!(
                !takes_stream || stringify!($zero) != "plain" || exceptions.contains(&stringify!($symbol)),
                "{} takes a stream", stringify!($symbol)
            ); )+
        };
    }
    driver_api!(check);
}

#[test]
fn frees_are_recorded_before_and_waits_on_both_sides() {
    for function in DRIVER_FUNCTIONS.iter().filter(|f| !FnId(f.index).is_interop()) {
        let (family, when) = (function.family, function.when);
        let frees = ["Free", "Destroy", "Release", "Unload", "Unmap", "Unbind", "Unregister", "Detach"];
        let frees = frees.iter().any(|word| family.contains(word)) && !family.contains("AddMemFree");
        let callbacks = ["cuDeviceUnregisterAsyncNotification", "cuLogsUnregisterCallback", "cuCoredump"];
        if frees && !callbacks.iter().any(|prefix| family.starts_with(prefix)) && !family.contains("GetParams") {
            assert!(matches!(when, When::Before | When::Both), "{family}: {when:?}");
        }
        if ["Synchronize", "Query"].iter().any(|word| family.ends_with(word)) && !family.contains("LogicalEndpoint") {
            assert_eq!(when, When::Both, "{family}");
        }
        // A copy or set that is not asynchronous holds the host up.
        if (family.starts_with("cuMemcpy") || family.starts_with("cuMemset")) && !family.ends_with("Async") {
            assert_eq!(when, When::Both, "{family}");
        }
    }
}

#[test]
fn nothing_with_an_effect_is_skipped() {
    let effects = [
        "Alloc",
        "Memcpy",
        "Memset",
        "cuLaunch",
        "WaitEvent",
        "EventRecord",
        "Create",
        "Import",
        "Map",
        "SetParams",
        "LoadData",
        "Instantiate",
        "Capture",
        "PushCurrent",
        "SetCurrent",
        "Prefetch",
        "Discard",
        "WriteValue",
        "WaitValue",
        "MemOp",
        "Semaphore",
        "AddNode",
        "Dependencies",
        "Encode",
        "Upload",
        "Bind",
        "Advise",
        "GetProcAddress",
        "Retain",
    ];
    // Getters whose names contain such a word, and settings of what is mapped later.
    let harmless = |family: &str| {
        family.contains("Get") && !family.contains("GetProcAddress")
            || family == "cuTensorMapSetAllocationClass"
            || family == "cuGraphicsResourceSetMapFlags"
            || family.starts_with("cuTexRefSetMipmap")
    };
    for function in DRIVER_FUNCTIONS.iter().filter(|f| f.when == When::Skip && !FnId(f.index).is_interop()) {
        let word = effects.iter().find(|word| function.family.contains(**word));
        assert!(word.is_none() || harmless(function.family), "{} is skipped, but: {word:?}", function.name);
    }
    for needed in
        ["cuMemHostGetDevicePointer", "cuPointerSetAttribute", "cuGraphHostNodeGetParams", "cuGraphNodeGetParams"]
    {
        let functions = DRIVER_FUNCTIONS.iter().filter(|f| f.family == needed);
        assert!(functions.clone().count() > 0 && functions.clone().all(|f| f.when != When::Skip), "{needed}");
    }
}

#[test]
fn the_symbols_of_a_row_are_one_family() {
    for function in DRIVER_FUNCTIONS {
        let row = lookup(function.row.as_bytes()).unwrap_or_else(|| panic!("the row {} has no symbol", function.row));
        assert_eq!(row.info().family, function.family, "{}", function.name);
    }
    assert_eq!(id::cuMemcpyHtoDAsync_v2_ptsz.info().family, "cuMemcpyHtoDAsync");
    assert_eq!(id::cuMemsetD2D8_v2_ptds.info().family, "cuMemsetD2D8");
    assert_eq!(id::cuArray3DCreate_v2.info().family, "cuArray3DCreate");
    assert_eq!(id::cuMemsetD8.info().family, "cuMemsetD8");
}

/// The numbers that documentation quotes. A change of the table changes them here, on purpose.
#[test]
fn the_numbers() {
    let cuda_h: Vec<_> =
        DRIVER_FUNCTIONS.iter().filter(|f| !FnId(f.index).is_interop() && !f.name.starts_with("cuProfiler")).collect();
    let count = |when| {
        let of: Vec<_> = cuda_h.iter().filter(|f| f.when == when).collect();
        (of.iter().map(|f| f.row).collect::<BTreeSet<_>>().len(), of.len())
    };
    let families: BTreeSet<_> = cuda_h.iter().map(|f| f.family).collect();
    let rows: BTreeSet<_> = cuda_h.iter().map(|f| f.row).collect();
    println!("cuda.h: {} families, {} rows, {} symbols", families.len(), rows.len(), cuda_h.len());
    for when in [When::Before, When::After, When::Both, When::Skip] {
        println!("{when:?}: {:?} (rows, symbols)", count(when));
    }
    let noted = RUNTIME_FUNCTIONS.iter().filter(|f| f.noted).count();
    println!(
        "interop: {}, runtime: {noted} noted of {}",
        DRIVER_FUNCTIONS.len() - cuda_h.len() - 3,
        RUNTIME_FUNCTIONS.len()
    );
    assert_eq!((families.len(), rows.len(), cuda_h.len()), (485, 547, 685));
    assert_eq!(
        [When::Before, When::After, When::Both, When::Skip].map(count),
        [(17, 18), (252, 321), (93, 139), (185, 207)]
    );
}

/// A callback that makes exported wrappers, as the shim does: the row's operation gets what stream
/// 0 means.
#[allow(dead_code, clippy::too_many_arguments)]
mod wrappers {
    use super::*;
    use core::sync::atomic::{AtomicU32, Ordering};

    pub static CALLS: AtomicU32 = AtomicU32::new(0);

    macro_rules! ops {
        ($($when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
           [$($aliases:tt)*] $($effect:ident $($missing:literal)?)?;)*) => {
            #[allow(non_snake_case)]
            mod ops {
                use super::*;
                $( ops!(@op $name $(($($arg: $ty),*))?); )*
            }
        };
        (@op $name:ident) => {};
        (@op $name:ident ($($arg:ident: $ty:ty),*)) => {
            pub fn $name(zero: Stream0, $($arg: $ty),*) -> CUresult {
                $( let _ = $arg; )*
                CALLS.fetch_add(1, Ordering::Relaxed);
                CUresult(zero as u32)
            }
        };
    }
    driver_api!(ops);

    macro_rules! exported {
        ([$($extra:tt)*] $($when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
           [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;)*) => {
            $( exported!(@row $name $(($($arg: $ty),*))? [$($zero $symbol),+]); )*
        };
        (@row $name:ident [$($aliases:tt)*]) => {};
        (@row $name:ident $args:tt [$($zero:ident $symbol:ident),+]) => {
            $( exported!(@symbol $name $args $zero $symbol); )+
        };
        (@symbol $name:ident ($($arg:ident: $ty:ty),*) $zero:ident $symbol:ident) => {
            #[allow(non_snake_case)]
            pub unsafe extern "C" fn $symbol($($arg: $ty),*) -> CUresult {
                ops::$name(exported!(@zero $zero), $($arg),*)
            }
        };
        (@zero plain) => { Stream0::Plain };
        (@zero legacy) => { Stream0::Legacy };
        (@zero per_thread) => { Stream0::PerThread };
    }
    driver_api!(exported, [some extra tokens]);
}

#[test]
fn a_callback_can_make_wrappers_of_every_row() {
    let launch: pfn::cuLaunchKernel = wrappers::cuLaunchKernel_ptsz;
    let null = core::ptr::null_mut();
    // SAFETY: the wrapper only counts the call.
    let result = unsafe { launch(CUfunction::NULL, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, null, null) };
    assert_eq!(result, CUresult(Stream0::PerThread as u32));
    // SAFETY: as above.
    assert_eq!(unsafe { wrappers::cuMemFree_v2(0) }, CUresult(Stream0::Plain as u32));
    assert!(wrappers::CALLS.load(core::sync::atomic::Ordering::Relaxed) >= 2);
}
