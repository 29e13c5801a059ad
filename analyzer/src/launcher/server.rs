//! The server of a run: processes hand in their rings through a socket.
//!
//! Owns the socket, the threads that read the rings, and the outcomes. The socket lies in the run's
//! folder ([`super::run_folder`]).

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use trace::ring::Ring;

use crate::launcher::run_folder::RunFolder;
use analysis::ipc::Across;
use ingest::live::{Judged, Sink, follow};
use ingest::process_watch::ProcessWatch;
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
    outcomes: Mutex<Vec<(u32, Outcome)>>,
    next: AtomicU32,
    /// Processes that can not be followed, and why.
    unchecked: Mutex<Vec<String>>,
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
    socket: OwnedFd,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
    closed: Arc<AtomicBool>,
}

impl Server {
    /// Opens the socket and begins to accept.
    pub(crate) fn open(sink: Sink) -> io::Result<Self> {
        let folder = RunFolder::create()?;
        let path = folder.path.join("run");
        let socket = listen(&path)?;
        let shared = Arc::new(Shared::default());
        let closed = Arc::new(AtomicBool::new(false));
        let accepting = {
            let (shared, closed, listener) = (Arc::clone(&shared), Arc::clone(&closed), socket.try_clone()?);
            std::thread::spawn(move || accept(&listener, &shared, &closed, &sink))
        };
        Ok(Self { folder, socket, shared, accepting: Some(accepting), closed })
    }

    /// Where programs connect to.
    pub(crate) fn path(&self) -> OsString {
        self.folder.path.join("run").into_os_string()
    }

    /// The folder of this run, for files that must not outlive it.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder.path
    }

    /// Processes that could not be observed, and why: those that could not be followed here, and
    /// those that had no ring to hand in. The latter leave a link in the folder, for a link can be
    /// made without memory to share and without a descriptor.
    pub(crate) fn unchecked(&self) -> Vec<String> {
        let mut unchecked = lock(&self.shared.unchecked).clone();
        for entry in std::fs::read_dir(&self.folder.path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if let Some(pid) = name.to_str().and_then(|name| name.strip_prefix("unchecked-"))
                && let Ok(why) = std::fs::read_link(entry.path())
            {
                unchecked.push(format!("process {pid}: {}", why.to_string_lossy()));
            }
        }
        unchecked
    }

    /// Collects the outcomes of all processes after the program has ended. A process that outlives
    /// the program is reported as far as it has got, and named.
    pub(crate) fn finish(&mut self) -> Vec<Outcome> {
        // A process may have connected at the program's last moment, so everything in the queue is
        // accepted first.
        self.closed.store(true, Ordering::Release);
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
        let connected = std::mem::take(&mut *lock(&self.shared.connected));
        for process in connected {
            if !ProcessWatch::new(process.pid).has_ended() && !process.thread.is_finished() {
                // Children that end together with their parent get a moment to do so.
                std::thread::sleep(Duration::from_millis(50));
                if !ProcessWatch::new(process.pid).has_ended() && !process.thread.is_finished() {
                    system::say!("process {} outlives the program: checked up to this moment", process.pid);
                    process.stop.store(true, Ordering::Relaxed);
                }
            }
            let _ = process.thread.join();
        }
        let mut outcomes = std::mem::take(&mut *lock(&self.shared.outcomes));
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        let _ = &self.socket;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn listen(path: &std::path::Path) -> io::Result<OwnedFd> {
    // SAFETY: socket has no preconditions.
    let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: socket was just opened here.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all-zero is a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(path.as_os_str().as_bytes()) {
        *to = *from as libc::c_char;
    }
    let len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: address is a valid sockaddr_un of len bytes.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    // SAFETY: socket is bound.
    if bound != 0 || unsafe { libc::listen(socket.as_raw_fd(), 1024) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

fn accept(listener: &OwnedFd, shared: &Arc<Shared>, closed: &AtomicBool, sink: &Sink) {
    loop {
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
        match receive(&socket) {
            Ok((fd, pid)) => connect(&fd, pid, shared, sink),
            Err(error) => shared.gives_up(format!("a process could not be connected: {error}")),
        }
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
    connected.push(Connected { pid, stop, thread });
}

/// Receives the descriptor of a ring and the process id of its sender.
fn receive(socket: &OwnedFd) -> io::Result<(OwnedFd, i32)> {
    let mut hello = [0_u8; 64];
    let mut data = libc::iovec { iov_base: hello.as_mut_ptr().cast(), iov_len: hello.len() };
    let mut control = [0_u64; 8];
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: message points to live buffers.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    let bad = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    if !hello[..got as usize].starts_with(b"streamsan ring\n") {
        return Err(bad("it speaks another protocol (a shim of another version?)"));
    }
    // SAFETY: recvmsg has filled the control buffer; CMSG_FIRSTHDR returns null when there is
    // nothing in it.
    let fd = unsafe {
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        if head.is_null() || (*head).cmsg_level != libc::SOL_SOCKET || (*head).cmsg_type != libc::SCM_RIGHTS {
            return Err(bad("it sent no ring"));
        }
        OwnedFd::from_raw_fd(libc::CMSG_DATA(head).cast::<i32>().read_unaligned())
    };
    // SAFETY: all-zero is a valid ucred to be overwritten.
    let mut peer: libc::ucred = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: peer has room for len bytes.
    unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut len);
    }
    Ok((fd, peer.pid))
}
