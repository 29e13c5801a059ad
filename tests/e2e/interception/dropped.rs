//! Programs that give up what they may do before their first call of CUDA: their user, their
//! groups, their root, their view of the file system. They are checked all the same, and where they
//! cannot be, the run is not green.

use std::path::{Path, PathBuf};
use std::process::Command;

use tests::run::{Ended, command, end, streamsan};
use tests::{build, fake, product};

fn program() -> PathBuf {
    build::c_program("dropped.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

/// This machine, or this user, cannot go that way.
const NOT_HERE: i32 = 77;

/// Ways to give something up, alone and one after the other, as daemons do.
const WAYS: [&str; 24] = [
    "none",
    "setuid",
    "setgid",
    "groups",
    "initgroups",
    "seteuid",
    "setreuid",
    "setresuid",
    "setfsuid",
    "nonewprivs",
    "undumpable",
    "chroot",
    "mounts",
    "users",
    "users,mounts",
    "users,chroot",
    "network",
    "processes",
    "chroot,groups,setgid,setuid",
    "mounts,setuid",
    "mounts,chroot,setresuid,undumpable",
    "processes,mounts,setuid",
    "fork,setuid",
    "groups,setgid,setuid,nonewprivs,fork",
];

/// How `dropped` ends bare; `None`: it cannot go this way here.
fn bare(words: &[&str]) -> Option<Ended> {
    let bare = end(command(program()).args(words));
    (bare.code() != Some(NOT_HERE)).then(|| {
        assert_eq!((bare.code(), bare.out.as_str()), (Some(0), "done\n"), "{words:?}: {}", bare.err);
        bare
    })
}

/// Whether a process of another user can load what is preloaded and start the program.
fn others_can_load() -> bool {
    end(command("setpriv").args(["--reuid=65534", "--clear-groups", "test", "-r"]).arg(product::shim())).code()
        == Some(0)
        && end(command("setpriv").args(["--reuid=65534", "--clear-groups", "test", "-x"]).arg(program())).code()
            == Some(0)
}

#[test]
fn a_program_that_drops_what_it_may_do_is_checked_as_any() {
    let mut ways = WAYS.to_vec();
    if others_can_load() {
        ways.extend(["setuid,exec", "groups,setgid,setuid,fork,exec"]);
    }
    let mut tried = 0;
    for way in ways {
        let Some(_) = bare(&[way, "racy"]) else { continue };
        for (rest, code) in [("racy", 66), ("ordered", 0)] {
            let ended = end(streamsan(["run", "--"]).arg(program()).args([way, rest]));
            let what = format!("{way} {rest}: {}", ended.err);
            assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{what}");
            assert!(ended.err.contains("COVERAGE: 10 launches") && !ended.err.contains("unchecked"), "{what}");
            tried += 1;
        }
    }
    // Nobody is refused these.
    assert!(tried >= 8, "{tried}");
}

#[test]
fn processes_of_a_script_that_become_others_are_checked() {
    if !others_can_load() {
        return;
    }
    let users = [
        "setpriv --reuid=65534 --regid=65534 --clear-groups",
        "setpriv --reuid=65534 --clear-groups --no-new-privs --inh-caps=-all",
        "runuser -u nobody --",
        "unshare --user --map-root-user --mount",
    ];
    for user in users {
        if end(command("sh").args(["-c", &format!("{user} true")])).code() != Some(0) {
            continue;
        }
        for (rest, code) in [("racy", 66), ("ordered", 0)] {
            for options in [&["run"][..], &["run", "--soname"]] {
                let script = format!("\"$0\" none ordered && {user} \"$0\" none {rest}");
                let mut command = streamsan(options);
                let ended = end(command.args(["--", "sh", "-c", &script]).arg(program()));
                let what = format!("{user} {rest} {options:?}: {}", ended.err);
                assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\ndone\n"), "{what}");
                assert!(ended.err.contains("COVERAGE: 20 launches"), "{what}");
            }
        }
    }
}

#[test]
fn one_that_drops_all_and_has_no_memory_to_share_is_named() {
    for way in ["files", "setuid,files", "chroot,files", "mounts,setuid,files", "chroot,setuid,undumpable,files"] {
        let Some(_) = bare(&[way]) else { continue };
        let ended = end(streamsan(["run", "--"]).arg(program()).arg(way));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(70), "done\n"), "{way}: {}", ended.err);
        let named = ended.err.lines().filter(|line| line.starts_with("streamsan: ERROR: not checked: process "));
        assert_eq!(named.count(), 1, "{way}: {}", ended.err);
    }
}

/// Without sockets, and in one case without links: the launcher's folder is there, or one for other
/// users in it; or neither is in reach.
#[test]
fn one_that_may_have_no_socket_is_never_green() {
    let near = ["sockets", "nonewprivs,sockets", "fork,sockets", "setuid,sockets", "groups,setgid,setuid,sockets"];
    let far = ["chroot,sockets", "mounts,sockets", "chroot,setuid,sockets", "setuid,sockets,links", "sockets,links"];
    // Of the latter no more than these may be in reach of an ordinary user.
    let (mut told, mut untold) = (0, 0);
    for way in near.into_iter().chain(far) {
        let Some(_) = bare(&[way]) else { continue };
        let ended = end(streamsan(["run", "--"]).arg(program()).arg(way));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(70), "done\n"), "{way}: {}", ended.err);
        assert!(ended.err.contains("can not check this process"), "{way}: {}", ended.err);
        let named = ended.err.matches("streamsan: ERROR: not checked: process ").count();
        assert_eq!(named, usize::from(near.contains(&way)), "{way}: {}", ended.err);
        *(if near.contains(&way) { &mut told } else { &mut untold }) += 1;
        // The program's own code says more.
        let failed = end(streamsan(["run", "--"]).arg(program()).args([way, "fails"]));
        assert_eq!((failed.code(), failed.out.as_str()), (Some(3), "done\n"), "{way}: {}", failed.err);
        // A part of the program that has nothing to tell keeps its code, too.
        let off = end(streamsan(["run", "--off", "--"]).arg(program()).arg(way));
        assert_eq!((off.code(), off.out.as_str()), (Some(0), "done\n"), "{way}: {}", off.err);
    }
    assert!(told >= 3 && untold >= 1, "{told} {untold}");
}

/// Copies of the program whose names say which way they go.
fn folder_of(ways: &[&str], folder: &Path) -> usize {
    let ways: Vec<_> = ways.iter().filter(|way| bare(&[&way.replace('-', ",")]).is_some()).collect();
    for way in &ways {
        std::fs::copy(program(), folder.join(way)).expect("copied");
    }
    ways.len()
}

#[test]
fn a_hunt_checks_programs_that_drop_what_they_may_do() {
    let folder = build::scratch("dropped-hunt");
    let count = folder_of(&["none", "setuid", "initgroups", "chroot-setuid", "mounts-setuid"], &folder);
    let ended = end(streamsan(["hunt", "--timeout", "60"]).arg(&folder));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains(&format!("COVERAGE: {} launches", 10 * count)), "{}", ended.err);
    assert!(!ended.err.contains("no CUDA"), "{}", ended.err);
}

#[test]
fn strangers_at_the_second_socket_are_not_heard() {
    // They connect, say nothing or something wrong, and stay until the run is over.
    let stranger = "import os, socket, sys
name = os.environ['STREAMSAN_SOCKET_KEY'].split('.')[0]
kept = []
for said in [None, b'', b'streamsan ring\\n', b'streamsan unchecked\\nguess\\nwhy', b'streamsan not simulated\\n' + b'0' * 32 + b'\\nwhy', b'x' * 5000]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect('\\0' + name)
    if said is not None: s.send(said)
    kept.append(s)
os.execv(sys.argv[1], sys.argv[1:])";
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    for (way, rest, code) in [("none", "ordered", 0), ("none", "racy", 66), ("chroot", "racy", 66)] {
        if bare(&[way, rest]).is_none() {
            continue;
        }
        let ended = end(streamsan(["run", "--", "python3", "-c", stranger]).arg(program()).args([way, rest]));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "done\n"), "{way} {rest}: {}", ended.err);
        assert!(ended.err.contains("COVERAGE: 10 launches"), "{}", ended.err);
        assert!(!ended.err.contains("ERROR"), "{}", ended.err);
    }
}
