//! What the analyzer asks of a kernel's code, whoever reads it.
//!
//! Owns the two traits between the analysis and the readers of code images: [`KernelCode`] is one
//! kernel, [`CodeReader`] finds it. The reader that ships is [`super::image_reader`]; tests bring
//! their own.

use crate::launches::effects::{Effect, Launch};
use crate::launches::param_mask::ParamUse;
use kernels::Gap;
use trace::{ImageId, Op};

/// What is known of a kernel.
pub trait KernelCode: Send {
    /// Appends the accesses of one launch.
    fn evaluate(&self, launch: &Launch<'_>, effects: &mut Vec<Effect>);
    /// The same, and the bytes of its parameters that the accesses rest on: launches of the same
    /// shape that agree in those have the same.
    fn evaluate_noting_use(&self, launch: &Launch<'_>, effects: &mut Vec<Effect>, rests: &mut ParamUse) {
        self.evaluate(launch, effects);
        rests.use_everything();
    }
    /// Whether some addresses come out of memory, so that the accesses behind them are not among
    /// the effects.
    fn indirect(&self) -> bool;
    /// The same for one launch, by its effects; those through tables of pointers do not count, for
    /// they may be followed.
    fn indirect_in(&self, effects: &[Effect]) -> bool {
        let _ = effects;
        self.indirect()
    }
    /// Where the first of those is.
    fn indirect_gap(&self) -> Option<Gap> {
        None
    }
    /// A hash of its code, if that shows that all launches that agree in shape and parameters touch
    /// the same bytes.
    fn identity(&self) -> Option<u64> {
        None
    }
    /// Whether the kernel waits for the grids it depends on (`griddepcontrol.wait`) before it does
    /// anything.
    fn waits(&self) -> bool;
    /// Whether the kernel may talk to kernels of other processes while it runs.
    fn signals(&self) -> bool {
        false
    }
    /// Whether asynchronous copies of the kernel may read less than their size.
    fn copies_in_part(&self) -> bool {
        false
    }
    /// Keeps for later runs what launches were evaluated to.
    fn keep(&self) {}
}

/// Makes [`KernelCode`] out of code images.
pub trait CodeReader: Send {
    /// The kernel of this name in an image, for a compute capability (major * 10 + minor). An error
    /// is a short reason.
    fn read(&mut self, image: ImageId, kernel: &str, arch: u32) -> Result<Box<dyn KernelCode>, String>;
    /// Takes the definition of an image.
    fn image(&mut self, op: &Op<'_>);
    /// File and line of a kernel's instruction (see [`Effect::at`]), when its code has a line
    /// table. Slow: for reports only.
    fn line(&mut self, image: ImageId, kernel: &str, arch: u32, at: u32) -> Option<(String, u32)> {
        let _ = (image, kernel, arch, at);
        None
    }
}
