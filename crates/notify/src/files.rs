//! Loads registrations from the directory that is packaged with the function.

use std::fmt;
use std::path::{Path, PathBuf};

use antumbra_registration::{LoadErrors, Registrations};

/// The schema in the same directory, which is not a registration.
const SCHEMA: &str = "registration.schema.json";

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

/// Loads all `.json` files of a directory except the schema, in the order of their names.
pub fn load(
    directory: &Path,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Registrations, FilesError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| FilesError::Unreadable { path, source }
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable(directory))? {
        let path = entry.map_err(unreadable(directory))?.path();
        let json = path
            .extension()
            .is_some_and(|extension| extension == "json");
        if json && path.file_name().is_some_and(|name| name != SCHEMA) {
            paths.push(path);
        }
    }
    paths.sort();
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
        files.push((name_of(&path), text));
    }
    Registrations::load(files, env).map_err(FilesError::Invalid)
}

fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

impl FilesError {
    pub fn lines(&self) -> Vec<String> {
        let text: &dyn fmt::Display = self;
        text.to_string().lines().map(str::to_owned).collect()
    }
}
