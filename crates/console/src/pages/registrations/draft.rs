//! A draft of a pattern, tried on a change and on the changes of a day.

use std::time::Duration;

use antumbra_registration::{Registrations, explain};
use antumbra_shadow::Timestamp;
use maud::{Markup, html};
use serde_json::value::RawValue;

use super::code;
use super::model::{File, Model};
use crate::components::{counted, cut_at, number};
use crate::json::{self, Json};
use crate::subject::Subject;
use crate::view::View;

/// Time over which a draft is tried.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Changes on which a draft is tried at most, and their bytes.
const DAY_CHANGES: usize = 1000;
const DAY_BYTES: usize = 16 * 1024 * 1024;

pub(super) struct Draft {
    /// The reason why the draft does not match, or its problems.
    pub(super) result: Result<Option<String>, Vec<String>>,
    pub(super) day: Option<DayCheck>,
}

/// A draft tried on the changes of a day.
pub(super) struct DayCheck {
    matches: usize,
    of: usize,
    has_more: bool,
}

/// The text of a registration whose target does not depend on the environment, which only the stream listener knows.
/// Matching does not depend on the target.
pub(super) fn without_environment(text: &str) -> String {
    let raw: Option<&RawValue> = serde_json::from_str(text).ok();
    let json = raw.map_or(Json::Scalar, Json::of);
    match json.member("to") {
        Some(to) if to.get().contains("${env:") => {
            let replaced = replaced(&json, "to", r#"{"sqs":{"queue":"from-the-environment"}}"#);
            replaced.unwrap_or_else(|| text.to_owned())
        }
        _ => text.to_owned(),
    }
}

/// An object with another value of a member.
fn replaced(of: &Json<'_>, name: &str, value: &str) -> Option<String> {
    let Json::Object(members) = of else {
        return None;
    };
    let kept = members.iter().filter(|(key, _)| key != name);
    let kept = kept.map(|(key, raw)| (key.as_str(), raw.get()));
    Some(json::object(kept.chain([(name, value)])))
}

/// Tries the selected registration with another pattern.
pub(super) async fn try_draft(view: &View, file: &File, draft: &str, model: &Model<'_>) -> Draft {
    let failed = |problems| Draft {
        result: Err(problems),
        day: None,
    };
    let Some(text) = with_pattern(&file.text, draft) else {
        return failed(vec!["The draft is not JSON.".to_owned()]);
    };
    let text = without_environment(&text);
    let registrations = match Registrations::load([(&file.file, text)], &|_| None) {
        Ok(registrations) => registrations,
        Err(errors) => return failed(errors.to_string().lines().map(str::to_owned).collect()),
    };
    let services = &view.console.services;
    let shadow_model = services.shadows.model();
    let unmet = model.subject.as_ref().and_then(|subject| {
        let mut explained = subject.with(shadow_model, |change| explain(&registrations, change));
        explained.pop().and_then(|one| one.unmet)
    });
    let shadow = model.asked.shadow().ok().flatten();
    let mut day = DayCheck {
        matches: 0,
        of: 0,
        has_more: false,
    };
    let day = match (&services.history, &shadow) {
        (Some(history), Some(shadow)) => {
            let from = view.now.nanoseconds() - DAY.as_nanos() as i128;
            let times = [Timestamp::from_nanoseconds(from), view.now];
            let mut bytes = 0;
            let replay = history.replay(shadow, times, DAY_CHANGES, view.now, |change| {
                let subject = Subject::recorded(shadow, change);
                bytes += subject.bytes();
                day.of += 1;
                day.matches += usize::from(subject.matches_first(&registrations, shadow_model));
                bytes < DAY_BYTES
            });
            let replayed = replay.await;
            replayed.ok().map(|has_more| DayCheck { has_more, ..day })
        }
        _ => None,
    };
    Draft {
        result: Ok(unmet),
        day,
    }
}

/// The text of a registration with another pattern.
fn with_pattern(text: &str, pattern: &str) -> Option<String> {
    let pattern: &RawValue = serde_json::from_str(pattern.trim()).ok()?;
    let registration: &RawValue = serde_json::from_str(text).ok()?;
    let registration = Json::of(registration);
    let on = registration.member("on").map(RawValue::get).unwrap_or("{}");
    let on: &RawValue = serde_json::from_str(on).ok()?;
    let on = replaced(&Json::of(on), "pattern", pattern.get())?;
    replaced(&registration, "on", &on)
}

pub(super) fn draft_result(draft: &Draft, has_change: bool) -> Markup {
    html! {
        @match &draft.result {
            Err(problems) => {
                b.bad { "Not a pattern. " }
                @for problem in problems.iter().take(5) { bdi { (cut_at(problem, 400)) } " " }
            }
            Ok(_) if !has_change => {}
            Ok(None) => b.ok { "Matches. " },
            Ok(Some(unmet)) => {
                b.bad { "Does not match: " }
                bdi { (cut_at(code::reason(unmet), 400)) } ". "
            }
        }
        @if let Some(day) = &draft.day {
            "In the last 24 h: " (number(day.matches as i64)) " of "
            @if day.has_more { "at least " }
            (counted(day.of, "change", "changes")) " of this shadow."
        }
    }
}
