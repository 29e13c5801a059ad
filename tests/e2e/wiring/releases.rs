//! What a release is made of: its notes, the list of what is inside, checksums, the Debian package.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;
use tests::run::{command, end, end_within};
use tests::{build, product};

use super::tools;

fn script(name: &str) -> Command {
    command(product::root().join("scripts/release").join(name))
}

#[test]
fn the_notes_are_the_changelog_s_section() {
    // A copy of what the script reads, with a section of this version.
    let folder = build::scratch("release_notes");
    for made in ["scripts/release", "python/streamsan"] {
        fs::create_dir_all(folder.join(made)).expect("a folder");
    }
    for file in ["scripts/release/notes", "python/streamsan/__init__.py", "Cargo.toml"] {
        fs::copy(product::root().join(file), folder.join(file)).expect("a copy");
    }
    let version = env!("CARGO_PKG_VERSION");
    let notes = |changelog: &str, tag: &str| {
        fs::write(folder.join("CHANGELOG.md"), changelog).expect("written");
        end(command(folder.join("scripts/release/notes")).arg(tag))
    };
    let text = format!(
        "# Changelog\n\n## Unreleased\n\n- later\n\n## {version} - 2026-12-01\n\n### Added\n\n- one\n\n## 0.0.1\n\n- old\n"
    );
    let told = notes(&text, &format!("v{version}"));
    assert_eq!((told.code(), told.out.as_str()), (Some(0), "### Added\n\n- one\n"), "{}", told.err);
    for (changelog, tag) in [(&*text, "v9.9.9"), ("# Changelog\n\n## Unreleased\n", &*format!("v{version}"))] {
        let told = notes(changelog, tag);
        assert_eq!((told.code(), told.out.as_str()), (Some(1), ""), "{tag}");
    }
}

#[test]
fn the_list_of_what_is_inside_names_each_linked_crate() {
    let made = end_within(&mut script("sbom"), 2 * tests::run::PATIENCE);
    assert_eq!(made.code(), Some(0), "{}", made.err);
    let bom: Value = serde_json::from_str(&made.out).expect("JSON");
    assert_eq!((&bom["bomFormat"], &bom["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
    let components = bom["components"].as_array().expect("a list");
    let names: Vec<&str> = components.iter().filter_map(|c| c["name"].as_str()).collect();
    for linked in ["libc", "clap", "serde_json", "parquet", "object"] {
        assert!(names.contains(&linked), "{linked} is not in {names:?}");
    }
    for other in ["proptest", "insta", "analyzer", "tests", "xtask"] {
        assert!(!names.contains(&other), "{other} is not linked, or our own");
    }
    assert!(components.iter().all(|c| c["licenses"][0]["expression"].is_string()), "each has a licence");
    // Each reference leads somewhere, and nothing is listed twice.
    let mut known: Vec<&str> = components.iter().filter_map(|c| c["bom-ref"].as_str()).collect();
    let count = known.len();
    known.sort_unstable();
    known.dedup();
    assert_eq!(known.len(), count);
    for entry in bom["dependencies"].as_array().expect("a list") {
        for to in entry["dependsOn"].as_array().expect("a list") {
            assert!(known.binary_search(&to.as_str().expect("text")).is_ok(), "{to}");
        }
    }
    assert_eq!(end(&mut script("sbom")).out, made.out, "twice the same");
}

#[test]
fn checksums_and_the_debian_package() {
    let folder = build::scratch("release_deb");
    let processor = std::env::consts::ARCH;
    let name = format!("streamsan-{}-{processor}-linux", env!("CARGO_PKG_VERSION"));
    let root = folder.join(&name);
    for (file, mode) in [
        ("bin/streamsan", 0o755),
        ("bin/libstreamsan.so", 0o755),
        ("share/man/man1/streamsan.1", 0o644),
        ("share/bash-completion/completions/streamsan", 0o644),
        ("include/streamsan.h", 0o644),
        ("lib/cmake/StreamSan/StreamSanConfig.cmake", 0o644),
        ("LICENSE", 0o644),
        ("ARCHITECTURE.md", 0o644),
    ] {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        // A small file for a processor, and texts.
        let from = if file.starts_with("bin/") { "/bin/true" } else { "/etc/passwd" };
        fs::copy(from, &path).expect("a copy");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("rights");
    }
    let archive = folder.join(format!("{name}.tar.gz"));
    assert!(
        Command::new("tar")
            .arg("-czf")
            .arg(&archive)
            .arg("-C")
            .arg(&folder)
            .arg(&name)
            .status()
            .expect("tar")
            .success()
    );
    let package = |at: &std::path::Path| {
        let made = end(script("deb").arg(at));
        assert_eq!(made.code(), Some(0), "{}", made.err);
        made.out.trim().to_owned()
    };
    let deb = package(&archive);
    let first = fs::read(&deb).expect("the package");
    let ask = |words: &[&str]| end(command("dpkg-deb").args(words).arg(&deb)).out;
    let control = ask(&["--field"]);
    for line in ["Package: streamsan", "Architecture: ", "Depends: libc6 (>= 2."] {
        assert!(control.contains(line), "{control}");
    }
    let listed = ask(&["--contents"]);
    for line in [
        "./usr/lib/streamsan/libstreamsan.so",
        "./usr/bin/streamsan -> ../lib/streamsan/streamsan",
        "./usr/share/man/man1/streamsan.1.gz",
        "./usr/lib/cmake/StreamSan/StreamSanConfig.cmake",
        "./usr/share/doc/streamsan/copyright",
    ] {
        assert!(listed.contains(line), "{line}: {listed}");
    }
    assert!(!listed.contains("ARCHITECTURE") && listed.lines().all(|line| line.contains("root/root")), "{listed}");
    fs::remove_file(&deb).expect("removed");
    assert!(fs::read(package(&archive)).expect("the package") == first, "the same archive gives the same bytes");

    let out = folder.join("out");
    fs::create_dir(&out).expect("a folder");
    fs::copy(&deb, out.join("a.deb")).expect("a copy");
    fs::write(out.join("b c.whl"), "wheel").expect("written");
    for _ in 0..2 {
        assert_eq!(end(script("checksums").arg(&out)).code(), Some(0));
        let sums = fs::read_to_string(out.join("SHA256SUMS")).expect("the sums");
        assert_eq!(sums.lines().count(), 2, "{sums}");
        let check = end(command("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&out));
        assert_eq!(check.code(), Some(0), "{}{}", check.out, check.err);
    }
}

/// A small workspace that `scripts/build` builds: one crate that is the same anywhere, and one that
/// holds the name of its folder.
fn workspace(folder: &std::path::Path) {
    let crate_of = |name: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n"
        )
    };
    // Its panic names a line of the crate and one of the standard library's generic code.
    let same = "#[unsafe(no_mangle)]\npub extern \"C\" fn at(n: usize) -> u8 {\n    vec![1, 2, 3][n..].chunks(n)\
        .next().expect(\"one\")[0]\n}\n";
    let leaky = "#[unsafe(no_mangle)]\npub extern \"C\" fn place() -> usize {\n    println!(env!(\"CARGO_MANIFEST_DIR\"));\n    0\n}\n";
    let lock = "version = 4\n\n[[package]]\nname = \"leaky\"\nversion = \"0.0.0\"\n\n[[package]]\nname = \"same\"\nversion = \"0.0.0\"\n";
    let profile = "[workspace]\nresolver = \"3\"\nmembers = [\"same\", \"leaky\"]\n[profile.dist]\ninherits = \"release\"\n\
        debug = \"line-tables-only\"\n";
    for (file, text) in [
        ("Cargo.toml", profile),
        ("Cargo.lock", lock),
        ("same/Cargo.toml", &crate_of("same")),
        ("same/src/lib.rs", same),
        ("leaky/Cargo.toml", &crate_of("leaky")),
        ("leaky/src/lib.rs", leaky),
    ] {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    fs::create_dir_all(folder.join("scripts/release")).expect("a folder");
    for script in ["scripts/build", "scripts/release/reproduce"] {
        fs::copy(product::root().join(script), folder.join(script)).expect("a copy");
    }
    for words in [&["init", "-q"][..], &["add", "."]] {
        assert_eq!(end(command("git").args(words).current_dir(folder)).code(), Some(0));
    }
}

#[test]
fn two_builds_in_folders_of_other_names_are_the_same_bytes() {
    let folder = build::scratch("reproduced");
    workspace(&folder);
    let reproduce = |package: &str| {
        let mut script = command(folder.join("scripts/release/reproduce"));
        script.arg("--dist").arg("-q").env("ONLY", package).env("STREAMSAN_COMMIT", "c0ffee");
        end_within(
            script.env_remove("CARGO_TARGET_DIR").env_remove("RUSTC_WORKSPACE_WRAPPER"),
            4 * tests::run::PATIENCE,
        )
    };
    let same = reproduce("same");
    assert_eq!(same.code(), Some(0), "{}{}", same.out, same.err);
    assert!(same.out.starts_with("libsame.so ") && same.out.ends_with(" same\n"), "{}", same.out);
    // What holds the name of its folder is found, or the comparison would prove nothing.
    let leaky = reproduce("leaky");
    assert_eq!(leaky.code(), Some(1), "{}{}", leaky.out, leaky.err);
    assert!(leaky.out.ends_with(" DIFFERS\n"), "{}", leaky.out);
    assert!(leaky.err.contains("files that differ: 1"), "{}", leaky.err);
}

#[test]
fn the_recipe_of_conda_puts_the_archive_into_an_environment() {
    let folder = build::scratch("conda");
    let (unpacked, prefix) = (folder.join("unpacked"), folder.join("prefix"));
    for file in ["bin/streamsan", "bin/sim/libcuda.so.1", "lib/cmake/StreamSan/a.cmake", "share/man/man1/streamsan.1"] {
        let path = unpacked.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, file).expect("written");
    }
    let script = product::root().join("packaging/conda/build.sh");
    let ended = end(command(script).current_dir(&unpacked).env("PREFIX", &prefix));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert_eq!(fs::canonicalize(prefix.join("bin/streamsan")).ok(), Some(prefix.join("lib/streamsan/streamsan")));
    for file in ["lib/streamsan/sim/libcuda.so.1", "lib/cmake/StreamSan/a.cmake", "share/man/man1/streamsan.1"] {
        assert!(prefix.join(file).exists(), "{file}");
    }
    let recipe = fs::read_to_string(product::root().join("packaging/conda/recipe.yaml")).expect("the recipe");
    assert!(recipe.contains(concat!("version: \"", env!("CARGO_PKG_VERSION"), "\"")), "another version: {recipe}");
}

/// The packages have the names that Debian knows: apt plans to install them, and installs nothing.
#[test]
fn the_machine_of_a_release_asks_for_packages_that_exist() {
    let known = Command::new("apt-cache").args(["show", "gcc"]).output();
    if !known.is_ok_and(|known| known.status.success()) {
        eprintln!("skipped: apt has no lists of packages here");
        return;
    }
    let folder = build::scratch("release_machine");
    let plans = "#!/bin/sh\n[ \"$1\" != update ] || exit 0\nexec /usr/bin/apt-get --simulate \"$@\"\n";
    for (name, text) in [("apt-get", plans), ("sudo", "#!/bin/sh\nexec \"$@\"\n")] {
        fs::write(folder.join(name), text).expect("written");
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).expect("rights");
    }
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let run = |file: &std::path::Path| {
        let mut bash = command("bash");
        end_within(bash.arg(file).env("PATH", &path), 2 * tests::run::PATIENCE)
    };
    let file = product::root().join("scripts/release/machine");
    let ended = run(&file);
    assert_eq!(ended.code(), Some(0), "{}{}", ended.out, ended.err);
    assert!(ended.out.lines().any(|line| line.starts_with("rustc ")), "{}", ended.out);
    let wrong = folder.join("machine");
    fs::write(&wrong, fs::read_to_string(&file).expect("the script").replace("binutils", "no-such-binutils"))
        .expect("written");
    assert_ne!(run(&wrong).code(), Some(0), "a name that apt does not know");
}

#[test]
fn rattler_takes_the_recipe_of_conda() {
    let Some(bin) = tools() else { return };
    let render = |recipe: &std::path::Path| {
        let mut python = command(bin.join("python"));
        python.arg(product::root().join("tests/ci_jobs/recipe.py")).arg(recipe).args(["linux-64", "linux-aarch64"]);
        end(python.env("STREAMSAN_RELEASES", "https://forge.example/releases").env("STREAMSAN_SHA256", "0".repeat(64)))
    };
    let recipe = product::root().join("packaging/conda/recipe.yaml");
    let ended = render(&recipe);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let told: Value = serde_json::from_str(&ended.out).expect("JSON");
    let version = env!("CARGO_PKG_VERSION");
    for (platform, processor) in [("linux-64", "x86_64"), ("linux-aarch64", "aarch64")] {
        assert_eq!(told[platform].as_array().map(Vec::len), Some(1), "{told:#}");
        // The address is one under which a release is.
        let archive = format!("streamsan-{version}-{processor}-linux.tar.gz");
        let url = format!("https://forge.example/releases/download/v{version}/{archive}");
        assert_eq!(told[platform][0]["source"][0]["url"], url, "{told:#}");
        assert_eq!(told[platform][0]["about"]["license"], "Apache-2.0", "{told:#}");
    }
    let text = fs::read_to_string(&recipe).expect("the recipe");
    let bad = build::scratch("bad_recipe").join("recipe.yaml");
    for (right, wrong) in [("\nrequirements:", "\nrequirments:"), ("license: Apache-2.0", "license: Apache 2")] {
        fs::write(&bad, text.replace(right, wrong)).expect("written");
        assert_ne!(render(&bad).code(), Some(0), "{wrong}");
    }
}

#[test]
fn a_linter_accepts_the_container_files() {
    let Some(bin) = tools() else { return };
    let lint = |files: &[std::path::PathBuf]| end(command(bin.join("hadolint")).args(files));
    let files = fs::read_dir(product::root().join("packaging/container")).expect("the files").flatten();
    let files: Vec<_> = files.map(|entry| entry.path()).collect();
    let linted = lint(&files);
    assert_eq!((files.len(), linted.code()), (2, Some(0)), "{}", linted.out);
    let bad = build::scratch("bad_container").join("Dockerfile");
    fs::write(&bad, "FROM debian:latest\nRUN cd /tmp && apt-get install curl\n").expect("written");
    assert_ne!(lint(&[bad]).code(), Some(0));
}

#[test]
fn the_site_has_all_pages_and_no_link_leads_nowhere() {
    if tools().is_none() {
        return;
    }
    let all = build::scratch("site").join("out");
    // Sites of other versions: older ones, and a newer one that is no release.
    let version = env!("CARGO_PKG_VERSION");
    let others = ["0.0.9", "99.0.0-rc.1", "0.0.10"];
    for other in others {
        fs::create_dir_all(all.join(other)).expect("a folder");
        fs::write(all.join(other).join("index.html"), other).expect("written");
    }
    let mut build = command("python3");
    build.arg(product::root().join("scripts/site")).arg("-o").arg(&all).arg("--versions");
    build.args(["--url", "https://docs.example/latest/", "--repository", "https://github.com/acme/tools/blob/v1"]);
    let made = end_within(&mut build, 4 * tests::run::PATIENCE);
    assert_eq!(made.code(), Some(0), "{}{}", made.out, made.err);
    let listed: serde_json::Value =
        serde_json::from_slice(&fs::read(all.join("versions.json")).expect("the list")).expect("JSON");
    let names: Vec<&str> =
        listed.as_array().into_iter().flatten().filter_map(|each| each["version"].as_str()).collect();
    assert_eq!(names, ["99.0.0-rc.1", version, "0.0.10", "0.0.9"]);
    assert_eq!(listed[1]["aliases"], serde_json::json!(["latest"]));
    assert!(fs::read_to_string(all.join("index.html")).expect("a page").contains("url=latest/"));
    for other in others {
        assert_eq!(fs::read_to_string(all.join(other).join("index.html")).ok().as_deref(), Some(other));
    }
    let folder = all.join("latest");
    let start = fs::read_to_string(folder.join("index.html")).expect("the page");
    assert!(start.contains(r#""provider":"mike""#) || start.contains(r#""provider": "mike""#), "no menu of versions");
    assert!(fs::read_to_string(all.join(version).join("index.html")).is_ok_and(|same| same == start));
    let gate = fs::read_to_string(folder.join("guide/ci-gate/index.html")).expect("the page");
    assert!(
        gate.contains(concat!("acme/tools@v", env!("CARGO_PKG_VERSION"))) && !gate.contains("OWNER"),
        "who owns the action"
    );
    for rule in ["read-after-write", "write-after-read", "forbidden-sync"] {
        let page = fs::read_to_string(folder.join("findings").join(rule).join("index.html")).expect("the page");
        assert!(page.contains(&format!("<h1 id=\"{rule}\">")), "{rule}");
    }
    assert!(folder.join("sitemap.xml").exists() && folder.join("search.json").exists());
}
