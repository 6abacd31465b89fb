//! Loads registrations from a directory: the one packaged with the stream listener, or the one given to the command.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use antumbra_registration::{LoadErrors, Registrations};

/// The JSON Schema for editors. It is in the same directory and is not a registration.
const SCHEMA: &str = "registration.schema.json";

macro_rules! shipped {
    ($($name:literal),+) => {
        [$((
            concat!($name, ".json"),
            include_str!(concat!("../../../registrations/", $name, ".json")),
        )),+]
    };
}

/// Name and text of the registrations in the repository, which shadows over MQTT, the inbox and webhooks need.
pub const SHIPPED: [(&str, &str); 4] = shipped![
    "inbox-notifications",
    "sensor-clients",
    "shadow-delta",
    "shadow-documents"
];

#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    #[error("{}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Invalid(LoadErrors),
}

/// Directory below that of the registrations. A deployed listener does not load it.
const EXAMPLES: &str = "examples";

/// Loads all `.json` files of a directory except the schema, in the order of their names. `env` returns the value of an
/// environment variable that a registration refers to.
pub fn load(
    directory: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Registrations, FilesError> {
    Registrations::load(read(directory)?, env).map_err(FilesError::Invalid)
}

/// Reads names and texts of the same files and of those of the directory `examples` in it, if there is one, in one
/// order.
pub fn read_with_examples(directory: &Path) -> Result<Vec<(String, String)>, FilesError> {
    let mut files = read(directory)?;
    let examples = directory.join(EXAMPLES);
    if examples.is_dir() {
        let named = |(name, text)| (format!("{EXAMPLES}/{name}"), text);
        files.extend(read(&examples)?.into_iter().map(named));
        files.sort_by(|(a, _), (b, _)| a.rsplit('/').next().cmp(&b.rsplit('/').next()));
    }
    Ok(files)
}

/// The files whose change may change the registrations, with their time and size.
pub fn fingerprint(directory: &Path) -> Vec<(PathBuf, Option<SystemTime>, u64)> {
    let mut files = Vec::new();
    for directory in [directory.to_owned(), directory.join(EXAMPLES)] {
        let entries = std::fs::read_dir(&directory).into_iter().flatten();
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if let Ok(metadata) = std::fs::metadata(&path) {
                files.push((path, metadata.modified().ok(), metadata.len()));
            }
        }
    }
    files.sort();
    files
}

/// Reads the registrations of a directory: names and texts of the files.
pub fn read(directory: &Path) -> Result<Vec<(String, String)>, FilesError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| FilesError::Unreadable { path, source }
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable(directory))? {
        let path = entry.map_err(unreadable(directory))?.path();
        let is_json = path
            .extension()
            .is_some_and(|extension| extension == "json");
        if is_json && path.file_name().is_some_and(|name| name != SCHEMA) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
        files.push((file_name(&path), text));
    }
    Ok(files)
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

impl FilesError {
    /// Splits the error text into lines, one per problem.
    pub fn lines(&self) -> Vec<String> {
        self.to_string().lines().map(str::to_owned).collect()
    }
}
