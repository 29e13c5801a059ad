//! The `streamsan` command.
fn main() {}
