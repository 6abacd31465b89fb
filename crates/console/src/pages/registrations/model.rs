//! The reads of the page: the files, the change, the verdicts on it.

use std::collections::HashMap;

use antumbra_registration::{Registrations, Trace, explain, trace};
use antumbra_service::history::{ChangeQuery, RecordedChange};
use antumbra_service::notifications::suspension::{Suspension, Suspensions as _};
use antumbra_service::shadows::{ShadowId, ShadowStore as _, State};
use antumbra_shadow::{Document, Timestamp};
use maud::{Markup, html};

use super::Asked;
use super::draft::{Draft, try_draft, without_environment};
use super::summary::{Summary, summary};
use crate::components::{cut, error_note};
use crate::subject::{self, Subject};
use crate::view::View;

/// Recorded changes to choose from.
const CHANGES: usize = 25;

/// A file with a registration.
pub(super) struct File {
    pub(super) file: String,
    pub(super) text: String,
    pub(super) summary: Summary,
}

/// Everything that the page shows.
pub(super) struct Model<'a> {
    pub(super) asked: &'a Asked,
    pub(super) files: Vec<File>,
    /// The registrations, or the problems of their files.
    pub(super) loaded: Result<Registrations, Vec<String>>,
    /// Recorded changes of the shadow.
    pub(super) recorded: Vec<(State, RecordedChange)>,
    pub(super) subject: Option<Subject>,
    /// Reason why there is no change to explain.
    pub(super) problem: Option<Markup>,
    pub(super) result: Option<Explained>,
    pub(super) draft: Option<Draft>,
}

impl Model<'_> {
    /// The recorded change that is explained.
    pub(super) fn chosen(&self) -> Option<(State, Timestamp)> {
        let subject = self.subject.as_ref().filter(|_| !self.asked.is_typed())?;
        let (_, state) = subject.shadow.as_ref()?;
        Some((*state, subject.time))
    }
}

/// Reads the files of the registrations, in the order of their names.
pub(super) fn files(view: &View) -> Result<Vec<File>, String> {
    let files = view.console.services.registrations.read();
    let files = files.map_err(|error| error.to_string())?;
    let files = files.iter().map(|(file, text)| File {
        summary: summary(file, text),
        file: file.clone(),
        text: text.clone(),
    });
    let mut files: Vec<File> = files.collect();
    files.sort_by(|a, b| a.summary.name.cmp(&b.summary.name));
    Ok(files)
}

/// Reads the records of failing targets. Without them the page shows which registrations are on.
pub(super) async fn suspensions(view: &View) -> Vec<Suspension> {
    let found = view.console.services.suspensions.all().await;
    found.unwrap_or_else(|error| {
        tracing::warn!(%error, "records of failing targets cannot be read");
        Vec::new()
    })
}

/// Reads the last recorded changes of a shadow, one for each document that a change has.
pub(super) async fn recorded_changes(
    view: &View,
    shadow: &ShadowId,
) -> Result<Vec<(State, RecordedChange)>, Markup> {
    let Some(history) = &view.console.services.history else {
        return Err(html! { "This deployment keeps no history. Type a change." });
    };
    let query = ChangeQuery {
        shadow: shadow.clone(),
        from: None,
        to: None,
        path: None,
    };
    let found = history.changes(&query, CHANGES, None, view.now).await;
    let page = found.map_err(|error| {
        let what = "The recorded changes cannot be read.";
        error_note(what, &error, view)
    })?;
    let by_state = |change: RecordedChange| {
        let states: Vec<State> = change
            .documents
            .iter()
            .map(|document| document.state)
            .collect();
        states.into_iter().map(move |state| (state, change.clone()))
    };
    Ok(page.rows.into_iter().flat_map(by_state).collect())
}

/// The verdicts on the change.
pub(super) struct Explained {
    pub(super) verdicts: Vec<Verdict>,
    /// The conditions of the selected registration.
    pub(super) trace: Option<Trace>,
}

pub(super) struct Verdict {
    pub(super) name: String,
    pub(super) unmet: Option<String>,
    pub(super) target: String,
}

pub(super) async fn model<'a>(view: &View, asked: &'a Asked, files: Vec<File>) -> Model<'a> {
    let texts = files
        .iter()
        .map(|file| (&file.file, without_environment(&file.text)));
    let loaded = Registrations::load(texts, &|_| None);
    let loaded = loaded.map_err(|errors| errors.to_string().lines().map(str::to_owned).collect());
    let mut model = Model {
        asked,
        files,
        loaded,
        recorded: Vec::new(),
        subject: None,
        problem: None,
        result: None,
        draft: None,
    };
    match asked.shadow() {
        Err(fault) => model.problem = Some(html! { "The shadow is invalid: " (fault) }),
        Ok(shadow) => {
            if let Some(shadow) = &shadow {
                read_recorded(view, shadow, &mut model).await;
            }
            if asked.is_typed() {
                match typed(view, asked, shadow.as_ref()) {
                    Ok(subject) => model.subject = Some(subject),
                    Err(fault) => model.problem = Some(fault),
                }
            }
        }
    }
    let shadows = &view.console.services.shadows;
    if let (Ok(registrations), Some(subject)) = (&model.loaded, &model.subject) {
        let shadow_model = shadows.model();
        let target = |own: &Summary| format!("{} {}", own.target, own.sends_to);
        let summaries = model.files.iter().map(|file| &file.summary);
        let targets: HashMap<&str, String> = summaries
            .map(|own| (own.name.as_str(), target(own)))
            .collect();
        let result = subject.with(shadow_model, |change| {
            let verdicts = explain(registrations, change).into_iter();
            let verdicts = verdicts.map(|one| {
                let name = registrations[one.id].name.to_string();
                Verdict {
                    target: targets.get(name.as_str()).cloned().unwrap_or_default(),
                    name,
                    unmet: one.unmet,
                }
            });
            let selected = registrations.iter();
            let selected = selected
                .filter(|(_, one)| asked.name.as_deref() == Some(&*one.name))
                .map(|(id, _)| trace(registrations, id, change));
            Explained {
                verdicts: verdicts.collect(),
                trace: { selected }.next(),
            }
        });
        model.result = Some(result);
    }
    if let (Some(file), Some(draft)) = (selected(&model), &asked.draft) {
        model.draft = Some(try_draft(view, file, draft, &model).await);
    }
    model
}

/// Reads the recorded changes of a shadow, and the one that is asked for or the newest.
async fn read_recorded(view: &View, shadow: &ShadowId, model: &mut Model<'_>) {
    match recorded_changes(view, shadow).await {
        Ok(recorded) => model.recorded = recorded,
        Err(problem) => {
            model.problem = Some(problem);
            return;
        }
    }
    let Some(history) = &view.console.services.history else {
        return;
    };
    if model.asked.is_typed() {
        return;
    }
    let newest = model.recorded.first();
    let newest = newest.map(|(state, change)| (*state, change.time));
    let chosen = match &model.asked.change {
        Some(change) => parse_change(change),
        None => newest,
    };
    let Some((state, time)) = chosen else {
        model.problem = Some(match &model.asked.change {
            Some(_) => html! { "The change is not written as " code { "reported@TIME" } "." },
            None => html! { "No change of this shadow is recorded." },
        });
        return;
    };
    let mut found = None;
    let replay = history.replay(shadow, [time, time], CHANGES, view.now, |change| {
        if change.state == state {
            found = Some(change);
        }
        true
    });
    match (replay.await, found) {
        (Err(error), _) => {
            let what = "The recorded change cannot be read.";
            model.problem = Some(error_note(what, &error, view));
        }
        (Ok(_), None) => {
            model.problem = Some(html! {
                "The documents before and after this change are not recorded. Type the change, or pick another one."
            });
        }
        (Ok(_), Some(change)) => model.subject = Some(Subject::recorded(shadow, change)),
    }
}

/// `reported@2026-01-31T12:00:00Z`.
pub(super) fn parse_change(text: &str) -> Option<(State, Timestamp)> {
    let (state, time) = text.split_once('@')?;
    Some((state.parse().ok()?, Timestamp::parse(time)?))
}

fn typed(view: &View, asked: &Asked, shadow: Option<&ShadowId>) -> Result<Subject, Markup> {
    let document = |what: &str, text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => Document::parse(text).map(Some).map_err(
            |fault| html! { (what) " is not a document: " bdi { (cut(&fault.to_string())) } },
        ),
    };
    let (old, new) = (document("Old", &asked.old)?, document("New", &asked.new)?);
    let state = asked.state.as_deref().and_then(|state| state.parse().ok());
    let state = state.unwrap_or(State::Reported);
    let layout = view.console.services.shadows.store().layout();
    let (key, shadow) = match (&asked.key, shadow) {
        (Some(key), _) => (key.clone(), None),
        (None, Some(shadow)) => (
            subject::item_key(shadow, state, layout),
            Some((shadow.clone(), state)),
        ),
        (None, None) => {
            return Err(html! { "Give the id of a shadow, or the key of another item." });
        }
    };
    Ok(Subject {
        operation: subject::operation(old.as_ref(), new.as_ref()),
        key,
        shadow,
        version: None,
        client_token: None,
        time: view.now,
        old,
        new,
    })
}

/// The file of the selected registration.
pub(super) fn selected<'m>(model: &'m Model<'_>) -> Option<&'m File> {
    let name = model.asked.name.as_deref()?;
    let mut files = model.files.iter();
    files.find(|file| file.summary.name == name)
}
