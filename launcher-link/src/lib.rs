//! The way from a process of the program under test to the launcher.
//!
//! Owns the two sockets of a run, as both ends name them, and the messages: a ring, why a process
//! is not checked, what the simulated GPU refused. The first socket lies in the run's folder, which
//! is for the launcher's user alone. A process that has become another user or has another root
//! does not find it there. The second one has a name in the abstract namespace, which is in no
//! folder (unix(7)). Everybody may connect to that one, so each message on it begins with a secret,
//! which only the environment of the program holds. A process that may have no socket leaves a link
//! in the run's folder; where other users get through that folder, also in one below it that the
//! secret names.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The variable with the path of the first socket.
pub const SOCKET: &CStr = c"STREAMSAN_SOCKET";
/// The variable with the [`Key`] of the second one; empty where there is none.
pub const KEY: &CStr = c"STREAMSAN_SOCKET_KEY";

/// Bytes that a message has room for, its descriptor left out.
pub const ROOM: usize = 1024;

/// What a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The descriptor of a ring comes with it.
    Ring,
    /// Why this process is not checked.
    Unchecked,
    /// What the simulated GPU refused.
    NotSimulated,
}

impl Subject {
    /// All of them.
    const ALL: [Self; 3] = [Self::Ring, Self::Unchecked, Self::NotSimulated];

    /// The first line of the message.
    fn line(self) -> &'static [u8] {
        match self {
            Self::Ring => b"streamsan ring\n",
            Self::Unchecked => b"streamsan unchecked\n",
            Self::NotSimulated => b"streamsan not simulated\n",
        }
    }

    /// The subject of a message, and what comes behind its first line.
    pub fn of(message: &[u8]) -> Option<(Self, &[u8])> {
        Self::ALL.into_iter().find_map(|subject| Some((subject, message.strip_prefix(subject.line())?)))
    }
}

/// The name of the second socket, and the secret: `NAME.SECRET`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key<'a> {
    /// Its name in the abstract namespace.
    pub name: &'a [u8],
    /// What each message begins with, in a line behind the first.
    pub secret: &'a [u8],
}

impl<'a> Key<'a> {
    /// Reads the value of [`KEY`].
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let dot = text.iter().position(|byte| *byte == b'.')?;
        let (name, secret) = (&text[..dot], &text[dot + 1..]);
        (!name.is_empty() && !secret.is_empty()).then_some(Self { name, secret })
    }
}

/// Where a socket is.
enum Place<'a> {
    Path(&'a OsStr),
    Name(&'a [u8]),
}

/// The address and its length.
fn address(place: &Place<'_>) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all-zero is a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let whole = size_of::<libc::sockaddr_un>();
    // A name begins behind a zero, and ends with the address.
    let (bytes, at) = match place {
        Place::Path(path) => (path.as_bytes(), 0),
        Place::Name(name) => (*name, 1),
    };
    if at + bytes.len() >= address.sun_path.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (to, from) in address.sun_path[at..].iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let len = match place {
        Place::Path(_) => whole,
        Place::Name(name) => whole - address.sun_path.len() + 1 + name.len(),
    };
    Ok((address, len as libc::socklen_t))
}

fn socket() -> io::Result<OwnedFd> {
    // SAFETY: socket has no preconditions.
    let socket = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: socket was just opened here.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

fn listen(place: &Place<'_>) -> io::Result<OwnedFd> {
    let (socket, (address, len)) = (socket()?, address(place)?);
    // SAFETY: address is a valid sockaddr_un of at least len bytes.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) };
    // SAFETY: socket is bound.
    if bound != 0 || unsafe { libc::listen(socket.as_raw_fd(), 1024) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

fn connect(place: &Place<'_>) -> io::Result<OwnedFd> {
    let (socket, (address, len)) = (socket()?, address(place)?);
    // SAFETY: address is a valid sockaddr_un of at least len bytes.
    if unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), len) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(socket)
}

/// Listens at a path.
pub fn listen_at(path: &OsStr) -> io::Result<OwnedFd> {
    listen(&Place::Path(path))
}

/// Listens under a name of the abstract namespace.
pub fn listen_under(name: &[u8]) -> io::Result<OwnedFd> {
    listen(&Place::Name(name))
}

/// Who is at the other end: of a connection, the process that made it; of a socket that was
/// connected to, the process that listens.
pub fn peer(socket: BorrowedFd<'_>) -> io::Result<libc::ucred> {
    // SAFETY: all-zero is a valid ucred to be overwritten.
    let mut peer: libc::ucred = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: peer has room for len bytes.
    let asked = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut len)
    };
    if asked == 0 { Ok(peer) } else { Err(io::Error::last_os_error()) }
}

/// Connects to the second socket. Somebody else may have taken its name once the launcher was gone:
/// only root and the user of this process get what the program does.
fn connect_by(key: Key<'_>) -> io::Result<OwnedFd> {
    let socket = connect(&Place::Name(key.name))?;
    let owner = peer(socket.as_fd())?.uid;
    // SAFETY: getuid has no preconditions.
    if owner == 0 || owner == unsafe { libc::getuid() } {
        return Ok(socket);
    }
    Err(io::Error::from_raw_os_error(libc::EPERM))
}

/// Sends a message through the first socket, or through the second one where the first is out of
/// reach. The error is that of the first.
pub fn tell(
    path: &OsStr,
    key: Option<Key<'_>>,
    subject: Subject,
    text: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let by_path = connect(&Place::Path(path)).and_then(|socket| send(&socket, &[subject.line(), text], descriptor));
    let Err(error) = by_path else { return Ok(()) };
    let by_key = |key: Key<'_>| send(&connect_by(key)?, &[subject.line(), key.secret, b"\n", text], descriptor);
    match key.map(by_key) {
        Some(Ok(())) => Ok(()),
        _ => Err(error),
    }
}

/// The folders for links, by the path of the first socket: that of the run, and the one for other
/// users, which is not always there.
pub fn link_folders(path: &OsStr, key: Option<Key<'_>>) -> impl Iterator<Item = PathBuf> {
    let folder = Path::new(path).parent().filter(|folder| folder.is_absolute());
    let below = folder.zip(key).map(|(folder, key)| folder.join(OsStr::from_bytes(key.secret)));
    folder.map(Path::to_path_buf).into_iter().chain(below)
}

/// Leaves a link with this text for the launcher, `KIND-NUMBER`: it takes neither memory to share
/// nor a descriptor. False: this process does not get to the folders.
pub fn leave_link(path: &OsStr, key: Option<Key<'_>>, kind: &str, number: u64, text: &[u8]) -> bool {
    // Room in any file system, and no link without a text.
    let text = if text.is_empty() { b"?" } else { &text[..text.len().min(500)] };
    let Ok(text) = CString::new(text) else { return false };
    link_folders(path, key).any(|folder| {
        let link = folder.join(format!("{kind}-{number}")).into_os_string();
        // SAFETY: two C strings.
        CString::new(link.as_bytes()).is_ok_and(|link| unsafe { libc::symlink(text.as_ptr(), link.as_ptr()) } == 0)
    })
}

/// Sends one message. What it has no room for is cut off.
fn send(socket: &OwnedFd, parts: &[&[u8]], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut bytes = parts.concat();
    bytes.truncate(ROOM);
    let mut data = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = [0_u64; 8];
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    if let Some(descriptor) = descriptor {
        message.msg_control = control.as_mut_ptr().cast();
        // SAFETY: CMSG_* compute with the sizes given; control is large enough for one descriptor
        // and 8-byte aligned.
        unsafe {
            message.msg_controllen = libc::CMSG_SPACE(size_of::<i32>() as u32) as _;
            let head = libc::CMSG_FIRSTHDR(&raw const message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as _;
            libc::CMSG_DATA(head).cast::<i32>().write_unaligned(descriptor.as_raw_fd());
        }
    }
    // SAFETY: message points to live buffers.
    if unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Receives one message: its bytes, and the descriptor that came with it.
pub fn receive(socket: BorrowedFd<'_>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut bytes = vec![0_u8; ROOM];
    let mut data = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = [0_u64; 8];
    // SAFETY: all-zero is a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // Room for one descriptor: the kernel closes further ones.
    // SAFETY: computes with the size given.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size_of::<i32>() as u32) } as _;
    // SAFETY: message points to live buffers.
    let got = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    if got < 0 {
        return Err(io::Error::last_os_error());
    }
    bytes.truncate(got as usize);
    // SAFETY: recvmsg has filled the control buffer; CMSG_FIRSTHDR returns null when there is
    // nothing in it. A descriptor in it is this process's, and owned here. CMSG_SPACE may leave
    // room for a second one, which the length tells.
    let descriptor = unsafe {
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        if head.is_null() || (*head).cmsg_level != libc::SOL_SOCKET || (*head).cmsg_type != libc::SCM_RIGHTS {
            None
        } else {
            let count = ((*head).cmsg_len as usize - libc::CMSG_LEN(0) as usize) / size_of::<i32>();
            let at = |index| OwnedFd::from_raw_fd(libc::CMSG_DATA(head).cast::<i32>().add(index).read_unaligned());
            // All are taken, so that none stays open.
            (0..count).map(at).collect::<Vec<_>>().into_iter().next()
        }
    };
    Ok((bytes, descriptor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(listener: &OwnedFd) -> OwnedFd {
        // SAFETY: a listening socket.
        let socket = unsafe { libc::accept(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut()) };
        assert!(socket >= 0);
        // SAFETY: just accepted.
        unsafe { OwnedFd::from_raw_fd(socket) }
    }

    #[test]
    fn keys_are_a_name_and_a_secret() {
        assert_eq!(Key::parse(b"ab.cd"), Some(Key { name: b"ab", secret: b"cd" }));
        for text in [&b""[..], b"ab", b".cd", b"ab.", b"."] {
            assert_eq!(Key::parse(text), None);
        }
    }

    #[test]
    fn messages_arrive_by_path_or_else_by_key() {
        let folder = std::env::temp_dir().join(format!("streamsan-link-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (path, name) = (folder.join("run"), format!("streamsan-test-{}", std::process::id()));
        let (near, far) = (listen_at(path.as_os_str()), listen_under(name.as_bytes()));
        let (near, far) = (near.expect("a socket"), far.expect("a socket"));
        let key = Key { name: name.as_bytes(), secret: b"secret" };
        let nowhere = folder.join("nowhere");
        for (path, listener, head) in [(&path, &near, &b""[..]), (&nowhere, &far, b"secret\n")] {
            for subject in Subject::ALL {
                let ring = (subject == Subject::Ring).then(|| far.as_fd());
                let long = vec![b'x'; 2 * ROOM];
                for text in [&b""[..], b"why", &long] {
                    tell(path.as_os_str(), Some(key), subject, text, ring).expect("sent");
                    let (message, descriptor) = receive(accept(listener).as_fd()).expect("received");
                    let (told, rest) = Subject::of(&message).expect("a subject");
                    let rest = rest.strip_prefix(head).expect("the secret");
                    assert_eq!((told, descriptor.is_some()), (subject, ring.is_some()));
                    assert!(text.starts_with(rest) && (rest.len() == text.len() || message.len() == ROOM));
                }
            }
        }
        assert!(leave_link(path.as_os_str(), Some(key), "kind", 7, &[b'y'; 2 * ROOM]));
        assert_eq!(std::fs::read_link(folder.join("kind-7")).expect("a link").as_os_str().len(), 500);
        // The same name again: only the folder below is left.
        assert!(!leave_link(path.as_os_str(), Some(key), "kind", 7, b"why"));
        std::fs::create_dir(folder.join("secret")).expect("a folder");
        assert!(leave_link(path.as_os_str(), Some(key), "kind", 7, b""));
        assert_eq!(std::fs::read_link(folder.join("secret/kind-7")).expect("a link").as_os_str(), "?");
        assert!(!leave_link(OsStr::new("run"), Some(key), "kind", 7, b"why"));
        // SAFETY: getuid has no preconditions.
        assert_eq!(peer(near.as_fd()).map(|peer| peer.uid).ok(), Some(unsafe { libc::getuid() }));
        let told = tell(nowhere.as_os_str(), None, Subject::Unchecked, b"", None);
        assert_eq!(told.expect_err("nobody").kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(folder).expect("ours");
    }
}
