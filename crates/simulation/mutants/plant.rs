//! Inserts the mutants: faults in the product, to check that some seed catches each.
//!
//! A mutant is some lines of the product and their replacement. All are inserted into one copy of the sources,
//! each behind a switch that is read at run time, so that one build serves all. A single-file program for
//! `scripts/check-simulation` and the tests; nothing of it is in the product.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Name of the switch in a mutant's lines.
const SWITCH: &str = "MUTANT";
/// The crate that all others depend on; it holds the switch.
const INNERMOST: &str = "shadow/src/lib.rs";
const SWITCHES: &str = r#"
/// Returns whether this run has that mutant.
pub fn mutant(number: u32) -> bool {
    static NUMBER: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    let read = || std::env::var("ANTUMBRA_MUTANT").ok()?.parse().ok();
    *NUMBER.get_or_init(read) == Some(number)
}
"#;
const FILES: [&str; 8] = [
    include_str!("shadows.txt"),
    include_str!("notifications.txt"),
    include_str!("inbox.txt"),
    include_str!("sensors.txt"),
    include_str!("deliveries.txt"),
    include_str!("order.txt"),
    include_str!("spill.txt"),
    include_str!("history.txt"),
];

/// A fault to insert.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Mutant {
    pub(crate) name: String,
    /// Path below `crates/`.
    pub(crate) file: String,
    /// Lines that occur exactly once in the file, without their indentation.
    pub(crate) lines: Vec<String>,
    /// Their replacement.
    pub(crate) instead: Vec<String>,
}

/// All mutants; the first is number 1.
pub(crate) fn mutants() -> Vec<Mutant> {
    let mut all: Vec<Mutant> = Vec::new();
    for line in FILES.iter().flat_map(|file| file.lines()) {
        if let Some(name) = line.strip_prefix("## ") {
            all.push(Mutant {
                name: name.to_owned(),
                ..Mutant::default()
            });
        }
        let Some(mutant) = all.last_mut() else {
            continue;
        };
        match line.split_at_checked(2) {
            Some(("- ", found)) => mutant.lines.push(found.trim().to_owned()),
            Some(("+ ", put)) => mutant.instead.push(put.to_owned()),
            Some(("##", _)) | None => {}
            Some(_) => mutant.file = line.to_owned(),
        }
    }
    all
}

/// Inserts all mutants into a copy of the crates, and lists them by number.
fn main() -> ExitCode {
    let Some(crates) = std::env::args().nth(1) else {
        return failure("usage: plant <crates directory of the copy>");
    };
    let written = planted(Path::new(&crates)).and_then(|files| {
        let written = files
            .iter()
            .try_for_each(|(path, text)| std::fs::write(path, text));
        written.map_err(|error| format!("{crates}: {error}"))
    });
    if let Err(reason) = written {
        return failure(&reason);
    }
    let mut list = std::io::stdout().lock();
    let mut all = (1..).zip(mutants());
    let listed = all.try_for_each(|(number, mutant)| writeln!(list, "{number}\t{}", mutant.name));
    match listed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(&error.to_string()),
    }
}

fn failure(reason: &str) -> ExitCode {
    // A failed write to standard error cannot be reported anywhere.
    let _ = writeln!(std::io::stderr(), "{reason}");
    ExitCode::FAILURE
}

/// Returns the changed files by path. A mutant whose lines do not occur exactly once is an error.
pub(crate) fn planted(crates: &Path) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    for (number, mutant) in (1..).zip(mutants()) {
        let path = crates.join(&mutant.file);
        let text = match files.remove(&path) {
            Some(text) => text,
            None => read(&path)?,
        };
        let text = mutant.put_into(&text, number)?;
        files.insert(path, text);
    }
    let innermost = crates.join(INNERMOST);
    let text = match files.remove(&innermost) {
        Some(text) => text,
        None => read(&innermost)?,
    };
    files.insert(innermost, text + SWITCHES);
    Ok(files)
}

impl Mutant {
    fn put_into(&self, text: &str, number: u32) -> Result<String, String> {
        let lines: Vec<&str> = text.lines().collect();
        let is_here = |at: &usize| {
            let here = lines[*at..].iter().map(|line| line.trim());
            here.take(self.lines.len()).eq(&self.lines)
        };
        let places: Vec<usize> = (0..lines.len()).filter(is_here).collect();
        let [place] = places[..] else {
            let (name, file, found) = (&self.name, &self.file, places.len());
            let wanted = self.lines.join("\n");
            return Err(format!(
                "\"{name}\": its lines occur {found} times in {file}, not once:\n{wanted}"
            ));
        };
        let krate = match self.file.starts_with("shadow/") {
            true => "crate",
            false => "antumbra_shadow",
        };
        let switch = format!("{krate}::mutant({number})");
        let instead = self
            .instead
            .iter()
            .map(|line| line.replace(SWITCH, &switch));
        let (before, after) = (&lines[..place], &lines[place + self.lines.len()..]);
        let owned = |lines: &[&str]| {
            lines
                .iter()
                .map(|line| (*line).to_owned())
                .collect::<Vec<_>>()
        };
        let all: Vec<String> = owned(before)
            .into_iter()
            .chain(instead)
            .chain(owned(after))
            .collect();
        Ok(all.join("\n") + "\n")
    }
}
