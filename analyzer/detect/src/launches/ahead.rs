//! Kernels and launches whose turn in the pass has not come, analysed by other threads.
//!
//! Owns these threads, and the [`Scout`] that tells them what is to come. The scout sees the records
//! of a process before the pass does. It has the summary of each kernel made when the kernel is
//! defined, and launches evaluated that differ from earlier ones. All of this is a function of code
//! and launch, which the crate `kernels` keeps for the pass ([`Summary::evaluate_ahead`]): the pass
//! finds the same with and without it. What the pass comes to first it does itself, so this is never
//! more than a help; where much is to be done, some launches are passed over.
//!
//! Does not know order or memory, and decides nothing.

use crate::launches::images::{DefinedImage, Images, SharedImages, WeakImages};
use crate::launches::param_layout::ParamLayout;
use kernels::{LaunchArgs, Summary, Watched, starved_within};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use system::background;
use trace::launch_flags::PARAMS_UNKNOWN;
use trace::op::tag;
use trace::{KernelId, LaunchRecord, LaunchShape, Op, ParamSlot, Record};

/// Launches of one kernel that wait to be evaluated.
const MOST_WAITING: usize = 512;
/// Launches that are remembered as seen.
const MOST_SEEN: usize = 1 << 16;
/// Launches of one kernel that are evaluated before another kernel has its turn.
const AT_ONCE: usize = 8;
/// How long all of them stop when one has no processor to work on: whoever then waits for it loses
/// time.
const RETREAT: Duration = Duration::from_millis(500);
/// Stack of a thread: the analysis of code follows its dependencies by recursion. Only the used part
/// takes memory.
const STACK: usize = 512 << 20;

/// A kernel of which launches are to come.
struct Expected {
    image: Arc<DefinedImage>,
    arch: u32,
    name: String,
    params: Vec<ParamSlot>,
    /// They end with the pass.
    images: WeakImages,
    waiting: Mutex<Waiting>,
    code: OnceLock<Option<(Arc<Summary>, ParamLayout)>>,
}

#[derive(Default)]
struct Waiting {
    launches: VecDeque<(LaunchShape, Vec<u8>)>,
    /// Whether it is in the queue, or has its turn.
    is_queued: bool,
}

impl Expected {
    /// A part of what is to be done; false when that was all.
    fn work(&self) -> bool {
        for _ in 0..AT_ONCE {
            if starved_within(RETREAT) {
                return true;
            }
            let Some(images) = self.images.upgrade() else { return false };
            let code = self.code.get_or_init(|| {
                let summary = self.image.load(self.arch, images.files()).ok()?.summary(&self.name).ok()?;
                let layout = ParamLayout::new(summary.params(), &self.params);
                Some((summary, layout))
            });
            let mut waiting = lock(&self.waiting);
            let Some((shape, params)) = waiting.launches.pop_front() else {
                waiting.is_queued = false;
                return false;
            };
            drop(waiting);
            let Some((summary, layout)) = code else { continue };
            let moved = layout.for_code(&params);
            let LaunchShape { grid, block, cluster, shared, .. } = shape;
            let params = moved.as_deref().unwrap_or(&params);
            summary.evaluate_ahead(&LaunchArgs { grid, block, cluster, shared, params });
        }
        true
    }
}

/// The threads, which all processes of a run share.
#[derive(Default)]
struct Crew {
    queue: Mutex<VecDeque<Arc<Expected>>>,
    has_work: Condvar,
}

impl Crew {
    /// The threads of this process; `None`: there is no core for them.
    fn get() -> Option<&'static Crew> {
        static CREW: OnceLock<Option<Crew>> = OnceLock::new();
        static STARTED: OnceLock<()> = OnceLock::new();
        let crew = CREW.get_or_init(|| (background::threads() > 0).then(Crew::default)).as_ref()?;
        STARTED.get_or_init(|| {
            for _ in 0..background::threads() {
                let thread = std::thread::Builder::new().name("ahead".into()).stack_size(STACK);
                // Without them the pass does all of it.
                let _ = thread.spawn(|| crew.work());
            }
        });
        Some(crew)
    }

    fn put(&self, kernel: Arc<Expected>) {
        lock(&self.queue).push_back(kernel);
        self.has_work.notify_one();
    }

    fn work(&self) {
        background::enter();
        loop {
            let mut queue = lock(&self.queue);
            let kernel = loop {
                match queue.pop_front() {
                    Some(kernel) => break kernel,
                    None => queue = self.has_work.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(queue);
            while starved_within(RETREAT) {
                std::thread::sleep(RETREAT / 10);
            }
            let watched = Watched::own();
            // A kernel whose analysis panics is the pass's to judge. It is left alone here.
            if catch_unwind(AssertUnwindSafe(|| kernel.work())).unwrap_or(false) {
                self.put(kernel);
            }
            let _ = watched.is_starved();
        }
    }
}

/// What sees the records of one process before the pass does.
pub struct Scout {
    crew: &'static Crew,
    images: Images,
    /// The compute capability of all devices.
    arch: Option<u32>,
    kernels: FxHashMap<KernelId, Arc<Expected>>,
    seen: FxHashSet<u64>,
}

impl Scout {
    /// One that shares code with the reader of the pass; `None`: there is no core for it.
    pub fn new(shared: &SharedImages) -> Option<Scout> {
        Some(Scout {
            crew: Crew::get()?,
            images: Images::of(shared.clone()),
            arch: None,
            kernels: FxHashMap::default(),
            seen: FxHashSet::default(),
        })
    }

    /// Takes the next record.
    #[inline]
    pub fn look(&mut self, bytes: &[u8]) {
        if let Some(launch) = LaunchRecord::decode(bytes) {
            if let Ok(LaunchRecord { kernel, shape, params, .. }) = launch {
                self.launch(kernel, &shape, params);
            }
            return;
        }
        let matters = |of: &[u8; 2]| {
            matches!(
                u16::from_le_bytes(*of),
                tag::Image | tag::ImageFile | tag::Kernel | tag::Device | tag::GraphNode
            )
        };
        if bytes.first_chunk().is_some_and(matters)
            && let Ok(record) = Record::decode(bytes)
        {
            self.define(&record.op);
        }
    }

    #[cold]
    fn define(&mut self, op: &Op<'_>) {
        match *op {
            Op::Image { .. } | Op::ImageFile { .. } => self.images.define(op, |bytes| bytes.to_vec().into()),
            Op::Device { arch, .. } => {
                // Where devices differ, the pass knows which one a kernel is for.
                self.arch = Some(if self.arch.is_none_or(|known| known == arch) { arch } else { 0 });
            }
            Op::Kernel { id, name, image, params, .. } if !self.kernels.contains_key(&id) => {
                let (Some(arch), Some(image)) = (self.arch.filter(|arch| *arch != 0), self.images.find(image)) else {
                    return;
                };
                let expected = Arc::new(Expected {
                    image,
                    arch,
                    name: name.lossy().into_owned(),
                    params: params.iter().collect(),
                    images: self.images.shared().downgrade(),
                    waiting: Mutex::new(Waiting { is_queued: true, ..Waiting::default() }),
                    code: OnceLock::new(),
                });
                self.kernels.insert(id, Arc::clone(&expected));
                self.crew.put(expected);
            }
            Op::GraphNode { tag: tag::Launch, body, .. } => {
                if let Ok(Op::Launch { kernel, shape, params, .. }) = Op::decode(tag::Launch, body) {
                    self.launch(kernel, &shape, params);
                }
            }
            _ => {}
        }
    }

    fn launch(&mut self, kernel: KernelId, shape: &LaunchShape, params: &[u8]) {
        let mut hasher = FxHasher::default();
        (kernel, shape.grid, shape.block, shape.cluster, shape.shared, params).hash(&mut hasher);
        if shape.flags & PARAMS_UNKNOWN != 0 || !self.seen.insert(hasher.finish()) {
            return;
        }
        if self.seen.len() > MOST_SEEN {
            self.seen.clear();
        }
        let Some(expected) = self.kernels.get(&kernel) else { return };
        let mut waiting = lock(&expected.waiting);
        if waiting.launches.len() >= MOST_WAITING {
            return;
        }
        waiting.launches.push_back((*shape, params.to_vec()));
        if !std::mem::replace(&mut waiting.is_queued, true) {
            drop(waiting);
            self.crew.put(Arc::clone(expected));
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
