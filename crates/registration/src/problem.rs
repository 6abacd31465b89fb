//! Problems of registration files, each with its location.

use std::fmt;

/// One problem of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    /// The location as a JSON Pointer; empty for the whole file.
    pub field: String,
    pub reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            write!(f, "{}: {}", self.file, self.reason)
        } else {
            write!(f, "{}: {}: {}", self.file, self.field, self.reason)
        }
    }
}

/// All problems, in the order of the files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct LoadErrors {
    /// At least one.
    pub problems: Vec<Problem>,
}

impl fmt::Display for LoadErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.problems.iter().enumerate() {
            if position > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

/// Collects the problems of one file.
pub(crate) struct Problems<'a> {
    pub(crate) file: &'a str,
    pub(crate) found: &'a mut Vec<Problem>,
}

impl Problems<'_> {
    /// Adds a problem. Reading goes on and finds the next one.
    pub(crate) fn add(&mut self, field: &Place<'_>, reason: impl Into<String>) {
        self.found.push(Problem {
            file: self.file.to_owned(),
            field: field.pointer(),
            reason: reason.into(),
        });
    }
}

/// A location in a file, linked to its parent so that its text is made only for a problem.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl Place<'_> {
    pub(crate) const ROOT: Place<'static> = Place {
        parent: None,
        step: Step::Root,
    };

    pub(crate) fn key<'b>(&'b self, key: &'b str) -> Place<'b> {
        Place {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    pub(crate) fn index(&self, index: usize) -> Place<'_> {
        Place {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    fn pointer(&self) -> String {
        let mut pointer = self.parent.map(Place::pointer).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Key(key) => antumbra_shadow::pointer::push_key(&mut pointer, key),
            Step::Index(index) => antumbra_shadow::pointer::push_index(&mut pointer, index),
        }
        pointer
    }
}
