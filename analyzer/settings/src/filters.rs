//! The filters as the user gave them.
//!
//! Owns the lists of patterns. They are applied in `report::gate::filter`.

/// The filters as given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filters {
    /// Keep findings of these kernels.
    pub only_kernel: Vec<String>,
    /// Leave out findings of these kernels.
    pub ignore_kernel: Vec<String>,
    /// Keep findings on these streams.
    pub only_stream: Vec<String>,
    /// Leave out findings on these streams.
    pub ignore_stream: Vec<String>,
    /// Keep findings with these files in a stack.
    pub only_module: Vec<String>,
    /// Leave out findings with a side that was called from these files.
    pub ignore_module: Vec<String>,
}
