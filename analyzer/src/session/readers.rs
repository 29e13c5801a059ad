//! The real readers behind an [`crate::Analysis`]: debug information for stacks, code images for kernels.
//!
//! Owns the adapters only; `symbols` reads debug information, the crate `kernels` reads code.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use kernels::arch::Arch;
use kernels::{CodeImage, Extent, LaunchArgs, Summary};
use rustc_hash::FxHashMap;
use trace::{ImageId, ImageSource, Op, StackId};

use crate::code::{Base, Bytes, CodeReader, Effect, KernelCode, Launch};
use crate::memory::{AccessKind, Dim};
use crate::report::model::Frame;
use crate::stacks::Stacks;
use crate::symbols::{Symbolizer, demangle};

impl Stacks for Symbolizer {
    fn define(&mut self, op: &Op<'_>) {
        Symbolizer::define(self, op);
    }

    fn resolve(&mut self, stack: StackId) -> Vec<Frame> {
        Symbolizer::resolve(self, stack)
    }

    fn demangle(&self, name: &str) -> String {
        demangle(name)
    }
}

/// An image as the trace gave it.
enum Source {
    Inline(Arc<[u8]>),
    File { path: String, offset: u64, size: u64 },
}

impl Source {
    fn read(&self) -> Result<Arc<[u8]>, String> {
        match self {
            Self::Inline(bytes) => Ok(Arc::clone(bytes)),
            Self::File { path, offset, size } => {
                let failed = |error: std::io::Error| format!("{path}: {error}");
                let file = File::open(path).map_err(failed)?;
                let end = file.metadata().map_err(failed)?.len();
                let size = if *size == 0 { end.saturating_sub(*offset) } else { *size };
                if offset.saturating_add(size) > end {
                    return Err(format!("{path} has changed since it was loaded"));
                }
                let mut bytes = vec![0; size as usize];
                file.read_exact_at(&mut bytes, *offset).map_err(failed)?;
                Ok(bytes.into())
            }
        }
    }
}

/// Reads code images when a kernel of theirs is first launched.
#[derive(Default)]
pub struct Images {
    sources: FxHashMap<ImageId, Source>,
    loaded: FxHashMap<(ImageId, u32), Result<Arc<CodeImage>, String>>,
}

impl CodeReader for Images {
    fn image(&mut self, op: &Op<'_>) {
        if let Op::Image { id, source, path, offset, size, bytes } = *op {
            let source = match source {
                ImageSource::Inline => Source::Inline(bytes.into()),
                ImageSource::File => Source::File { path: path.lossy().into_owned(), offset, size },
            };
            self.sources.insert(id, source);
        }
    }

    fn read(&mut self, image: ImageId, kernel: &str, arch: u32) -> Result<Box<dyn KernelCode>, String> {
        let source = self.sources.get(&image).ok_or("the code image is not known")?;
        let code = self.loaded.entry((image, arch)).or_insert_with(|| {
            let bytes = source.read()?;
            let arch = Arch::new(u16::try_from(arch).unwrap_or(0));
            CodeImage::load(&bytes, arch).map(Arc::new).map_err(|error| error.to_string())
        });
        let summary = code.as_ref().map_err(Clone::clone)?.summary(kernel).map_err(|error| error.to_string())?;
        Ok(Box::new(Known(summary)))
    }
}

/// A kernel with a summary.
struct Known(Arc<Summary>);

impl KernelCode for Known {
    fn evaluate(&self, launch: &Launch<'_>, effects: &mut Vec<Effect>) {
        let args = LaunchArgs {
            grid: launch.grid,
            block: launch.block,
            cluster: launch.cluster.map(|n| n.max(1)),
            shared: launch.shared,
            params: launch.params,
        };
        let mut accesses = Vec::new();
        self.0.evaluate(&args, &mut accesses);
        for access in accesses {
            let (base, start) = match access.base {
                kernels::Base::Word { offset, value } => (Base::Param(u32::from(offset), value), value),
                kernels::Base::Handle { offset, value, .. } => (Base::Param(u32::from(offset), value), value),
                kernels::Base::Global(symbol) => (Base::Global(self.0.symbol(symbol).into()), 0),
                kernels::Base::TensorMap { .. } => (Base::Object, 0),
                kernels::Base::Absolute { value } => (Base::Param(u32::MAX, value), value),
                kernels::Base::Unknown => (Base::Unknown, 0),
            };
            let kind = match access.kind {
                kernels::AccessKind::Read => AccessKind::Read,
                kernels::AccessKind::Write => AccessKind::Write,
                kernels::AccessKind::Atomic => AccessKind::Atomic,
            };
            let bytes = match access.extent {
                Extent::Bounded { lo, hi, dims, width, exact } => Bytes::Known {
                    lo: start.wrapping_add_signed(lo),
                    hi: start.wrapping_add_signed(hi),
                    width: u64::from(width),
                    dims: dims.iter().map(|d| Dim { stride: d.stride, count: d.count }).collect(),
                    exact,
                },
                Extent::Unknown { .. } => Bytes::Unknown,
            };
            effects.push(Effect { base, kind, bytes });
        }
    }

    fn indirect(&self) -> bool {
        self.0.indirect().any()
    }

    fn waits(&self) -> bool {
        self.0.waits_for_dependency().waits
    }
}
