//! The server of a run: processes hand in their rings through a socket.
//!
//! Owns the two sockets ([`launcher_link`]), the threads that read the rings, and the outcomes. One
//! socket lies in the run's folder ([`super::run_folder`]); the other is for processes that do not
//! get there.

use std::ffi::OsString;
use std::fs::DirEntry;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use launcher_link::{Key, Subject};
use trace::ring::Ring;

use crate::launcher::run_folder::RunFolder;
use analysis::ipc::Across;
use ingest::live::{Judged, Sink, follow};
use ingest::process_watch::ProcessWatch;
use ingest::progress::Progress;
use report::escape::harmless;
use report::model::Outcome;

/// A process that has connected.
struct Connected {
    pid: i32,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// State that the accepting thread and the owner share.
#[derive(Default)]
struct Shared {
    connected: Mutex<Vec<Connected>>,
    /// All processes that have ever connected.
    pids: Mutex<Vec<i32>>,
    outcomes: Mutex<Vec<(u32, Outcome)>>,
    next: AtomicU32,
    /// Processes that can not be followed, and why.
    unchecked: Mutex<Vec<String>>,
    /// What the simulated GPU refused processes that could not write it down.
    refused: Mutex<Vec<String>>,
}

impl Shared {
    /// A process is not followed.
    fn gives_up(&self, why: String) {
        system::say!("not checked: {why}");
        lock(&self.unchecked).push(why);
    }
}

/// A run that accepts processes.
pub(crate) struct Server {
    folder: RunFolder,
    key: OsString,
    shared: Arc<Shared>,
    accepting: Vec<JoinHandle<()>>,
    closed: Arc<AtomicBool>,
}

/// A socket, and the secret that messages on it begin with.
struct Door {
    socket: OwnedFd,
    secret: Option<String>,
}

impl Door {
    /// The door under a name that nobody can guess, and its key. Where the system has none, the one
    /// in the folder is all there is.
    fn by_name() -> io::Result<(Self, OsString)> {
        let (name, secret) = (format!("streamsan-{}", random()?), random()?);
        let socket = launcher_link::listen_under(name.as_bytes())?;
        let key = format!("{name}.{secret}").into();
        Ok((Self { socket, secret: Some(secret) }, key))
    }
}

/// A number of 128 bits that nobody can guess.
fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    // By number: packages link with a C library that is older than the function.
    // SAFETY: the buffer has room for its length.
    let got = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) };
    if usize::try_from(got) != Ok(bytes.len()) {
        return Err(io::Error::last_os_error());
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Server {
    /// Opens the sockets and begins to accept.
    pub(crate) fn open(sink: &Sink) -> io::Result<Self> {
        let folder = RunFolder::create()?;
        let path = folder.path.join("run");
        let near = Door { socket: launcher_link::listen_at(path.as_os_str())?, secret: None };
        // The folder may let others through.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let (far, key) = Door::by_name().ok().unzip();
        if let Some(secret) = far.as_ref().and_then(|far: &Door| far.secret.as_deref()) {
            folder.open_to_others(secret)?;
        }
        let shared = Arc::new(Shared::default());
        let closed = Arc::new(AtomicBool::new(false));
        let accepting = [Some(near), far].into_iter().flatten().map(|door| {
            let (shared, closed, sink) = (Arc::clone(&shared), Arc::clone(&closed), sink.clone());
            std::thread::spawn(move || accept(&door, &shared, &closed, &sink))
        });
        let accepting = accepting.collect();
        Ok(Self { folder, key: key.unwrap_or_default(), shared, accepting, closed })
    }

    /// Where programs connect to.
    pub(crate) fn path(&self) -> OsString {
        self.folder.path.join("run").into_os_string()
    }

    /// What opens the socket for those that do not get to that path; empty where there is none.
    pub(crate) fn key(&self) -> OsString {
        self.key.clone()
    }

    /// The folder of this run, for files that must not outlive it.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder.path
    }

    /// Processes that could not be observed, and why: those that could not be followed here, and
    /// those that had no ring to hand in. The latter leave a link in the folder, for a link can be
    /// made without memory to share and without a descriptor; where they cannot, they send a
    /// message.
    pub(crate) fn unchecked(&self) -> Vec<String> {
        let links = self.links("unchecked-").into_iter().map(|(pid, why)| format!("process {pid}: {why}"));
        lock(&self.shared.unchecked).iter().cloned().chain(links).collect()
    }

    /// What the simulated GPU refused processes that could not write it into its file.
    pub(crate) fn refused(&self) -> Vec<String> {
        let links = self.links("refused-").into_iter().map(|(_, why)| why);
        lock(&self.shared.refused).iter().cloned().chain(links).collect()
    }

    /// What processes have left as links whose names begin like this: the rest of the name, and the
    /// text.
    fn links(&self, kind: &str) -> Vec<(String, String)> {
        let (path, key) = (self.path(), self.key());
        let entries = launcher_link::link_folders(&path, Key::parse(key.as_encoded_bytes()))
            .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        let link = |entry: DirEntry| {
            let name = entry.file_name();
            let rest = name.to_str()?.strip_prefix(kind)?.to_string();
            Some((rest, std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned()))
        };
        let mut links: Vec<_> = entries.filter_map(link).collect();
        links.sort_unstable();
        links
    }

    /// How many processes have connected.
    pub(crate) fn connections(&self) -> u32 {
        self.shared.next.load(Ordering::Relaxed)
    }

    /// Names the processes that outlive the program and have not used CUDA: what they do later is
    /// not checked. Call it after [`Server::finish`], which has named the others.
    pub(crate) fn name_descendants(&self) {
        let known = lock(&self.shared.pids);
        let left = || -> Vec<i32> { self.folder.users().filter(|pid| !known.contains(pid)).collect() };
        if left().is_empty() {
            return;
        }
        // Children that end together with their parent get a moment to do so.
        std::thread::sleep(MOMENT);
        let left = left();
        const SHOWN: usize = 3;
        for pid in left.iter().take(SHOWN) {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name = harmless(name.trim()).into_owned();
            system::say!("process {pid} ({name}) outlives the program and has not used CUDA: not checked from now on");
        }
        if let Some(more) = left.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            system::say!("so do {more} more processes");
        }
    }

    /// Collects the outcomes of all processes after the program has ended. A process that outlives
    /// the program is reported as far as it has got, and named.
    pub(crate) fn finish(&mut self, mut progress: Progress) -> Vec<Outcome> {
        // A process may have connected at the program's last moment, so everything in the queue is
        // accepted first.
        self.closed.store(true, Ordering::Release);
        for thread in self.accepting.drain(..) {
            let _ = thread.join();
        }
        let connected = std::mem::take(&mut *lock(&self.shared.connected));
        for process in connected {
            if !ProcessWatch::new(process.pid).has_ended() && !process.thread.is_finished() {
                // Children that end together with their parent get a moment to do so.
                std::thread::sleep(MOMENT);
                if !ProcessWatch::new(process.pid).has_ended() && !process.thread.is_finished() {
                    system::say!("process {} outlives the program: checked up to this moment", process.pid);
                    process.stop.store(true, Ordering::Relaxed);
                }
            }
            while !process.thread.is_finished() {
                std::thread::sleep(TICK);
                progress.tick();
            }
            if process.thread.join().is_err() {
                // What it was is on standard error already.
                self.shared.gives_up(format!("process {}: an internal error ended its analysis", process.pid));
            }
        }
        let mut outcomes = std::mem::take(&mut *lock(&self.shared.outcomes));
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What processes get to end that end together with the program.
const MOMENT: Duration = Duration::from_millis(50);

/// Between two looks whether the analysis of a process has ended.
const TICK: Duration = Duration::from_millis(5);

/// Connections without the secret that are heard out when the run is over: anybody may make them.
const STRANGERS: u32 = 64;

fn accept(door: &Door, shared: &Arc<Shared>, closed: &AtomicBool, sink: &Sink) {
    let listener = &door.socket;
    let mut strangers = 0;
    while strangers < STRANGERS {
        let closing = closed.load(Ordering::Acquire);
        let mut poll = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        let ready = unsafe { libc::poll(&mut poll, 1, if closing { 0 } else { 20 }) };
        if ready <= 0 {
            if closing {
                return;
            }
            continue;
        }
        // SAFETY: listener is a listening socket.
        let socket = unsafe {
            libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_CLOEXEC)
        };
        if socket < 0 {
            // The process waits in the queue until there is a descriptor for it again.
            let error = io::Error::last_os_error();
            if closing {
                shared.gives_up(format!("a process could not be connected: {error}"));
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        // SAFETY: socket was just accepted.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        if door.secret.is_some() {
            limit_patience(&socket, closing);
        }
        match receive(&socket, door.secret.as_deref()) {
            Ok(Some((fd, pid))) => connect(&fd, pid, shared, sink),
            Ok(None) => strangers += u32::from(closing),
            Err(Told::Unchecked(why)) => lock(&shared.unchecked).push(why),
            Err(Told::NotSimulated(why)) => lock(&shared.refused).push(why),
            Err(Told::Wrong(why)) => shared.gives_up(format!("a process could not be connected: {why}")),
        }
    }
}

/// A stranger may connect and say nothing: it is not waited for as long as it likes.
fn limit_patience(socket: &OwnedFd, closing: bool) {
    let time = libc::timeval { tv_sec: 0, tv_usec: if closing { 20_000 } else { 500_000 } };
    let len = size_of_val(&time) as libc::socklen_t;
    // SAFETY: time has len bytes.
    unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const time).cast(), len);
    }
}

fn connect(fd: &OwnedFd, pid: i32, shared: &Arc<Shared>, sink: &Sink) {
    let (ring, beat) = match (Ring::open(fd.as_fd()), Ring::open(fd.as_fd())) {
        (Ok(ring), Ok(beat)) => (ring, beat),
        (Err(error), _) | (_, Err(error)) => {
            shared.gives_up(format!("process {pid}: {error}"));
            return;
        }
    };
    let index = shared.next.fetch_add(1, Ordering::Relaxed);
    let stop = Arc::new(AtomicBool::new(false));
    let mut connected = lock(&shared.connected);
    // A process that has replaced itself by exec no longer writes to its old ring.
    connected.iter().filter(|c| c.pid == pid).for_each(|c| c.stop.store(true, Ordering::Relaxed));
    let member = sink.across.as_ref().map(Across::join);
    let thread = {
        let (shared, stop, sink) = (Arc::clone(shared), Arc::clone(&stop), sink.clone());
        let run = move || {
            follow(ring, beat, index, &ProcessWatch::new(pid), &stop, &sink, member, |outcome| {
                let mut judged = Judged::default();
                if let Some(outcome) = outcome {
                    judged.findings = outcome.findings.len() as u32;
                    lock(&shared.outcomes).push((index, outcome));
                }
                judged
            });
        };
        std::thread::Builder::new().name(format!("process {pid}")).stack_size(ingest::STACK).spawn(run)
    };
    let thread = match thread {
        Ok(thread) => thread,
        Err(error) => {
            shared.gives_up(format!("process {pid}: {error}"));
            return;
        }
    };
    lock(&shared.pids).push(pid);
    connected.push(Connected { pid, stop, thread });
}

/// What a process says that hands in no ring.
enum Told {
    /// Why it is not checked.
    Unchecked(String),
    /// What the simulated GPU refused it.
    NotSimulated(String),
    /// Something else.
    Wrong(String),
}

/// Receives the descriptor of a ring and the process id of its sender. `None`: a stranger, who does
/// not know the secret.
fn receive(socket: &OwnedFd, secret: Option<&str>) -> Result<Option<(OwnedFd, i32)>, Told> {
    let wrong = |error: io::Error| Told::Wrong(error.to_string());
    let (message, ring) = match launcher_link::receive(socket.as_fd()) {
        Ok(received) => received,
        Err(_) if secret.is_some() => return Ok(None),
        Err(error) => return Err(wrong(error)),
    };
    let pid = launcher_link::peer(socket.as_fd()).map_err(wrong)?.pid;
    let (subject, text) = match (Subject::of(&message), secret) {
        (Some((subject, text)), None) => (subject, text),
        (Some((subject, text)), Some(secret)) => {
            let text = text.strip_prefix(secret.as_bytes()).and_then(|text| text.strip_prefix(b"\n"));
            let Some(text) = text else { return Ok(None) };
            (subject, text)
        }
        (None, Some(_)) => return Ok(None),
        (None, None) => return Err(Told::Wrong("it speaks another protocol (a shim of another version?)".into())),
    };
    let text = || String::from_utf8_lossy(text).into_owned();
    match (subject, ring) {
        (Subject::Ring, Some(ring)) => Ok(Some((ring, pid))),
        (Subject::Ring, None) => Err(Told::Wrong("it sent no ring".into())),
        (Subject::Unchecked, _) => Err(Told::Unchecked(format!("process {pid}: {}", text()))),
        (Subject::NotSimulated, _) => Err(Told::NotSimulated(text())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with one process that the thread reads.
    fn after(reader: impl FnOnce() + Send + 'static) -> Vec<String> {
        let sink = Sink { across: None, analysis: None, recorder: None, early: None, fresh: None, gives_way: false };
        let mut server = Server::open(&sink).expect("a server");
        let pid = std::process::id() as i32;
        let thread = std::thread::spawn(reader);
        lock(&server.shared.connected).push(Connected { pid, stop: Arc::default(), thread });
        server.finish(Progress::of_rest());
        server.unchecked()
    }

    #[test]
    fn a_process_whose_reader_panics_was_not_checked() {
        let unchecked = after(|| panic!("as a fault of the analysis would"));
        assert_eq!(unchecked.len(), 1, "{unchecked:?}");
        assert!(unchecked[0].contains("internal error"), "{unchecked:?}");
        assert!(after(|| ()).is_empty());
    }
}
