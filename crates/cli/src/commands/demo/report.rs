//! The report of the demo: chapters of actions and checks.

use std::fmt::Display;
use std::time::Instant;

use serde::Serialize;
use serde_json::json;

use crate::error::CliError;
use crate::output::{BAD, FAINT, GOOD, STRONG, styled};

#[derive(Debug)]
pub(super) struct DemoFailure(pub(super) String);

pub(super) type DemoResult<T = ()> = Result<T, DemoFailure>;

impl DemoFailure {
    pub(super) fn new(what: &str, fault: impl Display) -> DemoFailure {
        DemoFailure(format!("{what}: {fault}"))
    }
}

impl From<CliError> for DemoFailure {
    fn from(error: CliError) -> DemoFailure {
        DemoFailure(error.reason)
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    pub(super) chapter: String,
    pub(super) check: String,
    /// Time since the start.
    pub(super) milliseconds: u64,
}

#[derive(Debug)]
pub(super) struct DemoReport {
    prints: bool,
    start: Instant,
    chapter: String,
    chapters: usize,
    pub(super) steps: Vec<Step>,
}

impl DemoReport {
    /// Starts a report that is printed as it grows, or only collected.
    pub(super) fn new(prints: bool) -> DemoReport {
        DemoReport {
            prints,
            start: Instant::now(),
            chapter: String::new(),
            chapters: 0,
            steps: Vec::new(),
        }
    }

    pub(super) fn chapter(&mut self, title: &str, about: &str) {
        self.chapters += 1;
        self.chapter = title.to_owned();
        let number = self.chapters;
        let title = styled(STRONG, &format!("{number}. {title}"));
        self.print(&format!("\n{title}\n   {}", styled(FAINT, about)));
    }

    pub(super) fn action(&mut self, what: &str) {
        self.print(&format!("   {what}"));
    }

    pub(super) fn checked(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.print(&format!("   {} {what}", styled(GOOD, "✓")));
        self.steps.push(Step {
            chapter: self.chapter.clone(),
            check: what,
            milliseconds: self.start.elapsed().as_millis() as u64,
        });
    }

    /// Compares a result with the expected one; a difference ends the demo.
    pub(super) fn check<T: PartialEq + Serialize>(
        &mut self,
        what: impl Into<String>,
        found: T,
        expected: T,
    ) -> DemoResult {
        let what = what.into();
        if found == expected {
            self.checked(what);
            return Ok(());
        }
        let [expected, found] = [expected, found].map(|value| json!(value).to_string());
        Err(DemoFailure(format!(
            "{what}: expected {expected}, found {found}"
        )))
    }

    pub(super) fn finish(&self, failure: Option<&DemoFailure>) {
        let seconds = self.start.elapsed().as_secs_f64();
        let (steps, chapters) = (self.steps.len(), self.chapters);
        match failure {
            None => self.print(&format!(
                "\n{} {steps} checks in {chapters} chapters passed in {seconds:.1} s.",
                styled(GOOD, "Done."),
            )),
            Some(DemoFailure(reason)) => self.print(&format!("   {} {reason}", styled(BAD, "✗"))),
        }
    }

    #[cfg(test)]
    pub(super) fn current_chapter(&self) -> &str {
        &self.chapter
    }

    pub(super) fn print(&self, text: &str) {
        if self.prints {
            // A closed pipe does not end the demo.
            let _ = crate::output::print(text);
        }
    }
}
