//! The wheel, installed where nothing else is: the commands, and what `import streamsan` offers.
//!
//! Owns the package's promises. The pytest plugin has its own tests; CuPy and RMM need a GPU, so
//! their hooks are tried on stand-ins.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use tests::run::{Ended, command, end};
use tests::{build, fake, packages, product};

use super::pytest_plugin;

/// An environment with nothing but the wheel in it, made once; without Python's packages nothing is
/// tried.
fn environment() -> Option<PathBuf> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || {
        if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
            return None;
        }
        // One for all tests of a run: cargo-nextest gives each a process of its own.
        let run = std::env::var("NEXTEST_RUN_ID").unwrap_or_else(|_| std::process::id().to_string());
        let folder = build::cache().join("runs").join(format!("wheel-{run}"));
        let stamp = build::once(&folder.join("ready"), |stamp| {
            remove_old();
            install(&folder);
            std::fs::write(stamp, "").map_err(|error| error.to_string())
        });
        stamp.unwrap_or_else(|error| panic!("{error}"));
        Some(folder.join("venv/bin"))
    };
    MADE.get_or_init(make).clone()
}

/// Packs the product, and installs the wheel into an environment.
fn install(folder: &Path) {
    let ran = |what: &mut Command| {
        let out = what.output().expect("it starts");
        let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.success(), "{what:?}: {text}");
    };
    let dist = folder.join("dist");
    let mut pack = Command::new(product::root().join("scripts/package"));
    ran(pack.arg("--quick").arg(product::bin()).arg("-o").arg(&dist));
    let mut made = std::fs::read_dir(&dist).expect("packages").map(|entry| entry.expect("entry").path());
    let wheel = made.find(|path| path.extension().is_some_and(|e| e == "whl")).expect("a wheel");
    let venv = folder.join("venv");
    // A pip of its own would take longer than all else here.
    packages::environment(&venv).unwrap_or_else(|error| panic!("{error}"));
    let mut pip = Command::new(packages::pip().unwrap_or_else(|error| panic!("{error}")));
    pip.args(["-m", "pip", "-q", "--disable-pip-version-check", "--python"]).arg(venv.join("bin/python"));
    ran(pip.args(["install", "--no-index", "--no-deps"]).arg(&wheel));
    std::fs::remove_dir_all(dist).expect("its packages are installed");
}

/// Removes what runs before this one have left: each holds the product. (Another may be going on.)
fn remove_old() {
    const LONGEST: Duration = Duration::from_secs(3 * 3600);
    let entries = std::fs::read_dir(build::cache().join("runs")).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("wheel-")) {
        let made = entry.metadata().and_then(|about| about.modified()).ok();
        if made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age > LONGEST) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The program of this name in the environment, which nothing else helps to find anything.
fn installed(bin: &Path, name: &str) -> Command {
    let mut command = command(bin.join(name));
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).env_remove("PYTHONPATH").current_dir(bin);
    command.env_remove("STREAMSAN_BIN");
    command
}

fn python(bin: &Path, text: &str) -> Ended {
    end(installed(bin, "python").args(["-c", text]))
}

#[test]
fn an_installed_wheel_checks_programs() {
    let Some(bin) = environment() else { return };
    let version = end(installed(&bin, "streamsan").arg("--version"));
    let first = version.out.lines().next();
    assert_eq!(first, Some(concat!("streamsan ", env!("CARGO_PKG_VERSION"))), "{}", version.err);
    assert!(version.out.contains("\nsimulator: "), "{}", version.out);
    let program = build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]);
    for (options, code) in [(["run", "--error-exitcode", "66", "--"], 66), (["run", "--error-exitcode", "3", "--"], 3)]
    {
        let mut racy = installed(&bin, "streamsan");
        let racy = end(racy.env("LD_LIBRARY_PATH", fake::folder()).args(options).arg(&program));
        assert_eq!(racy.code(), Some(code), "{}", racy.err);
    }
    assert_eq!(
        python(&bin, "import streamsan; assert streamsan.__version__ in open(streamsan.__file__).read()").code(),
        Some(0)
    );
}

/// The plugin comes with the wheel, and its names mean one module: pytest refuses a second one.
#[test]
fn pytest_takes_the_plugin_under_each_of_its_names() {
    let (Some(bin), Some(with_pytest)) = (environment(), pytest_plugin::python()) else { return };
    let lib = with_pytest.with_file_name("").join("../lib");
    let mut found = std::fs::read_dir(lib).expect("packages").flatten().map(|entry| entry.path().join("site-packages"));
    let packages = found.next().expect("pytest's packages");
    let folder = build::scratch("wheel_pytest");
    let run = |words: &[&str], text: &str| {
        std::fs::write(folder.join("test_streams.py"), text).expect("write");
        let mut pytest = installed(&bin, "python");
        pytest.env("PYTHONPATH", &packages).env("PYTHONDONTWRITEBYTECODE", "1").current_dir(&folder);
        end(pytest.args(["-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider"]).args(words))
    };
    let racy = format!("{}{}", pytest_plugin::TESTS, pytest_plugin::RACY);
    for name in [&[][..], &["-p", "streamsan"], &["-p", "streamsan.pytest_plugin"]] {
        for (text, code) in [(&*racy, 1), (pytest_plugin::TESTS, 0)] {
            let ended = run(&[name, &["--streamsan"]].concat(), text);
            assert_eq!(ended.code(), Some(code), "{name:?}: {}\n{}", ended.out, ended.err);
            assert_eq!(ended.out.contains("2 failed by races"), code == 1, "{name:?}: {}", ended.out);
        }
    }
    let ended = run(&["-p", "no:streamsan", "--streamsan"], pytest_plugin::TESTS);
    assert!(ended.code() == Some(4) && ended.err.contains("unrecognized arguments"), "{}", ended.err);
}

#[test]
fn a_script_is_told_how_to_start_and_starts_itself_again() {
    let Some(bin) = environment() else { return };
    let enable = "import streamsan; print('active', streamsan.enable(), streamsan.is_active())";
    let late = python(&bin, enable);
    assert_eq!(late.code(), Some(1), "{}", late.out);
    assert!(late.err.contains("NotActive: StreamSan does not watch this process"), "{}", late.err);
    assert!(late.err.contains("/streamsan/bin/streamsan "), "{}", late.err);
    let again = end(installed(&bin, "python").env("STREAMSAN", "1").args(["-c", enable]));
    assert_eq!((again.code(), again.out.as_str()), (Some(0), "active True True\n"), "{}", again.err);
    let script = build::scratch("wheel_script").join("script.py");
    std::fs::write(&script, format!("{enable}\n")).expect("write");
    let module = end(installed(&bin, "python").args(["-m", "streamsan"]).arg(&script));
    assert_eq!((module.code(), module.out.as_str()), (Some(0), "active True True\n"), "{}", module.err);
    let off = end(installed(&bin, "python").env("STREAMSAN_OPTIONS", "off").args(["-m", "streamsan"]).arg(&script));
    assert_eq!(off.code(), Some(1), "switched off is not active: {}", off.err);
}

#[test]
fn pools_are_told_only_under_the_shim_and_only_known_ones() {
    let Some(bin) = environment() else { return };
    // A stand-in with the members that the package uses of RMM, whose blocks are numbers.
    let text = "import streamsan, types, sys\n\
        class Upstream:\n\
        \x20   def allocate(self, size, stream): return 4096\n\
        \x20   def deallocate(self, block, size, stream): print('back', block, size)\n\
        mr = types.SimpleNamespace(get_current_device_resource=Upstream, set_current_device_resource=lambda r: seen.append(r),\n\
        \x20   CallbackMemoryResource=lambda take, give: (take, give))\n\
        rmm = types.ModuleType('rmm'); rmm.mr = mr; seen = []\n\
        told = streamsan.annotate(rmm)\n\
        if told: print(seen[0][0](64, None)); seen[0][1](4096, 64, None)\n\
        print(told, len(seen))\n\
        try: streamsan.annotate(sys)\n\
        except ValueError as e: print(str(e).split(',')[0])\n";
    let refused = "streamsan.annotate knows the modules cupy and rmm\n";
    let alone = python(&bin, text);
    assert_eq!((alone.code(), alone.out), (Some(0), format!("False 0\n{refused}")), "{}", alone.err);
    let script = build::scratch("wheel_pools").join("script.py");
    std::fs::write(&script, text).expect("write");
    let watched = end(installed(&bin, "python").args(["-m", "streamsan"]).arg(&script));
    assert_eq!(watched.out, format!("4096\nback 4096 64\nTrue 1\n{refused}"), "{}", watched.err);
}
