//! What libFuzzer drives: the target that this program is called by. `scripts/fuzz` makes one name for
//! each, so that all of them are one build.

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
