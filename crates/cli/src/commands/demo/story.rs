//! What the tour tells: chapters of steps, each with what was done and what was seen.

use std::fmt::{Debug, Display};
use std::time::Instant;

use serde::Serialize;

use crate::output::{BAD, FAINT, GOOD, STRONG, styled};

/// Something was not as it should be: the tour ends here.
#[derive(Debug)]
pub(super) struct DemoFailure(pub(super) String);

pub(super) type DemoResult<T = ()> = Result<T, DemoFailure>;

impl DemoFailure {
    /// A step that could not even be tried.
    pub(super) fn of(what: &str, fault: impl Display) -> DemoFailure {
        DemoFailure(format!("{what}: {fault}"))
    }
}

/// One thing that was seen.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    pub(super) chapter: String,
    pub(super) seen: String,
    /// Since the tour began.
    pub(super) milliseconds: u64,
}

/// The tour so far.
#[derive(Debug)]
pub(super) struct DemoReport {
    aloud: bool,
    begun: Instant,
    chapter: String,
    chapters: usize,
    pub(super) steps: Vec<Step>,
}

impl DemoReport {
    /// Told as it happens, or kept for later.
    pub(super) fn begin(aloud: bool) -> DemoReport {
        DemoReport {
            aloud,
            begun: Instant::now(),
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
        self.say(&format!("\n{title}\n   {}", styled(FAINT, about)));
    }

    /// What somebody does.
    pub(super) fn does(&mut self, what: &str) {
        self.say(&format!("   {what}"));
    }

    /// What came of it, and is as it should be.
    pub(super) fn sees(&mut self, what: impl Into<String>) {
        let what = what.into();
        self.say(&format!("   {} {what}", styled(GOOD, "✓")));
        self.steps.push(Step {
            chapter: self.chapter.clone(),
            seen: what,
            milliseconds: self.begun.elapsed().as_millis() as u64,
        });
    }

    /// What came of it, if it is what should have; otherwise the end.
    pub(super) fn expects<T: PartialEq + Debug>(
        &mut self,
        what: impl Into<String>,
        found: T,
        expected: T,
    ) -> DemoResult {
        let what = what.into();
        if found == expected {
            self.sees(what);
            return Ok(());
        }
        Err(DemoFailure(format!(
            "{what}: expected {expected:?}, found {found:?}"
        )))
    }

    pub(super) fn ends(&self, surprise: Option<&DemoFailure>) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let (steps, chapters) = (self.steps.len(), self.chapters);
        match surprise {
            None => self.say(&format!(
                "\n{} {steps} things in {chapters} chapters, all as they should be, in {seconds:.1} s.",
                styled(GOOD, "Done."),
            )),
            Some(DemoFailure(reason)) => self.say(&format!("   {} {reason}", styled(BAD, "✗"))),
        }
    }

    /// The chapter it is at.
    #[cfg(test)]
    pub(super) fn told(&self) -> &str {
        &self.chapter
    }

    pub(super) fn say(&self, text: &str) {
        if self.aloud {
            // Whoever stopped reading does not end the tour.
            let _ = crate::output::print(text);
        }
    }
}
