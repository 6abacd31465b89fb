//! The `antumbra` command.
fn main() {}
