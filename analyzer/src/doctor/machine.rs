//! What the system lets programs do: filters of system calls, debugging, containers.
//!
//! Owns where this is read, and the words. Whether a run works here is found out by a run, not by
//! these: most containers filter system calls, and programs in them are checked all the same.

use std::fs::read_to_string;
use std::path::Path;

/// All of it in one line.
pub(super) fn system() -> String {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let scope = read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    [filter(&status), privileges(&status), debugging(scope.as_deref()), container()].join("; ")
}

/// The value of a field of a process's status.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// Whether system calls are filtered, by proc(5), "Seccomp".
fn filter(status: &str) -> String {
    match field(status, "Seccomp") {
        Some("0") => "seccomp filters no system calls".to_owned(),
        Some("1") => "seccomp allows reading and writing only".to_owned(),
        Some(_) => match field(status, "Seccomp_filters") {
            Some(number) => format!("seccomp filters system calls (filters: {number})"),
            None => "seccomp filters system calls".to_owned(),
        },
        None => "whether seccomp filters system calls is not known".to_owned(),
    }
}

/// Whether programs may gain rights, by proc(5), "NoNewPrivs".
fn privileges(status: &str) -> String {
    match field(status, "NoNewPrivs") {
        Some("0") => "programs may gain privileges".to_owned(),
        Some(_) => "programs gain no privileges (no_new_privs)".to_owned(),
        None => "whether programs may gain privileges is not known".to_owned(),
    }
}

/// Who may attach a debugger, by the kernel's documentation of Yama. `None`: there is no such file.
fn debugging(scope: Option<&str>) -> String {
    match scope.map(str::trim) {
        None => "any process of the user may be debugged (no Yama)".to_owned(),
        Some("0") => "any process of the user may be debugged (ptrace_scope 0)".to_owned(),
        Some("1") => "child processes may be debugged (ptrace_scope 1)".to_owned(),
        Some("2") => "administrators may debug (ptrace_scope 2)".to_owned(),
        Some("3") => "nobody may debug (ptrace_scope 3)".to_owned(),
        Some(other) => format!("ptrace_scope {other}"),
    }
}

/// The container that this seems to be in, by the marks that container managers leave.
fn container() -> String {
    let named = std::env::var("container").ok().filter(|name| !name.is_empty());
    let kubernetes = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let marks = ["/.dockerenv", "/run/.containerenv"].map(|mark| Path::new(mark).exists());
    let kind = match (kubernetes, marks, named) {
        (true, ..) => "Kubernetes".to_owned(),
        (_, [true, _], _) => "Docker".to_owned(),
        (_, [_, true], _) => "Podman".to_owned(),
        (.., Some(name)) => report::escape::harmless(&name).into_owned(),
        _ => return "no sign of a container".to_owned(),
    };
    format!("in a container ({kind})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_status_are_read() {
        let status = "Name:\tcat\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n";
        assert_eq!(filter(status), "seccomp filters system calls (filters: 3)");
        assert_eq!(privileges(status), "programs gain no privileges (no_new_privs)");
        assert_eq!(filter("Seccomp:\t0\nSeccomp_filters:\t0\n"), "seccomp filters no system calls");
        assert_eq!(privileges("NoNewPrivs:\t0\n"), "programs may gain privileges");
        // A system that does not say is not said to be free.
        assert!(filter("").ends_with("not known") && privileges("").ends_with("not known"));
    }

    #[test]
    fn who_may_debug_is_said() {
        assert!(debugging(Some("1\n")).starts_with("child processes"));
        assert!(debugging(Some("3\n")).starts_with("nobody"));
        assert!(debugging(None).ends_with("(no Yama)"));
    }
}
