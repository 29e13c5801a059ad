//! A place where native code may be entered, what is compiled for it, and what is supposed there.

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use super::compiler::Installed;
use super::effects::Register;
use super::flow::{Flow, ValueForm};
use super::pack::Supposed;
use super::pack::uniformity::{self, Class, Exit};
use super::pack::width::Width;
use sim_exec::program::LANES;
use sim_exec::warp::Warp;

/// One of the two kinds of code that a region has.
#[derive(Default)]
pub(super) struct Tier {
    code: AtomicPtr<Installed>,
    tried: AtomicBool,
}

impl Tier {
    /// Whether somebody has tried to compile it.
    #[inline]
    pub(super) fn tried(&self) -> bool {
        self.tried.load(Ordering::Acquire)
    }

    /// The code.
    #[inline]
    pub(super) fn code(&self) -> Option<&Installed> {
        // SAFETY: only `set` puts something there: what lives as long as the program's native code,
        // to which this belongs, too.
        unsafe { self.code.load(Ordering::Acquire).as_ref() }
    }

    /// `installed` lives as long as the native code of the program.
    pub(super) fn set(&self, installed: Option<*const Installed>) {
        if let Some(installed) = installed {
            self.code.store(installed.cast_mut(), Ordering::Release);
        }
        self.tried.store(true, Ordering::Release);
    }

    /// Forgets the code. Who runs it may go on.
    pub(super) fn reset(&self) {
        self.code.store(std::ptr::null_mut(), Ordering::Release);
        self.tried.store(false, Ordering::Release);
    }
}

/// What begins at one instruction.
pub(super) struct Region {
    pub(crate) entry: u32,
    /// How often warps have come here while there was no code to run.
    waited: AtomicU32,
    /// For lanes one by one, for those of a warp that have parted at the branch there, and for
    /// packs.
    pub(crate) lanes: Tier,
    pub(crate) joining: Tier,
    pub(crate) packs: Tier,
    /// Lanes of a pack.
    width: AtomicU32,
    /// What the code for whole warps supposes of registers, and which code that is.
    supposed: Mutex<(usize, Vec<(usize, Class)>)>,
    /// Packs that entered it, and those that found other values than supposed, since it was
    /// compiled.
    pub(crate) entered: AtomicU32,
    pub(crate) missed: AtomicU32,
    /// How often it was compiled again.
    pub(crate) renewed: AtomicU32,
    /// Registers of which nothing is supposed any more.
    pub(crate) varying: Mutex<BTreeSet<usize>>,
}

/// What running the packs of a region has shown.
pub(super) struct KnownOfPacks {
    /// How often code was made again because values were not as assumed.
    pub(crate) renewed: u32,
    /// Registers of which nothing is assumed, in order.
    pub(crate) varying: Vec<usize>,
}

impl Region {
    /// How wide its packs are.
    #[inline]
    pub(super) fn width(&self) -> Width {
        Width::of_lanes(self.width.load(Ordering::Relaxed) as usize)
    }

    /// Takes code for packs.
    pub(super) fn set_packs(&self, width: Width, code: Option<*const Installed>, supposed: &[(usize, Class)]) {
        self.set_width(width);
        if let (Some(code), Ok(mut known)) = (code, self.supposed.lock()) {
            *known = (code as usize, supposed.to_vec());
        }
        self.packs.set(code);
        self.missed.store(0, Ordering::Relaxed);
        self.entered.store(0, Ordering::Relaxed);
    }

    /// Whether code may be made for warps that come here: when they have come often enough.
    pub(super) fn is_due(&self, often: u32) -> bool {
        self.waited.load(Ordering::Relaxed) >= often || self.waited.fetch_add(1, Ordering::Relaxed) >= often
    }

    /// What running its packs has shown.
    pub(super) fn known_of_packs(&self) -> KnownOfPacks {
        let varying = self.varying.lock().map(|varying| varying.iter().copied().collect()).unwrap_or_default();
        KnownOfPacks { renewed: self.renewed.load(Ordering::Relaxed), varying }
    }

    /// Whether a warp that has left another region there has what this one's code supposes.
    #[inline]
    pub(super) fn trusts(&self, exit: &Exit) -> bool {
        let code = self.packs.code.load(Ordering::Acquire).cast::<()>();
        exit.has(code, || {
            let known = self.supposed.lock().ok()?;
            (known.0 == code as usize).then(|| known.1.clone())
        })
    }

    fn set_width(&self, width: Width) {
        self.width.store(width.lanes() as u32, Ordering::Relaxed);
    }

    /// `waited`: how often warps have come here.
    pub(super) fn new(entry: u32, waited: u32) -> Region {
        Region {
            entry,
            waited: AtomicU32::new(waited),
            lanes: Tier::default(),
            joining: Tier::default(),
            packs: Tier::default(),
            width: AtomicU32::new(Width::NARROWEST.lanes() as u32),
            supposed: Mutex::default(),
            entered: AtomicU32::new(0),
            missed: AtomicU32::new(0),
            renewed: AtomicU32::new(0),
            varying: Mutex::default(),
        }
    }
}

/// What is supposed, for narrow packs.
pub(super) fn narrow(warp: &mut Warp<'_>, flow: &Flow) -> Supposed {
    let packs = Width::NARROWEST.full_packs(warp.active);
    observed(warp, flow, Width::NARROWEST, packs)
}

/// What is supposed, for the widest packs in which threads are as regular as in narrow ones: those
/// of a row of the block.
pub(super) fn widest(warp: &mut Warp<'_>, flow: &Flow) -> Supposed {
    let mask = warp.active;
    let rows = |warp: &Warp<'_>, width: Width| {
        let packs = width.full_packs(mask);
        let class = |axis: &[u32; LANES]| uniformity::observed(width, packs, None, false, |lane| u64::from(axis[lane]));
        warp.tid.each_ref().map(|axis| class(axis) == Class::Uniform)
    };
    let narrow = rows(warp, Width::NARROWEST);
    let packs = |width: Width| width.full_packs(mask);
    let fits = |width: &Width| packs(*width) == packs(Width::NARROWEST) && rows(warp, *width) == narrow;
    let width = Width::ALL.into_iter().find(fits).unwrap_or(Width::NARROWEST);
    // Two rows of a block may be one pack.
    let whole = Width::of_lanes(LANES);
    let width = if width.lanes() * 2 == LANES && mask == u32::MAX && in_rows(warp) { whole } else { width };
    observed(warp, flow, width, packs(width))
}

/// Whether each half of a warp is a row of its block.
fn in_rows(warp: &Warp<'_>) -> bool {
    let class = |axis: &[u32; LANES]| {
        let form = Some(ValueForm::Word);
        uniformity::observed(Width::of_lanes(LANES), u32::MAX, form, true, |lane| u64::from(axis[lane]))
    };
    let classes = warp.tid.each_ref().map(class);
    classes.contains(&Class::Halves(0)) && !classes.contains(&Class::Varying)
}

/// How the values that a warp has differ from lane to lane of a pack.
pub(super) fn observed(warp: &mut Warp<'_>, flow: &Flow, width: Width, packs: u32) -> Supposed {
    let halves = width.lanes() == LANES && packs == u32::MAX && in_rows(warp);
    let (frame, preds) = warp.frame_and_preds();
    let mut registers = HashMap::new();
    for index in 0..flow.registers() {
        let register = flow.register(index);
        let class = match register {
            Register::Row(row) => {
                // SAFETY: the frame has the function's rows.
                let row_values = unsafe { &(*frame.add(row as usize)).0 };
                uniformity::observed(width, packs, Some(flow.form(row)), halves, |lane| row_values[lane])
            }
            Register::Pred(pred) => {
                // SAFETY: and its predicates.
                let word = unsafe { *preds.add(pred as usize) };
                uniformity::observed(width, packs, None, halves, |lane| u64::from(word >> lane & 1))
            }
        };
        registers.insert(index, class);
    }
    let word = Some(ValueForm::Word);
    let tid = warp.tid.map(|tid| uniformity::observed(width, packs, word, halves, |lane| u64::from(tid[lane])));
    Supposed { width, registers, tid }
}
