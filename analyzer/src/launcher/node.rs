//! The ranks of one MPI job on one machine, each of which was started as `streamsan PROGRAM`: they
//! make one report together.
//!
//! Owns the meeting of these launchers: who they are (the variables that MPI's launchers set), how
//! they find each other (a socket in the abstract namespace, for this user only), and what they
//! tell each other. The first rank of the machine leads: processes of all ranks hand their rings
//! to its server, it reports, and it tells the others what to end with. Nobody ends before: a
//! launcher of MPI kills all ranks once one has ended with a code other than 0.
//!
//! Does not run programs, and does not judge.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// How long a rank waits for the first one to appear, and the first one, once its own program has
/// ended, for ranks that have not appeared.
const MEETING: Duration = Duration::from_secs(10);

/// How long a rank whose program has failed waits for the others': they may wait for it for ever,
/// and only its end makes MPI's launcher stop them.
const GRACE: Duration = Duration::from_secs(5);

/// The variables in which launchers say which rank of the machine this is, and how many there are:
/// Open MPI, Hydra (MPICH, Intel MPI), MVAPICH, Cray PALS.
const LOCAL: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),
    ("PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"),
];

/// Which rank of which job this is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rank {
    job: String,
    rank: u32,
    ranks: u32,
}

impl Rank {
    /// What the environment says; `None`: this is no rank, or the only one of this machine, or a
    /// run inside another one.
    pub(crate) fn of(variable: impl Fn(&str) -> Option<String>, parent: u32) -> Option<Self> {
        if variable("STREAMSAN_SOCKET").is_some() {
            return None;
        }
        let number = |name: &str| variable(name).and_then(|text| text.parse::<u32>().ok());
        let local = LOCAL.iter().find_map(|(rank, size)| Some((number(rank)?, number(size)?)));
        let slurm = || Some((number("SLURM_LOCALID")?, tasks_here(&variable("SLURM_STEP_TASKS_PER_NODE")?)?));
        let (rank, ranks) = local.or_else(slurm)?;
        if ranks < 2 || rank >= ranks {
            return None;
        }
        let step = || Some(format!("{}.{}", variable("SLURM_JOB_ID")?, variable("SLURM_STEP_ID")?));
        // Hydra names no job; the ranks of a machine are children of one process.
        let job = variable("PMIX_NAMESPACE").or_else(step).unwrap_or_else(|| format!("parent {parent}"));
        Some(Self { job, rank, ranks })
    }

    fn address(&self) -> io::Result<SocketAddr> {
        // SAFETY: getuid has no preconditions.
        SocketAddr::from_abstract_name(format!("streamsan {} {}", unsafe { libc::getuid() }, self.job))
    }
}

/// The tasks of each node of a step, where all nodes have as many: `4` or `4(x2)`.
fn tasks_here(text: &str) -> Option<u32> {
    text.split_once("(x").map_or(text, |(tasks, _)| tasks).parse().ok()
}

/// How a rank's program ended, and what the simulated GPU refused it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RankEnd {
    /// Its exit code, or 128 and the signal that it died of.
    pub(crate) code: i32,
    /// What was refused.
    pub(crate) refused: Vec<String>,
}

/// What the first rank tells the others in the beginning.
#[derive(Serialize, Deserialize)]
struct Welcome {
    socket: String,
    key: String,
}

/// The seat of a rank at the meeting.
pub(crate) enum Seat {
    /// It runs by itself.
    Alone,
    /// The first rank: it reports for all.
    Leader(Leader),
    /// Another rank.
    Member(RankMember),
}

impl Seat {
    /// Takes a seat. The error is a line for the user; the run goes on by itself.
    pub(crate) fn take() -> Result<Self, String> {
        // SAFETY: getppid has no preconditions.
        let parent = unsafe { libc::getppid() } as u32;
        let Some(place) = Rank::of(|name| std::env::var(name).ok(), parent) else { return Ok(Self::Alone) };
        let error = |error: io::Error| format!("the ranks of this machine could not be brought together: {error}");
        if place.rank == 0 {
            let listener = place.address().and_then(|address| UnixListener::bind_addr(&address)).map_err(error)?;
            return Ok(Self::Leader(Leader { listener, ranks: place.ranks }));
        }
        RankMember::meet(&place).map(Self::Member).map_err(error)
    }
}

/// Whether the other end belongs to this user.
fn is_ours(stream: &UnixStream) -> bool {
    // SAFETY: all-zero is a valid ucred to be overwritten.
    let mut peer: libc::ucred = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: peer has room for len bytes.
    let asked = unsafe {
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut len)
    };
    // SAFETY: getuid has no preconditions.
    asked == 0 && peer.uid == unsafe { libc::getuid() }
}

fn say<T: Serialize>(stream: &mut UnixStream, what: &T) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn hear<T: for<'de> Deserialize<'de>>(from: &mut impl BufRead) -> io::Result<T> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

/// A rank that another one reports for.
pub(crate) struct RankMember {
    stream: UnixStream,
    /// The socket that its processes hand their rings to.
    pub(crate) socket: String,
    /// What opens the other socket of that run.
    pub(crate) key: String,
}

impl RankMember {
    fn meet(place: &Rank) -> io::Result<Self> {
        let address = place.address()?;
        let began = Instant::now();
        let stream = loop {
            match UnixStream::connect_addr(&address) {
                Ok(stream) => break stream,
                Err(error) if began.elapsed() > MEETING => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        if !is_ours(&stream) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        let Welcome { socket, key } = hear(&mut BufReader::new(&stream))?;
        Ok(Self { stream, socket, key })
    }

    /// Tells how the program ended, and waits for the report: what to end with. `None`: the first
    /// rank is gone.
    pub(crate) fn ended(mut self, end: &RankEnd) -> Option<i32> {
        say(&mut self.stream, end).ok()?;
        hear(&mut BufReader::new(&self.stream)).ok()
    }
}

/// The rank that reports.
pub(crate) struct Leader {
    listener: UnixListener,
    ranks: u32,
}

/// What a leader waits for.
pub(crate) enum Happening {
    /// Its own program has ended.
    Own(RankEnd),
    /// A rank has appeared.
    Joined,
    /// Its program has ended.
    Ended(RankEnd, UnixStream),
    /// It is gone without a word.
    Lost,
}

/// The ends of all ranks, as far as they are known.
#[derive(Default)]
pub(crate) struct Ranks {
    ended: Vec<(RankEnd, UnixStream)>,
    /// Ranks whose end was not waited for, or that never came.
    pub(crate) missing: u32,
}

impl Ranks {
    /// What the simulated GPU refused any of them.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &String> {
        self.ended.iter().flat_map(|(end, _)| &end.refused)
    }

    /// Lets the ranks go whose programs have failed, with the codes of these.
    fn dismiss_failed(&mut self) {
        for (end, stream) in self.ended.iter_mut().filter(|(end, _)| end.code != 0) {
            let _ = say(stream, &end.code);
        }
    }

    /// Tells each rank what to end with: what `judged` makes of its program's exit code.
    pub(crate) fn dismiss(&mut self, judged: impl Fn(i32) -> i32) {
        for (end, stream) in &mut self.ended {
            // One that is gone needs no answer.
            let _ = say(stream, &judged(end.code));
        }
    }
}

impl Leader {
    /// Lets the other ranks in from now on: they hand their rings to `socket`, or to the one that
    /// `key` opens. Answers where own happenings are told, and where all are heard.
    pub(crate) fn open(&self, socket: &str, key: &str) -> io::Result<(Sender<Happening>, Receiver<Happening>)> {
        let (tell, hear_of) = channel();
        let (listener, others) = (self.listener.try_clone()?, self.ranks - 1);
        let (socket, key) = (socket.to_owned(), key.to_owned());
        let teller = tell.clone();
        std::thread::spawn(move || {
            for stream in (0..others).filter_map(|_| listener.accept().ok()).map(|(stream, _)| stream) {
                let (teller, welcome) = (teller.clone(), Welcome { socket: socket.clone(), key: key.clone() });
                std::thread::spawn(move || {
                    let _ = teller.send(attend(stream, &welcome, &teller));
                });
            }
        });
        Ok((tell, hear_of))
    }

    /// Waits until the programs of all ranks have ended. A rank that has failed while others go on
    /// ends by itself after a while, so that MPI's launcher can stop them.
    pub(crate) fn wait(&self, happenings: &Receiver<Happening>) -> Ranks {
        let (mut own, mut ranks) = (None::<RankEnd>, Ranks::default());
        let (mut joined, mut gone, mut deadline) = (0, 0, None);
        loop {
            let accounted = ranks.ended.len() as u32 + gone;
            if own.is_some() && accounted == self.ranks - 1 {
                break;
            }
            if own.is_some() && accounted == joined && deadline.is_none() {
                // The rest have not appeared.
                deadline = Some(Instant::now() + MEETING);
            }
            let left = deadline.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(Instant::now()));
            let failed = match happenings.recv_timeout(left) {
                Ok(Happening::Joined) => {
                    joined += 1;
                    false
                }
                Ok(Happening::Own(end)) => own.insert(end).code != 0,
                Ok(Happening::Ended(end, stream)) => {
                    let failed = end.code != 0;
                    ranks.ended.push((end, stream));
                    failed
                }
                Ok(Happening::Lost) => {
                    gone += 1;
                    true
                }
                Err(RecvTimeoutError::Timeout) if deadline.is_some() => {
                    if own.as_ref().is_some_and(|own| own.code != 0 || accounted == joined) {
                        break;
                    }
                    ranks.dismiss_failed();
                    deadline = None;
                    false
                }
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if failed {
                deadline = Some(Instant::now() + GRACE);
            }
        }
        ranks.missing = self.ranks - 1 - ranks.ended.len() as u32;
        ranks
    }
}

fn attend(mut stream: UnixStream, welcome: &Welcome, tell: &Sender<Happening>) -> Happening {
    if !is_ours(&stream) || say(&mut stream, welcome).is_err() {
        return Happening::Lost;
    }
    let _ = tell.send(Happening::Joined);
    let heard = hear::<RankEnd>(&mut BufReader::new(&stream));
    heard.map_or(Happening::Lost, |end| Happening::Ended(end, stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Rank> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Rank::of(find, 7)
    }

    #[test]
    fn ranks_are_recognised_by_what_their_launchers_say() {
        let place = |job: &str, rank, ranks| Some(Rank { job: job.into(), rank, ranks });
        let open = [("OMPI_COMM_WORLD_LOCAL_RANK", "1"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"), ("PMIX_NAMESPACE", "5")];
        assert_eq!(of(&open), place("5", 1, 4));
        assert_eq!(of(&[("MPI_LOCALRANKID", "0"), ("MPI_LOCALNRANKS", "2")]), place("parent 7", 0, 2));
        let slurm = [
            ("SLURM_LOCALID", "3"),
            ("SLURM_STEP_TASKS_PER_NODE", "4(x2)"),
            ("SLURM_JOB_ID", "12"),
            ("SLURM_STEP_ID", "0"),
        ];
        assert_eq!(of(&slurm), place("12.0", 3, 4));
        assert_eq!(of(&[("MPI_LOCALRANKID", "0"), ("MPI_LOCALNRANKS", "1")]), None, "the only one");
        assert_eq!(of(&[("OMPI_COMM_WORLD_LOCAL_RANK", "x"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "4")]), None);
        let inside = [("MPI_LOCALRANKID", "0"), ("MPI_LOCALNRANKS", "2"), ("STREAMSAN_SOCKET", "/x")];
        assert_eq!((of(&inside), of(&[])), (None, None));
    }

    fn meeting(name: &str, ranks: u32) -> (Leader, Rank) {
        let job = format!("test {name} {}", std::process::id());
        let place = Rank { job, rank: 0, ranks };
        let listener = UnixListener::bind_addr(&place.address().expect("a name")).expect("a socket");
        (Leader { listener, ranks }, place)
    }

    #[test]
    fn all_ranks_end_with_what_the_first_one_says() {
        let (leader, place) = meeting("all", 3);
        let (tell, happenings) = leader.open("the socket", "the key").expect("a thread");
        let members: Vec<_> = [0, 3]
            .map(|code| {
                let place = place.clone();
                std::thread::spawn(move || {
                    let member = RankMember::meet(&place).expect("the leader is there");
                    assert_eq!((&*member.socket, &*member.key), ("the socket", "the key"));
                    member.ended(&RankEnd { code, refused: vec![format!("call {code}")] })
                })
            })
            .into();
        tell.send(Happening::Own(RankEnd::default())).expect("it listens");
        let mut ranks = leader.wait(&happenings);
        assert_eq!(ranks.missing, 0);
        let mut refused: Vec<_> = ranks.refused().cloned().collect();
        refused.sort();
        assert_eq!(refused, ["call 0", "call 3"]);
        ranks.dismiss(|code| code + 60);
        let codes: Vec<_> = members.into_iter().map(|member| member.join().expect("no panic")).collect();
        assert_eq!(codes, [Some(60), Some(63)]);
    }

    #[test]
    fn one_that_dies_is_missing() {
        let (leader, place) = meeting("dies", 2);
        let (tell, happenings) = leader.open("x", "").expect("a thread");
        drop(RankMember::meet(&place).expect("the leader is there"));
        tell.send(Happening::Own(RankEnd { code: 9, ..RankEnd::default() })).expect("it listens");
        assert_eq!(leader.wait(&happenings).missing, 1);
    }
}
