//! Entry point for libFuzzer. Runs the target that the program is named after: `scripts/fuzz` links one build
//! under the name of each target.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use antumbra_fuzz::{Target, target};
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<&'static Target> = LazyLock::new(|| {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&program)
        .file_name()
        .and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    target(name).unwrap_or_else(|| panic!("no target is called {name}"))
});

fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));
