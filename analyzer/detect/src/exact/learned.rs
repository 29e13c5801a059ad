//! Learned ranges: measured once and used for later launches (`--learned FILE`), so that those need
//! no measuring.
//!
//! Owns the key of a launch, the file, and its merging. Does not decide which kernels may be
//! learned: their code does ([`crate::launches::kernel_code::KernelCode::identity`]). Only those
//! qualify whose addresses, guards and branches depend on nothing but the launch. Scatters,
//! gathers, tables of pointers and everything else that memory decides are never learned. As a
//! second line of defence, ranges that once differed for equal launches are struck out for good.
//!
//! # What a launch is recognised by
//!
//! The key holds the code and the name of the kernel, its grid, block, cluster and shared memory,
//! and its parameters. A word that the code uses as a pointer, and that points into an allocation,
//! counts as three things: which of the launch's allocations it is (in the order of the parameters,
//! and of their addresses), its distance from the first pointer into that allocation, and its low
//! byte (for alignment: what more than 256 bytes decide is not seen). So the same work on other
//! buffers is the same launch. Buffers that overlap in another way are not. Every other word counts
//! as it is. Ranges are kept relative to those pointers.

use crate::launches::effects::{Effect, EffectBase, Launch};
use crate::memory::{AllocationId, Allocations};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, OnceLock};
use system::file_name::FileName;
use trace::{ExactRun, LaunchShape, exact_kind};

/// Version of the file. Any change to keys or ranges increments it.
const VERSION: u64 = 1;

/// Maximum number of ranges of one launch. A launch with more is not learned.
const MAX_RUNS: usize = 4096;

/// Maximum number of ranges of all launches: bounds the file and the memory it takes. Later
/// launches are not learned.
const MAX_TOTAL: usize = 1 << 20;

/// What a launch is recognised by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key(u64, u64);

/// A range, relative to the first pointer of the launch into its allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    allocation: usize,
    offset: i64,
    stride: u64,
    width: u64,
    count: u32,
    kind: u32,
}

/// A launch, reduced to its key and the allocations it points into.
pub struct Shape {
    key: Key,
    /// The allocations that parameters point into, and the first pointer into each.
    allocations: Vec<(AllocationId, u64)>,
}

/// Ranges by launch; `None`: they differed, and are struck out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Learned {
    launches: BTreeMap<Key, Option<Vec<Run>>>,
    /// Number of ranges of all launches.
    total: usize,
}

/// The ranges that one analysis uses, and those it adds.
pub struct Lessons {
    /// From earlier runs.
    pub known: Arc<Learned>,
    /// From this run.
    pub fresh: Learned,
}

/// The ranges for this run, once they have been read.
static GIVEN: OnceLock<Arc<Learned>> = OnceLock::new();

/// Lets every analysis of this process use these ranges, and add to them.
pub fn give(learned: Learned) {
    let _ = GIVEN.set(Arc::new(learned));
}

/// The ranges passed to [`give`].
pub fn given() -> Option<Arc<Learned>> {
    GIVEN.get().cloned()
}

struct Hash(u64, u64);

impl Hash {
    /// FNV-1a, twice, from two start values. The file depends on it: see [`VERSION`].
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            self.1 = (self.1 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(1);
        }
    }

    fn number(&mut self, n: u64) {
        self.add(&n.to_le_bytes());
    }
}

impl Shape {
    /// The shape of a launch of the kernel `name` of this code. `effects` were predicted for it;
    /// `memory` is its state at the launch.
    pub fn of(code: u64, name: &str, l: &Launch<'_>, effects: &[Effect], memory: &Allocations) -> Self {
        let is_pointer = |at: usize| {
            let based = |base: &EffectBase| matches!(base, EffectBase::Param(o, _) | EffectBase::Maybe(o, _) if *o as usize == at);
            effects.iter().any(|e| based(&e.base))
        };
        let mut hash = Hash(0xcbf2_9ce4_8422_2325, 0x6c62_272e_07bb_0142);
        hash.number(code);
        hash.number(name.len() as u64);
        hash.add(name.as_bytes());
        let LaunchShape { grid, block, cluster, shared, .. } = &l.shape;
        for n in grid.iter().chain(block).chain(cluster).chain([shared]) {
            hash.number(u64::from(*n));
        }
        hash.number(l.params.len() as u64);
        let mut allocations: Vec<(AllocationId, u64)> = Vec::new();
        for (index, word) in l.params.chunks(8).enumerate() {
            let value = <[u8; 8]>::try_from(word).map(u64::from_le_bytes).unwrap_or(0);
            let pointer = value != 0 && is_pointer(index * 8);
            let Some(place) = memory.locate(value).filter(|_| pointer) else {
                hash.add(&[0]);
                hash.add(word);
                continue;
            };
            let known = allocations.iter().position(|a| a.0 == place.allocation);
            let index = known.unwrap_or_else(|| {
                // Code may compare pointers.
                hash.number(allocations.iter().filter(|a| a.1 < value).count() as u64);
                allocations.push((place.allocation, value));
                allocations.len() - 1
            });
            hash.add(&[1, value as u8]);
            hash.number(index as u64);
            hash.number(value.wrapping_sub(allocations[index].1));
        }
        Self { key: Key(hash.0, hash.1), allocations }
    }

    /// Ranges relative to the pointers; `None` when one lies elsewhere or is only a bound.
    fn relative(&self, runs: &[ExactRun], memory: &Allocations) -> Option<Vec<Run>> {
        let one = |run: &ExactRun| {
            let place = memory.locate(run.start)?;
            let allocation = self.allocations.iter().position(|a| a.0 == place.allocation)?;
            let inside = super::measured::end(run) <= memory.bounds(&place).1;
            let offset = run.start.wrapping_sub(self.allocations[allocation].1) as i64;
            let ExactRun { stride, width, count, kind, .. } = *run;
            (inside && kind & exact_kind::BOUND == 0).then_some(Run { allocation, offset, stride, width, count, kind })
        };
        if runs.len() > MAX_RUNS { None } else { runs.iter().map(one).collect() }
    }

    /// The ranges of this launch; `None` when one would leave its allocation.
    fn absolute(&self, runs: &[Run], memory: &Allocations) -> Option<Vec<ExactRun>> {
        let one = |run: &Run| {
            let (allocation, pointer) = *self.allocations.get(run.allocation)?;
            let start = pointer.wrapping_add_signed(run.offset);
            let Run { stride, width, count, kind, .. } = *run;
            let run = ExactRun { start, stride, width, count, kind };
            let place = memory.locate(start).filter(|p| p.allocation == allocation)?;
            (super::measured::end(&run) <= memory.bounds(&place).1).then_some(run)
        };
        runs.iter().map(one).collect()
    }
}

impl Learned {
    /// Learns the measured ranges of a launch. Nothing is learned when some of them can not be
    /// expressed by the parameters.
    pub fn learn(&mut self, shape: &Shape, runs: &[ExactRun], memory: &Allocations) {
        if let Some(runs) = shape.relative(runs, memory) {
            self.put(shape.key, Some(runs));
        }
    }

    /// The ranges of a launch, if they are known.
    pub fn recall(&self, shape: &Shape, memory: &Allocations) -> Option<Vec<ExactRun>> {
        let runs = self.launches.get(&shape.key)?.as_ref()?;
        shape.absolute(runs, memory)
    }

    fn put(&mut self, key: Key, runs: Option<Vec<Run>>) {
        match self.launches.get_mut(&key) {
            Some(known) if *known != runs => *known = None,
            Some(_) => {}
            None => {
                // An entry without ranges takes space too.
                let room = runs.as_ref().map_or(0, Vec::len) + 1;
                if self.total + room <= MAX_TOTAL {
                    self.total += room;
                    self.launches.insert(key, runs);
                }
            }
        }
    }

    /// Adds the ranges of another. Where the two differ, the entry is struck out.
    pub fn merge(&mut self, other: Self) {
        for (key, runs) in other.launches {
            self.put(key, runs);
        }
    }

    /// Launches whose ranges are known, and those that were struck out.
    pub fn counts(&self) -> (usize, usize) {
        let known = self.launches.values().filter(|runs| runs.is_some()).count();
        (known, self.launches.len() - known)
    }

    /// Reads a file. A missing file holds nothing. The error is one line for the user.
    pub fn read(path: &FileName) -> Result<Self, String> {
        match system::local_files::read(path) {
            Ok(bytes) if bytes.is_empty() => Ok(Self::default()),
            Ok(bytes) => Self::parse(&bytes).map_err(|why| format!("--learned {path}: {why}")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(format!("--learned {path}: {error}")),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        const DAMAGED: &str = "this is no file of learned ranges, or it is damaged: delete it or name another";
        let file: Value = serde_json::from_slice(bytes).map_err(|_| DAMAGED)?;
        match file["streamsan_learned"].as_u64() {
            Some(VERSION) => {}
            Some(other) => {
                return Err(format!(
                    "it has format {other}, this StreamSan reads {VERSION}: delete it or name another"
                ));
            }
            None => return Err(DAMAGED.into()),
        }
        let mut learned = Self::default();
        let launches = file["launches"].as_object().ok_or(DAMAGED)?;
        for (key, runs) in launches {
            let halves = (key.len() == 32 && key.is_ascii()).then(|| key.split_at(16)).ok_or(DAMAGED)?;
            let half = |text: &str| u64::from_str_radix(text, 16).map_err(|_| DAMAGED);
            let runs = match runs {
                Value::Null => None,
                list => Some(list.as_array().and_then(|l| l.iter().map(run).collect()).ok_or(DAMAGED)?),
            };
            learned.put(Key(half(halves.0)?, half(halves.1)?), runs);
        }
        Ok(learned)
    }

    fn json(&self) -> Value {
        let of = |r: &Run| json!([r.allocation, r.offset, r.stride, r.width, r.count, r.kind]);
        let launches: serde_json::Map<String, Value> = self
            .launches
            .iter()
            .map(|(key, runs)| {
                let runs = runs.as_ref().map_or(Value::Null, |runs| runs.iter().map(of).collect());
                (format!("{:016x}{:016x}", key.0, key.1), runs)
            })
            .collect();
        json!({ "streamsan_learned": VERSION, "launches": launches })
    }

    /// Adds this to a file. Several runs may do so at once: each holds a lock while it reads the
    /// file and replaces it by a whole new one. Returns the counts of the new file.
    pub fn add_to(self, path: &FileName) -> Result<(usize, usize), String> {
        let said = |error: std::io::Error| format!("{path} can not be written: {error}");
        let lock = std::fs::File::create(path.followed_by(".lock")).map_err(said)?;
        lock.lock().map_err(said)?;
        let mut all = Self::read(path)?;
        all.merge(self);
        let partial = path.followed_by(&format!(".{}.new", std::process::id()));
        let mut file = std::fs::File::create(&partial).map_err(said)?;
        let mut bytes = serde_json::to_vec(&all.json()).unwrap_or_default();
        bytes.push(b'\n');
        file.write_all(&bytes).and_then(|()| file.sync_all()).map_err(said)?;
        std::fs::rename(&partial, path).map_err(said)?;
        Ok(all.counts())
    }
}

fn run(value: &Value) -> Option<Run> {
    let [allocation, offset, stride, width, count, kind] = value.as_array()?.as_slice() else { return None };
    let kind = u32::try_from(kind.as_u64()?).ok().filter(|k| *k <= exact_kind::ATOMIC_WRITE)?;
    Some(Run {
        allocation: usize::try_from(allocation.as_u64()?).ok()?,
        offset: offset.as_i64()?,
        stride: stride.as_u64()?,
        width: width.as_u64()?,
        count: u32::try_from(count.as_u64()?).ok()?,
        kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(key: u64, offset: i64) -> Learned {
        let run = Run { allocation: 0, offset, stride: 8, width: 4, count: 3, kind: exact_kind::WRITE };
        let mut learned = Learned::default();
        learned.put(Key(key, 7), Some(vec![run]));
        learned
    }

    #[test]
    fn what_differs_is_struck_out_for_good() {
        let mut all = one(1, -64);
        all.merge(one(1, -64));
        all.merge(one(2, 0));
        assert_eq!(all.counts(), (2, 0));
        all.merge(one(1, 0));
        all.merge(one(1, -64));
        assert_eq!(all.counts(), (1, 1));
    }

    #[test]
    fn files_are_merged_and_damage_is_one_line() {
        let folder = std::env::temp_dir().join(format!("streamsan-learned-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = FileName::from(folder.join("file"));
        assert_eq!(Learned::read(&path), Ok(Learned::default()));
        assert_eq!(one(1, -64).add_to(&path), Ok((1, 0)));
        // Many threads at once: nothing is lost.
        let threads: Vec<_> = (2..10)
            .map(|key| {
                let path = path.clone();
                std::thread::spawn(move || one(key, 0).add_to(&path))
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic").expect("written");
        }
        let mut want = one(1, -64);
        (2..10).for_each(|key| want.merge(one(key, 0)));
        assert_eq!(Learned::read(&path), Ok(want));
        let whole = std::fs::read(&path).expect("a file");
        for bytes in [&whole[..whole.len() / 2], b"\0\0\0", b"[]", b"{\"streamsan_learned\":1,\"launches\":{\"x\":[]}}"]
        {
            std::fs::write(&path, bytes).expect("a file");
            let error = Learned::read(&path).unwrap_err();
            assert!(error.contains("or it is damaged: delete it") && !error.contains('\n'), "{error}");
            assert!(one(1, 0).add_to(&path).is_err(), "a foreign file is not overwritten");
        }
        std::fs::write(&path, "{\"streamsan_learned\":2,\"launches\":{}}").expect("a file");
        assert!(Learned::read(&path).unwrap_err().contains("format 2, this StreamSan reads 1"));
        let _ = std::fs::remove_dir_all(&folder);
    }
}
