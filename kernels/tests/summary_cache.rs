//! Summaries kept on disk. A summary that comes back says the same of every launch as the one that
//! was made. Whatever is wrong with an entry or its folder, the kernel is analysed as if there were
//! none.

use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{Cache, CodeImage, LaunchArgs, Summary};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("streamsan-cache-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// All that a summary says: of itself, and of launches that differ in shape and numbers.
fn says(s: &Summary) -> String {
    let mut out = format!(
        "{} {:?} {:?} {:?} {:?} {} {} {}",
        s.name(),
        s.params(),
        s.words(),
        s.indirect(),
        s.dependency(),
        s.has_system_fence(),
        s.has_partial_copies(),
        s.access_count(),
    );
    out += &format!("{:?}", s.instructions().collect::<Vec<_>>());
    let size = s.params().iter().map(|p| usize::from(p.offset) + usize::from(p.size)).max().unwrap_or(0);
    for (grid, block, number) in
        [([6, 3, 2], [128, 1, 1], 1000u32), ([1, 1, 1], [32, 4, 1], 7), ([64, 1, 1], [256, 1, 1], 4096)]
    {
        let mut params: Vec<u8> = number.to_le_bytes().into_iter().cycle().take(size.next_multiple_of(4)).collect();
        for w in s.words() {
            if let Some(word) = params.get_mut(usize::from(w.offset)..usize::from(w.offset) + 8) {
                word.copy_from_slice(&(0x7f00_0000_0000 + (u64::from(w.offset) << 32)).to_le_bytes());
            }
        }
        params.truncate(size);
        let mut accesses = Vec::new();
        s.evaluate(&LaunchArgs::new(grid, block, &params), &mut accesses);
        for a in &accesses {
            out += &format!("\n{a:?}");
            if let kernels::Base::Global(symbol) = a.base {
                out += &format!(" {} {}", s.symbol(symbol), s.is_constant(symbol));
            }
        }
    }
    out
}

/// What the kernels of these modules do, through a cache.
fn all(cache: Option<Arc<Cache>>) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx")).expect("modules").flatten();
    let mut found = BTreeMap::new();
    for file in files.map(|f| f.path()).filter(|p| p.extension().is_some_and(|e| e == "ptx")) {
        let code = CodeRef::Ptx(std::fs::read_to_string(&file).expect("a text").into());
        let code = CodeImage::from_code(code, Arch::new(90)).expect("code");
        let code = code.with_cache(cache.clone());
        for name in code.kernel_names() {
            let key = format!("{} {name}", file.display());
            let summary = code.summary(name).expect("a summary");
            found.insert(key, says(&summary));
            summary.keep();
        }
    }
    assert!(found.len() > 15);
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).expect("a folder").flatten().map(|e| e.path()).collect();
    paths.sort();
    paths
}

/// The modules through a new cache in a folder, which must say what is true; how many entries were
/// written.
fn written(folder: &Path, truth: &BTreeMap<String, String>) -> u32 {
    let cache = Arc::new(Cache::new(folder));
    assert_eq!(&all(Some(cache.clone())), truth);
    cache.written()
}

#[test]
fn what_comes_back_is_what_was_kept() {
    let (folder, truth) = (folder("same"), all(None));
    let first = written(&folder, &truth);
    assert!(first > 8, "{first} kernels are worth keeping");
    assert_eq!(entries(&folder).len(), first as usize);
    assert_eq!(written(&folder, &truth), 0);
    std::fs::remove_dir_all(folder).unwrap();
}

/// Threads that keep the first entries at one time wait for the folder: it is made by one of them.
#[test]
fn threads_may_keep_the_first_entries_together() {
    let texts: Vec<String> = (0..4)
        .map(|k| {
            let body = "st.global.u32 [%d1], %r1; add.u64 %d1, %d1, 4; ".repeat(50);
            format!(
                ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k{k}(.param .u64 o) {{\n\
                 .reg .b32 %r<2>; .reg .b64 %d<2>; ld.param.u64 %d1, [o]; mov.u32 %r1, %tid.x;\n{body}ret; }}"
            )
        })
        .collect();
    for round in 0..20 {
        let top = folder(&format!("together-{round}"));
        let deep = (0..40).fold(top.clone(), |path, _| path.join("deeper"));
        let (cache, start) = (Arc::new(Cache::new(&deep)), std::sync::Barrier::new(texts.len()));
        std::thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| {
                    let code = CodeImage::from_code(CodeRef::Ptx(text.clone().into()), Arch::new(90)).expect("code");
                    let code = code.with_cache(Some(cache.clone()));
                    let name = code.kernel_names().next().expect("a kernel").to_string();
                    start.wait();
                    code.summary(&name).expect("a summary").keep();
                });
            }
        });
        assert_eq!((entries(&deep).len(), cache.written()), (texts.len(), texts.len() as u32), "round {round}");
        std::fs::remove_dir_all(top).unwrap();
    }
}

/// Evaluates a kernel for these numbers, through a new cache; what was found, and the entries that
/// were written.
fn copies(folder: &Path, sizes: &[u32]) -> (String, u32) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/triton-layer_norm-1-100.ptx");
    let cache = Arc::new(Cache::new(folder));
    let text = CodeRef::Ptx(std::fs::read_to_string(file).expect("a text").into());
    let code = CodeImage::from_code(text, Arch::new(90)).expect("code").with_cache(Some(cache.clone()));
    let name = code.kernel_names().next().expect("a kernel").to_string();
    let (summary, mut found) = (code.summary(&name).expect("a summary"), Vec::new());
    let pointers = summary.words().iter().map(|w| usize::from(w.offset)).collect::<Vec<_>>();
    let bytes = summary.params().iter().map(|p| usize::from(p.offset) + usize::from(p.size)).max().unwrap();
    for n in sizes {
        let mut params: Vec<u8> = n.to_le_bytes().into_iter().cycle().take(bytes.next_multiple_of(4)).collect();
        for at in &pointers {
            params[*at..at + 8].copy_from_slice(&(0x7f00_0000_0000 + ((*at as u64) << 32)).to_le_bytes());
        }
        params.truncate(bytes);
        summary.evaluate(&LaunchArgs::new([8, 1, 1], [128, 1, 1], &params), &mut found);
    }
    summary.keep();
    (format!("{found:?}"), cache.written())
}

#[test]
fn launches_are_evaluated_once() {
    let folder = folder("results");
    let fresh = copies(Path::new("/proc/nothing/here"), &[1000, 5000]).0;
    // The summary, and its results.
    assert_eq!(copies(&folder, &[1000, 5000]), (fresh.clone(), 2));
    assert_eq!(copies(&folder, &[1000, 5000]), (fresh.clone(), 0));
    assert_eq!(copies(&folder, &[5000, 1000, 5000]).1, 0);
    // Another launch is added to what is there.
    assert_eq!(copies(&folder, &[77]).1, 1);
    assert_eq!(copies(&folder, &[77, 1000, 5000]).1, 0);
    // One kernel's results are not another's, nor are a summary's bytes.
    let results = entries(&folder).into_iter().find(|p| p.extension().is_some_and(|e| e == "results")).unwrap();
    for other in [std::fs::read(results.with_extension("kernel")).unwrap(), b"SSRESLT1".to_vec(), Vec::new()] {
        std::fs::write(&results, other).unwrap();
        assert_eq!(copies(&folder, &[1000, 5000]), (fresh.clone(), 1));
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn damaged_entries_count_as_none() {
    let (folder, truth) = (folder("damage"), all(None));
    let many = written(&folder, &truth);
    let damage: [fn(&mut Vec<u8>); 7] = [
        |b| b.clear(),
        |b| b.truncate(b.len() / 2),
        |b| b.push(0),
        |b| b[0] ^= 1,
        // The key, the sum, and what it is the sum of.
        |b| b[9] ^= 1,
        |b| b[25] ^= 0x80,
        |b| *b.last_mut().unwrap() ^= 1,
    ];
    for harm in damage {
        for path in entries(&folder) {
            let mut bytes = std::fs::read(&path).unwrap();
            harm(&mut bytes);
            std::fs::write(&path, bytes).unwrap();
        }
        assert_eq!(written(&folder, &truth), many);
        // Mended by that.
        assert_eq!(written(&folder, &truth), 0);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn entries_of_others_count_as_none() {
    let (folder, truth) = (folder("others"), all(None));
    let many = written(&folder, &truth);
    // Each under the name of the next, as if names were no longer made the same way.
    let paths = entries(&folder);
    let bytes: Vec<Vec<u8>> = paths.iter().map(|p| std::fs::read(p).unwrap()).collect();
    for (path, bytes) in paths.iter().zip(bytes.iter().cycle().skip(1)) {
        std::fs::write(path, bytes).unwrap();
    }
    assert_eq!(written(&folder, &truth), many);
    // Folders, and links to nowhere, where entries should be.
    let paths = entries(&folder);
    for (i, path) in paths.iter().enumerate() {
        std::fs::remove_file(path).unwrap();
        if i % 2 == 0 {
            std::fs::create_dir(path).unwrap();
        } else {
            std::os::unix::fs::symlink("/nowhere/at/all", path).unwrap();
        }
    }
    written(&folder, &truth);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn folders_that_can_not_be_written() {
    let (folder, truth) = (folder("unwritable"), all(None));
    std::fs::write(&folder, "a file").unwrap();
    written(&folder, &truth);
    written(&folder.join("below"), &truth);
    written(Path::new("/proc/nothing/here"), &truth);
    assert_eq!(std::fs::read(&folder).unwrap(), b"a file");
    std::fs::remove_file(&folder).unwrap();
    // Entries are used all the same (the superuser could write).
    written(&folder, &truth);
    let mode = |m| std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(m)).unwrap();
    mode(0o500);
    assert_eq!(written(&folder, &truth), 0);
    mode(0o700);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_folder_stays_small_and_keeps_what_is_not_ours() {
    let (folder, truth) = (folder("bound"), all(None));
    written(&folder, &truth);
    let size = || entries(&folder).iter().map(|p| p.metadata().unwrap().len()).sum::<u64>();
    let whole = size();
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    let others = ["thesis.tex", "0123456789abcdef0123456789abcdef.txt", "short.kernel"].map(|n| folder.join(n));
    others.iter().for_each(|p| std::fs::write(p, "mine").unwrap());
    let stale = folder.join("0123456789abcdef0123456789abcdef.1-1.tmp");
    std::fs::write(&stale, "half").unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    std::fs::File::open(&stale).unwrap().set_modified(old).unwrap();
    let cache = Arc::new(Cache::limited(&folder, whole / 2));
    assert_eq!(all(Some(cache)), truth);
    assert!(size() <= whole / 2 + whole / 32 + 64, "{} of {whole}", size());
    assert!(others.iter().all(|p| std::fs::read(p).unwrap() == b"mine"));
    assert!(!stale.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

/// One of several processes at once: see below.
#[test]
#[ignore = "run by processes_at_once"]
fn process() {
    written(Path::new(&std::env::var_os("CACHE_FOLDER").expect("a folder")), &all(None));
}

#[test]
fn processes_at_once() {
    let (folder, truth) = (folder("processes"), all(None));
    let child = || {
        let mut me = Command::new(std::env::current_exe().unwrap());
        me.args(["--exact", "summary_cache::process", "--ignored"]).env("CACHE_FOLDER", &folder).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(|_| child()).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    assert!(entries(&folder).iter().all(|p| p.extension().is_some_and(|e| e == "kernel" || e == "results")));
    assert_eq!(written(&folder, &truth), 0);
    std::fs::remove_dir_all(folder).unwrap();
}
