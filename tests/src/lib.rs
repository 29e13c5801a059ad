//! What the end-to-end tests share: the built product, a driver without a GPU, C programs compiled
//! on the fly, traces read back, the field suite, Python's frameworks.
//!
//! Owns no test. The programs lie in `tests/programs` and `tests/corpus`; what each is to show is
//! said by the test that runs it.

pub mod build;
pub mod compare;
pub mod fake;
pub mod field;
pub mod form;
pub mod frameworks;
pub mod made;
pub mod oracle;
pub mod packages;
pub mod product;
pub mod recorded;
pub mod replay;
pub mod run;
pub mod runs;
pub mod scripted;
pub mod verdict;
