//! The program of the `antumbra` command. All else is in the library, which is compiled while the crates that it calls are
//! still being optimised; a program waits for them.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    antumbra_cli::main()
}
