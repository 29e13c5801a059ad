//! Kernels and launches whose turn in the pass has not come, analysed by other threads.
//!
//! Owns these threads, and the [`Scout`] that tells them what is to come. The scout sees the
//! records of a process before the pass does. It has the summary of each kernel made when the
//! kernel is defined, and launches evaluated that differ from earlier ones. All of this is a
//! function of code and launch, which the crate `kernels` keeps for the pass
//! ([`Summary::evaluate_ahead`]): the pass finds the same with and without it. What the pass comes
//! to first it does itself, so this is never more than a help; where much is to be done, some
//! launches are passed over.
//!
//! Does not know order or memory, and decides nothing.

use crate::launches::images::{DefinedImage, Images, SharedImages, WeakImages};
use crate::launches::param_layout::ParamLayout;
use kernels::{LaunchArgs, Summary, Watched, starved_within};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use system::background;
use trace::launch_flags::PARAMS_UNKNOWN;
use trace::op::tag;
use trace::{KernelId, LaunchRecord, LaunchShape, Op, ParamSlot, Record};

/// Launches of one kernel that wait to be evaluated.
const MOST_WAITING: usize = 512;
/// The same of all kernels.
const MOST_WAITING_OF_ALL: usize = 1 << 14;
/// Launches that are remembered as seen.
const MOST_SEEN: usize = 1 << 16;
/// Launches of one kernel that are evaluated before another kernel has its turn.
const AT_ONCE: usize = 8;
/// How long all of them stop when one has no processor to work on: whoever then waits for it loses
/// time.
const RETREAT: Duration = Duration::from_millis(500);
/// Stack of a thread: the analysis of code follows its dependencies by recursion. Only the used
/// part takes memory.
const STACK: usize = 512 << 20;

/// A kernel of which launches are to come.
struct Expected {
    crew: &'static Crew,
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
    /// A part of what is to be done, as long as this may go on; false when that was all.
    fn work(&self, may_go_on: impl Fn() -> bool) -> bool {
        for _ in 0..AT_ONCE {
            if !may_go_on() {
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
            self.crew.waiting.fetch_sub(1, Ordering::Relaxed);
            let Some((summary, layout)) = code else { continue };
            let moved = layout.for_code(&params);
            let LaunchShape { grid, block, cluster, shared, .. } = shape;
            let params = moved.as_deref().unwrap_or(&params);
            summary.evaluate_ahead(&LaunchArgs { grid, block, cluster, shared, params });
        }
        true
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let left = lock(&self.waiting).launches.len();
        self.crew.waiting.fetch_sub(left, Ordering::Relaxed);
    }
}

/// The threads, which all processes of a run share.
#[derive(Default)]
struct Crew {
    queue: Mutex<VecDeque<Arc<Expected>>>,
    has_work: Condvar,
    /// Launches that wait, of all kernels.
    waiting: AtomicUsize,
}

impl Crew {
    /// The threads of this process; `None`: there is no core for them.
    fn get() -> Option<&'static Crew> {
        static CREW: OnceLock<Option<&'static Crew>> = OnceLock::new();
        let start = || {
            let crew: &'static Crew = Box::leak(Box::default());
            let thread = || std::thread::Builder::new().name("ahead".into()).stack_size(STACK);
            let started = (0..background::threads()).filter(|_| thread().spawn(|| crew.work()).is_ok());
            (started.count() > 0).then_some(crew)
        };
        *CREW.get_or_init(start)
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
            while must_stop() {
                std::thread::sleep(RETREAT / 10);
            }
            let watched = Watched::own();
            // A kernel whose analysis panics is the pass's to judge. It is left alone here.
            if catch_unwind(AssertUnwindSafe(|| kernel.work(|| !must_stop()))).unwrap_or(false) {
                self.put(kernel);
            }
            let _ = watched.is_starved();
        }
    }
}

/// Whether the cores belong to others now.
fn must_stop() -> bool {
    starved_within(RETREAT) || kernels::is_held_back()
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
            matches!(u16::from_le_bytes(*of), tag::Image | tag::ImageFile | tag::Kernel | tag::Device | tag::GraphNode)
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
                    crew: self.crew,
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
        let all_waiting = self.crew.waiting.load(Ordering::Relaxed);
        if waiting.launches.len() >= MOST_WAITING || all_waiting >= MOST_WAITING_OF_ALL {
            return;
        }
        self.crew.waiting.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launches::image_reader::ImageReader;
    use crate::launches::kernel_code::CodeReader;
    use trace::codec::List;
    use trace::{ImageId, ImageSource, KernelId, Origin, StreamId};

    const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 o, .param .u32 n) {
  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %d<5>;
  ld.param.u64 %d1, [o]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1; @%p1 bra DONE;
  mul.wide.s32 %d3, %r5, 4; add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r5;
DONE: ret;
}
";

    /// A scout whose threads are the test's.
    fn scout(images: &SharedImages) -> Scout {
        Scout {
            crew: Box::leak(Box::default()),
            images: Images::of(images.clone()),
            arch: None,
            kernels: FxHashMap::default(),
            seen: FxHashSet::default(),
        }
    }

    fn look(scout: &mut Scout, op: &Op<'_>) {
        let mut bytes = vec![0; Origin::encoded_len(op)];
        Origin::default().encode(op, &mut bytes).expect("room");
        scout.look(&bytes);
    }

    fn image<'a>() -> Op<'a> {
        let (id, source) = (ImageId(1), ImageSource::Inline);
        Op::Image { id, source, path: "".into(), offset: 0, size: 0, bytes: PTX.as_bytes() }
    }

    fn device<'a>(ordinal: u32, arch: u32) -> Op<'a> {
        Op::Device { ordinal, arch, name: "device".into() }
    }

    fn kernel<'a>(id: u32) -> Op<'a> {
        Op::Kernel { id: KernelId(id), name: "fill".into(), image: ImageId(1), params: List::new(&[]), handle: 1 }
    }

    fn launch(params: &[u8]) -> Op<'_> {
        let shape = LaunchShape { grid: [4, 1, 1], block: [128, 1, 1], cluster: [1; 3], shared: 0, flags: 0 };
        Op::Launch { stream: StreamId(1), kernel: KernelId(1), shape, params }
    }

    fn params(number: u32) -> Vec<u8> {
        [&0x7f00_0000_0000_u64.to_le_bytes()[..], &number.to_le_bytes()].concat()
    }

    fn waiting(scout: &Scout) -> usize {
        scout.kernels.values().map(|kernel| lock(&kernel.waiting).launches.len()).sum()
    }

    #[test]
    fn a_kernel_is_summarised_when_it_is_defined_and_the_pass_gets_that_summary() {
        let images = SharedImages::default();
        let mut scout = scout(&images);
        [image(), device(0, 80), kernel(1), launch(&params(7))].iter().for_each(|op| look(&mut scout, op));
        let expected = lock(&scout.crew.queue).pop_front().expect("a kernel");
        assert!(!expected.work(|| true) && lock(&scout.crew.queue).is_empty());
        let (ahead, _) = expected.code.get().and_then(Option::as_ref).expect("summarised");
        let mut reader = ImageReader::new(images.clone());
        reader.image(&image());
        assert!(reader.read(ImageId(1), "fill", 80).is_ok());
        let own = Images::of(images.clone());
        let shared = own.find(ImageId(1)).expect("shared").load(80, images.files()).expect("code");
        assert!(Arc::ptr_eq(ahead, &shared.summary("fill").expect("a summary")));
    }

    #[test]
    fn launches_are_taken_once_each_and_no_more_than_are_worked_off() {
        let images = SharedImages::default();
        let mut scout = scout(&images);
        [image(), device(0, 80), kernel(1)].iter().for_each(|op| look(&mut scout, op));
        for _ in 0..3 {
            (0..20).for_each(|number| look(&mut scout, &launch(&params(number))));
        }
        assert_eq!(waiting(&scout), 20);
        let expected = lock(&scout.crew.queue).pop_front().expect("a kernel");
        assert!(expected.work(|| true) && waiting(&scout) == 20 - AT_ONCE);
        (0..2 * MOST_WAITING as u32).for_each(|number| look(&mut scout, &launch(&params(100 + number))));
        assert_eq!(waiting(&scout), MOST_WAITING);
        assert!(lock(&scout.crew.queue).is_empty(), "it has its turn already");
        while expected.work(|| true) {}
        assert_eq!(scout.crew.waiting.load(Ordering::Relaxed), 0);
        look(&mut scout, &launch(&params(5000)));
        assert_eq!((waiting(&scout), lock(&scout.crew.queue).len()), (1, 1));
    }

    #[test]
    fn nothing_is_done_where_devices_differ_or_the_pass_has_ended() {
        let images = SharedImages::default();
        let mut differing = scout(&images);
        [image(), device(0, 80), device(1, 90), kernel(1)].iter().for_each(|op| look(&mut differing, op));
        assert!(differing.kernels.is_empty());
        let mut ended = scout(&images);
        [image(), device(0, 80), kernel(1), launch(&params(7))].iter().for_each(|op| look(&mut ended, op));
        let expected = lock(&ended.crew.queue).pop_front().expect("a kernel");
        drop((images, differing, ended));
        assert!(!expected.work(|| true) && expected.code.get().is_none());
    }

    #[test]
    fn a_crew_works_off_what_is_put() {
        let images = SharedImages::default();
        let crew: &'static Crew = Box::leak(Box::default());
        let mut scout = Scout { crew, ..scout(&images) };
        std::thread::Builder::new().stack_size(STACK).spawn(|| crew.work()).expect("a thread");
        [image(), device(0, 80), kernel(1)].iter().for_each(|op| look(&mut scout, op));
        (0..200).for_each(|number| look(&mut scout, &launch(&params(number))));
        while waiting(&scout) > 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
