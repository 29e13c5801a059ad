//! The host's own accesses to memory that copies still use.

pub mod checksum;
pub mod graph_copies;
pub mod page_protection;
pub mod sigsegv;
pub mod system_calls;
pub mod watches;
