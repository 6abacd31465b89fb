//! Checks that the scenario reached every line that calls AWS for functions. A call that it misses could lack its
//! permission unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates that call AWS for functions.
pub(super) const CRATES: [&str; 2] = ["dynamodb", "publish"];

/// Calls that functions do not make, by file and function, and their callers.
const ELSEWHERE: [(&str, &str, &str); 8] = [
    (
        "src/tables.rs",
        "describe",
        "the local stack and tests, which make tables",
    ),
    ("src/tables.rs", "create", "the same"),
    ("src/tables.rs", "expire", "the same"),
    (
        "src/tables.rs",
        "stream_of",
        "the command, which watches shadows",
    ),
    (
        "src/table/query.rs",
        "scan",
        "the command and the SDK, which list shadows",
    ),
    (
        "src/streams.rs",
        "shards",
        "the event source of the local stack and the command, which read streams",
    ),
    ("src/streams.rs", "iterator", "the same"),
    ("src/streams.rs", "page", "the same"),
];

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// A line that sends a request.
struct Send {
    file: String,
    line: usize,
    function: String,
}

/// The lines of a crate that send requests.
fn sends(krate: &str) -> Vec<Send> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate);
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    files.sort();
    let mut sends = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(&root).unwrap().to_str().unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let mut function = "";
        for (index, line) in code.lines().enumerate() {
            if let Some((_, named)) = line.split_once("fn ") {
                function = named.split(['(', '<']).next().unwrap_or_default();
            }
            if line.contains(".scan()") {
                function = "scan";
            }
            if line.contains(".send()") {
                sends.push(Send {
                    file: file.to_owned(),
                    line: index + 1,
                    function: function.to_owned(),
                });
            }
        }
    }
    sends
}

pub(super) fn every_line_was_reached(reached: &BTreeMap<&'static str, BTreeSet<String>>) {
    let (mut missed, mut needless) = (Vec::new(), Vec::new());
    let mut count = 0;
    for krate in CRATES {
        for Send {
            file,
            line,
            function,
        } in sends(krate)
        {
            // The `.await` may be on a following line.
            let places = [0, 1, 2, 3].map(|next| format!("{file}:{}", line + next));
            let was_reached = places.iter().any(|place| reached[krate].contains(place));
            let elsewhere = ELSEWHERE
                .iter()
                .any(|(of, name, _)| *of == file && *name == function);
            let description = format!("crates/{krate}/{file}:{line} in {function}");
            match (was_reached, elsewhere) {
                (false, false) => missed.push(description),
                (true, true) => needless.push(description),
                _ => count += usize::from(was_reached),
            }
        }
    }
    assert!(
        missed.is_empty(),
        "the scenario does not reach\n{}",
        missed.join("\n")
    );
    assert!(
        needless.is_empty(),
        "functions do make\n{}",
        needless.join("\n")
    );
    // `Table` makes the calls of all stores; fewer lines mean that the search above finds nothing.
    assert!(count > 10, "only {count} lines call AWS");
}
