//! Marks on descriptors, by which another process recognises the memory behind one.
//!
//! Memory goes to other processes as a file descriptor (`cuMemExportToShareableHandle`), which a
//! socket carries (`SCM_RIGHTS`). All descriptors of NVIDIA's driver stand for one device node, so
//! neither number nor inode tells two memories apart. The open file description does: it is the
//! same on both sides. An advisory lock of it (`F_OFD_SETLK`, Linux 3.15) on bytes that no file has
//! is a mark that travels with it, ends with it, and keeps nothing alive. Both sides read it in
//! `/proc/thread-self/fdinfo`, which lists the locks of that description only (Linux 4.1). The
//! lock's first byte is a random number, its length the size of the memory.
//!
//! Owns making and reading marks. A descriptor that was opened anew through `/proc`, or a system
//! without these files, has no mark: then there is no match.

use std::mem::zeroed;
use std::os::fd::RawFd;

use signal_free::descriptors::own_proc;

/// Marks lie here: bytes beyond every file, which lock files of programs do not name.
const PLACE: u64 = 1 << 62;
/// Random bits of a mark.
const RANDOM: u64 = (1 << 61) - 1;
/// Largest size that a mark can tell.
const LARGEST: u64 = 1 << 60;

/// What processes know memory, or a pool, by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    start: u64,
    size: u64,
}

impl Mark {
    /// A new one. None: the system gives no random numbers, or nothing is that large.
    pub fn fresh(size: u64) -> Option<Self> {
        let mut random = 0_u64;
        // SAFETY: the buffer has eight bytes.
        let got = unsafe { libc::getrandom((&raw mut random).cast(), 8, libc::GRND_NONBLOCK) };
        let is_good = got == 8 && (1..LARGEST).contains(&size);
        is_good.then_some(Self { start: PLACE | random & RANDOM, size })
    }

    /// The size of the memory.
    pub fn size(self) -> u64 {
        self.size
    }

    /// Marks a descriptor. False: the system refuses.
    pub fn put(self, file: RawFd) -> bool {
        // SAFETY: all zero is a valid lock to be filled.
        let mut lock: libc::flock64 = unsafe { zeroed() };
        lock.l_type = libc::F_RDLCK as i16;
        lock.l_whence = libc::SEEK_SET as i16;
        lock.l_start = self.start as i64;
        lock.l_len = self.size as i64;
        // SAFETY: the command reads the lock, and asks nothing of anybody.
        unsafe { libc::syscall(libc::SYS_fcntl, file, libc::F_OFD_SETLK, &raw const lock) == 0 }
    }

    /// The mark of a descriptor.
    pub fn of(file: RawFd) -> Option<Self> {
        let text = std::fs::read_to_string(own_proc(&format!("fdinfo/{file}"))).ok()?;
        text.lines().find_map(Self::read)
    }

    /// From a line such as `lock: 1: OFDLCK ADVISORY READ -1 00:01:188134 FIRST LAST`.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.strip_prefix("lock:")?.split_whitespace().skip(1);
        (words.next() == Some("OFDLCK")).then_some(())?;
        let mut bytes = words.skip(4).map(str::parse::<u64>);
        let (start, last) = (bytes.next()?.ok()?, bytes.next()?.ok()?);
        let size = last.checked_sub(start)?.checked_add(1)?;
        (start & !RANDOM == PLACE && size < LARGEST).then_some(Self { start, size })
    }

    /// It as bytes.
    pub fn bytes(self) -> [u8; 16] {
        (u128::from(self.start) << 64 | u128::from(self.size)).to_le_bytes()
    }

    /// The key of physical memory in traces.
    pub fn key(self) -> Vec<u8> {
        [trace::PHYSICAL_KEY, &self.bytes()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn open(path: &str) -> std::fs::File {
        std::fs::File::options().read(true).write(true).open(path).expect("a file")
    }

    #[test]
    fn a_mark_belongs_to_one_open_file_description() {
        // One inode for all, as with a driver's device node.
        let [one, other, bare] = ["/dev/null"; 3].map(open);
        let (mark, second) = (Mark::fresh(1 << 21).expect("random"), Mark::fresh(1 << 22).expect("random"));
        assert!(mark.put(one.as_raw_fd()) && second.put(other.as_raw_fd()));
        assert_eq!((Mark::of(one.as_raw_fd()), Mark::of(other.as_raw_fd())), (Some(mark), Some(second)));
        assert_eq!(Mark::of(bare.as_raw_fd()), None, "the same node, opened by itself");
        let copy = one.try_clone().expect("dup");
        drop(one);
        assert_eq!(Mark::of(copy.as_raw_fd()), Some(mark), "the description lives on");
        let anew = open(&format!("/proc/self/fd/{}", copy.as_raw_fd()));
        assert_eq!(Mark::of(anew.as_raw_fd()), None, "opened anew");
        // Memory that is exported twice has one mark.
        assert!(mark.put(anew.as_raw_fd()));
        assert_eq!(Mark::of(anew.as_raw_fd()), Some(mark));
        assert_ne!(mark.key(), second.key());
    }

    #[test]
    fn locks_of_the_program_are_no_marks() {
        let line =
            |kind: &str, first: u64, last: &str| format!("lock:\t1: {kind} ADVISORY  READ -1 00:06:3 {first} {last}");
        let last = (PLACE | 4097).to_string();
        assert_eq!(Mark::read(&line("OFDLCK", PLACE | 2, &last)), Some(Mark { start: PLACE | 2, size: 4096 }));
        assert_eq!(Mark::read(&line("POSIX", PLACE | 2, &last)), None);
        assert_eq!(Mark::read(&line("OFDLCK", 2, "4097")), None);
        assert_eq!(Mark::read(&line("OFDLCK", PLACE | 2, "EOF")), None);
        assert_eq!(Mark::read("flags:\t0100002"), None);
        assert!(Mark::fresh(0).is_none() && Mark::fresh(u64::MAX).is_none());
    }
}
