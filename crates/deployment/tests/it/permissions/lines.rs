//! Checks that the scenario reached every place that calls AWS for functions: each call of the SDK, and each call of a
//! method of `Table` by a store. A call that it misses could lack its permission unnoticed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The crates that call AWS for functions.
pub(super) const CRATES: [&str; 2] = ["dynamodb", "publish"];

/// Calls that functions do not make, by file and function (empty for all of the file), and their callers.
const ELSEWHERE: [(&str, &str, &str); 7] = [
    (
        "src/shadows/list.rs",
        "list_page",
        "the command, the console and the SDK, which list the shadows of a device",
    ),
    (
        "src/history/feed/read/before.rs",
        "",
        "the console, which shows the newest changes",
    ),
    (
        "src/history/scan.rs",
        "",
        "the console, which charts all changes of a device",
    ),
    ("src/scan.rs", "", "the command, which imports tables"),
    (
        "src/tables.rs",
        "",
        "the local stack and tests, which make tables, and the command",
    ),
    (
        "src/streams.rs",
        "shards",
        "the event source of the local stack and the command, which read streams",
    ),
    (
        "src/failed_queue.rs",
        "queue_url",
        "the command, which finds queues by name",
    ),
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

/// A place that calls AWS.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    krate: &'static str,
    file: String,
    /// Line of the `.await`, which is the line of a backtrace.
    line: usize,
    function: String,
}

/// The asynchronous methods of `Table`: all that stores may call.
fn table_methods(files: &[(String, String)]) -> BTreeSet<String> {
    let of_table = files
        .iter()
        .filter(|(file, _)| file.starts_with("src/table/"));
    let methods = of_table.flat_map(|(_, code)| code.split("pub(crate) async fn ").skip(1));
    let methods: BTreeSet<String> = methods.map(|rest| name(rest).to_owned()).collect();
    assert!(methods.len() > 8, "{methods:?}");
    methods
}

/// The identifier at the start of a text.
fn name(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The places of a crate that call AWS.
fn sites(krate: &'static str) -> Vec<Site> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate);
    let mut paths = Vec::new();
    sources(&root.join("src"), &mut paths);
    paths.sort();
    let files: Vec<(String, String)> = paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let file = path.strip_prefix(&root).unwrap().to_str().unwrap();
            (file.to_owned(), code.to_owned())
        })
        .collect();
    let methods = match krate {
        "dynamodb" => table_methods(&files),
        _ => BTreeSet::new(),
    };
    let mut sites = Vec::new();
    for (file, code) in &files {
        for (at, _) in code.match_indices('.') {
            let called = name(&code[at + 1..]);
            let arguments = &code[at + 1 + called.len()..];
            let by_table = code[..at].trim_end().ends_with("table");
            let calls = called == "send" && arguments.starts_with("()")
                || by_table && methods.contains(called) && arguments.starts_with('(');
            if !calls {
                continue;
            }
            let (_, before) = code[..at].rsplit_once("fn ").unwrap();
            let waits = at + code[at..].find(".await").unwrap();
            sites.push(Site {
                krate,
                file: file.clone(),
                line: 1 + code[..waits].matches('\n').count(),
                function: match before.contains(".scan()") {
                    true => "scan".to_owned(),
                    false => name(before).to_owned(),
                },
            });
        }
        // Calls are recognised by the name of the field.
        let fields = code.match_indices(": Table,").map(|(at, _)| &code[..at]);
        assert!(
            fields.clone().all(|field| field.ends_with("table")),
            "{file}"
        );
    }
    sites
}

/// Faults of a recording of reached lines: places that were missed, and places in [`ELSEWHERE`] that were reached.
fn faults(sites: &[Site], reached: &BTreeMap<&'static str, BTreeSet<String>>) -> Vec<String> {
    let mut faults = Vec::new();
    for site in sites {
        let Site {
            krate,
            file,
            line,
            function,
        } = site;
        let was_reached = reached[krate].contains(&format!("{file}:{line}"));
        let elsewhere = ELSEWHERE
            .iter()
            .any(|(of, name, _)| of == file && (name.is_empty() || name == function));
        let place = format!("crates/{krate}/{file}:{line} in {function}");
        match (was_reached, elsewhere) {
            (false, false) => faults.push(format!("the scenario does not reach {place}")),
            (true, true) => faults.push(format!("a function does reach {place}")),
            _ => {}
        }
    }
    faults
}

pub(super) fn every_line_was_reached(reached: &BTreeMap<&'static str, BTreeSet<String>>) {
    let sites: Vec<Site> = CRATES.into_iter().flat_map(sites).collect();
    let found = faults(&sites, reached);
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    // The search finds calls at all, and misses none that is no longer reached.
    assert!(sites.len() > 80, "only {} places call AWS", sites.len());
    for site in &sites {
        let mut less = reached.clone();
        let lines = less.get_mut(site.krate).unwrap();
        if lines.remove(&format!("{}:{}", site.file, site.line)) {
            assert!(!faults(&sites, &less).is_empty(), "{site:?}");
        }
    }
}
