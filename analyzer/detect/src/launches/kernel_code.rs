//! The interface to a kernel's code, independent of who reads it.
//!
//! Owns the two traits between the analysis and the readers of code images: [`KernelCode`] is one
//! kernel, [`CodeReader`] finds it. [`super::image_reader`] is the reader that ships; tests bring
//! their own.

use crate::launches::effects::{Effect, Launch};
use crate::launches::param_mask::ParamUse;
use crate::memory::{AccessKind, TensorMaps};
use kernels::{Dependency, Gap, Loss, Triggering};
use std::sync::Arc;
use trace::{ImageId, Op};

/// The analysed code of a kernel.
pub trait KernelCode: Send {
    /// Appends the accesses of one launch.
    fn evaluate(&self, launch: &Launch<'_>, effects: &mut Vec<Effect>);
    /// The same, and the parameter bytes that the accesses depend on: launches of equal shape that
    /// agree in those bytes have equal accesses. `maps`: the tensor maps that are known.
    fn evaluate_noting_use(
        &self,
        launch: &Launch<'_>,
        maps: &TensorMaps,
        effects: &mut Vec<Effect>,
        usage: &mut ParamUse,
    ) {
        let _ = maps;
        self.evaluate(launch, effects);
        usage.use_everything();
    }
    /// Whether some addresses are loaded from memory. The accesses through them are not among the
    /// effects.
    fn indirect(&self) -> bool;
    /// The same for one launch, by its effects. Accesses through pointer tables do not count,
    /// because they may be followed.
    fn indirect_in(&self, effects: &[Effect]) -> bool {
        let _ = effects;
        self.indirect()
    }
    /// Whether the code that was read is PTX, not machine code; `None`: of a reader that knows of
    /// neither.
    fn is_ptx(&self) -> Option<bool> {
        None
    }
    /// Where its launches have the parameters, as the driver says.
    fn recorded_as(&mut self, params: &[trace::ParamSlot]) {
        let _ = params;
    }
    /// Where the first such address is loaded.
    fn indirect_gap(&self) -> Option<Gap> {
        None
    }
    /// What keeps accesses of this kind through this parameter word from being exact; `at`: the
    /// first of their instructions. Slow: for reports only.
    fn loss(&self, kind: AccessKind, param: Option<u32>, at: u32) -> Option<Loss> {
        let _ = (kind, param, at);
        None
    }
    /// A hash of the code, if the code proves that launches of equal shape and parameters touch the
    /// same bytes.
    fn identity(&self) -> Option<u64> {
        None
    }
    /// What the kernel does about programmatic dependent launch.
    fn dependency(&self) -> Dependency;
    /// Of a kernel of which the launch decides it: which of its blocks let dependent grids begin.
    fn triggering(&self, launch: &Launch<'_>) -> Triggering {
        let _ = launch;
        Triggering::Some
    }
    /// Its waits for the grids it depends on, as [`Effect::at`] counts.
    fn waits(&self) -> Vec<u32> {
        Vec::new()
    }
    /// Its triggers for dependent grids, counted likewise.
    fn triggers_at(&self) -> Vec<u32> {
        Vec::new()
    }
    /// Whether its blocks surely do no more once they have triggered.
    fn triggers_last(&self) -> bool {
        false
    }
    /// Whether the kernel may communicate with kernels of other processes while it runs.
    fn signals(&self) -> bool {
        false
    }
    /// The kinds of atomic accesses without which a launch communicates with nobody. None: every
    /// launch of the kernel may.
    fn signals_by(&self) -> Option<Vec<AccessKind>> {
        None
    }
    /// The loads by which it polls flags.
    fn flag_loads(&self) -> &[kernels::FlagLoad] {
        &[]
    }
    /// The bulk operations that its code leads to from stores without a fence between the proxies.
    fn unfenced_copies(&self) -> &[kernels::UnfencedCopy] {
        &[]
    }
    /// Whether the kernel may wait for others by anything but these loads: it has other atomic
    /// loads, updates that answer what was there, or goes through addresses that it loads.
    fn may_wait_besides(&self, known: &[u32]) -> bool {
        let _ = known;
        true
    }
    /// Whether these bytes that the kernel loads atomically may be what the host stores atomically
    /// while it runs: both then have a scope that contains the other side. One word may be a flag.
    /// More are flags only of a kernel that acquires: others are data which is `volatile`.
    fn loads_from_host(&self, _bytes: u64) -> bool {
        false
    }
    /// Whether accesses of this kind that the kernel makes may have the scope of the system: what
    /// they store is then for the host to load while the kernel runs.
    fn stores_for_host(&self, _kind: AccessKind) -> bool {
        false
    }
    /// Whether no atomic store of its code has a scope beyond its device.
    fn stores_within_device(&self) -> bool {
        false
    }
    /// Whether the kernel may learn of what others do while it runs, or goes through addresses that
    /// it loads: it has atomic loads, or such addresses.
    fn listens(&self) -> bool {
        self.indirect()
    }
    /// Whether asynchronous copies of the kernel may read less than their size.
    fn copies_in_part(&self) -> bool {
        false
    }
    /// How many launches have the bytes of others that differ in pointers only.
    fn relocated(&self) -> u64 {
        0
    }
    /// Writes the evaluations of this run to the cache on disk.
    fn keep(&self) {}
}

/// Reads [`KernelCode`] from code images.
pub trait CodeReader: Send {
    /// The kernel of this name in an image, for a compute capability (major * 10 + minor). An error
    /// is a short reason.
    fn read(&mut self, image: ImageId, kernel: &str, arch: u32) -> Result<Box<dyn KernelCode>, String>;
    /// Takes the definition of an image, or of its file.
    fn image(&mut self, op: &Op<'_>);
    /// Takes the definition of an image that is a part of these bytes, which may be kept: images
    /// have megabytes.
    fn image_within(&mut self, op: &Op<'_>, whole: &Arc<Vec<u8>>) {
        let _ = whole;
        self.image(op);
    }
    /// Files whose code was wanted and that are others by now.
    fn replaced(&self) -> Vec<String> {
        Vec::new()
    }
    /// File and line of the function that is no inlined one, of an instruction. Slow: for reports
    /// only.
    fn outer_line(&mut self, image: ImageId, kernel: &str, arch: u32, at: u32) -> Option<(String, u32)> {
        let _ = (image, kernel, arch, at);
        None
    }
    /// File and line of a kernel's instruction (see [`Effect::at`]), when its code has a line
    /// table. Slow: for reports only.
    fn line(&mut self, image: ImageId, kernel: &str, arch: u32, at: u32) -> Option<(String, u32)> {
        let _ = (image, kernel, arch, at);
        None
    }
}
