//! Output of `antumbra shadow`.

use antumbra_service::api;
use antumbra_service::shadows::{
    DocumentSummary, Page, Shadow, ShadowId, State, StoredDocument, UpdateResult,
};
use antumbra_shadow::{Change, Verdict, View};
use serde_json::json;

use super::Part;
use crate::output::{self, CHANGED, FAINT, GOOD, STRONG, pretty, styled, table};

pub(super) fn shadow(id: &ShadowId, mut shadow: Shadow, part: Part, json: bool) -> String {
    let shows = |one: Part| part == Part::All || part == one;
    shadow.reported = shadow.reported.filter(|_| shows(Part::Reported));
    shadow.desired = shadow.desired.filter(|_| shows(Part::Desired));
    shadow.delta = shadow.delta.filter(|_| shows(Part::Delta));
    if json {
        return output::json(&api::Shadow::new(id, shadow));
    }
    let mut lines = vec![styled(STRONG, &id.to_string())];
    for (name, stored) in [("reported", &shadow.reported), ("desired", &shadow.desired)] {
        if let Some(stored) = stored {
            let (name, metadata) = (styled(CHANGED, name), styled(FAINT, &metadata(stored)));
            lines.push(format!("{name}  {metadata}"));
            lines.push(pretty(stored.document.view()));
        }
    }
    if let Some(delta) = &shadow.delta {
        lines.push(styled(CHANGED, "delta"));
        lines.push(pretty(delta.view()));
    }
    lines.join("\n")
}

fn metadata(stored: &StoredDocument) -> String {
    let mut text = format!("version {}, written {}", stored.version, stored.timestamp);
    if let Some(zone) = &stored.zone {
        text.push_str(&format!(", {}", zone.as_str()));
    }
    if let Some(token) = &stored.client_token {
        text.push_str(&format!(", token {}", token.as_str()));
    }
    text
}

pub(super) fn updated(id: &ShadowId, state: State, result: UpdateResult, json: bool) -> String {
    match json {
        true => output::json(&api::UpdateResult::new(id, state, result)),
        false => update_text(id, &[state], &result),
    }
}

pub(super) fn both_updated(id: &ShadowId, result: &UpdateResult, json: bool) -> String {
    match json {
        true => output::json(&api::ShadowUpdate::new(id, result, 1)),
        false => update_text(id, &[State::Reported, State::Desired], result),
    }
}

fn update_text(id: &ShadowId, states: &[State], result: &UpdateResult) -> String {
    let outcome = match result.written {
        true => styled(GOOD, "written"),
        false => styled(FAINT, "unchanged"),
    };
    let title = styled(STRONG, &id.to_string());
    let mut lines = Vec::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for state in states {
        let changes = match state {
            State::Reported => result.reported_changes.as_ref(),
            State::Desired => result.desired_changes.as_ref(),
        };
        let version = result.version(*state);
        if !rows.is_empty() {
            lines.push(table(&std::mem::take(&mut rows)));
        }
        lines.push(format!("{title}  {state} version {version}, {outcome}"));
        if let Some(changes) = changes {
            changes.for_each(|change| rows.push(change_row(change)));
        }
    }
    result.acknowledged.for_each(|pointer, value| {
        let word = format!("  {}", styled(GOOD, "acknowledged"));
        rows.push(vec![word, pointer.to_owned(), value.to_json()]);
    });
    if !rows.is_empty() {
        lines.push(table(&rows));
    }
    if result.attempts > 1 {
        lines.push(styled(
            FAINT,
            &format!("  after {} attempts", result.attempts),
        ));
    }
    lines.join("\n")
}

fn change_row(change: Change<'_>) -> Vec<String> {
    let style = match change.verdict.is_change() {
        true => CHANGED,
        false => FAINT,
    };
    let text = |view: Option<View<'_>>| view.map(View::to_json).unwrap_or_default();
    let values = match change.verdict {
        Verdict::Added => text(change.new),
        Verdict::Updated => format!("{} -> {}", text(change.old), text(change.new)),
        Verdict::Stale | Verdict::Equal | Verdict::Future => {
            format!("{} (sent {})", text(change.old), text(change.new))
        }
        Verdict::Removed | Verdict::Same | Verdict::Unsent => text(change.old),
    };
    let note = change.note.map(|note| format!(" [{note}]"));
    vec![
        format!("  {}", styled(style, change.verdict.as_str())),
        change.pointer.to_owned(),
        format!("{values}{}", note.unwrap_or_default()),
    ]
}

pub(super) fn deleted(id: &ShadowId, json: bool) -> String {
    match json {
        true => output::json(&json!({ "id": id.id(), "name": id.name(), "deleted": true })),
        false => format!(
            "{}  {}",
            styled(STRONG, &id.to_string()),
            styled(GOOD, "deleted")
        ),
    }
}

pub(super) fn names(shadows: Page<ShadowId>, json: bool) -> String {
    if json {
        return output::json(&api::ShadowPage::from(shadows));
    }
    let mut rows = vec![["ID", "NAME"].map(|title| styled(FAINT, title)).to_vec()];
    let names = shadows.rows.iter();
    rows.extend(names.map(|shadow| vec![shadow.id().to_owned(), shadow.name().to_owned()]));
    output::page(&rows, shadows.next.as_ref(), "no shadows")
}

pub(super) fn documents(documents: Page<DocumentSummary>, json: bool) -> String {
    if json {
        return output::json(&api::DocumentPage::from(documents));
    }
    let titles = ["ID", "NAME", "STATE", "VERSION", "WRITTEN"];
    let mut rows = vec![titles.map(|title| styled(FAINT, title)).to_vec()];
    rows.extend(documents.rows.iter().map(|document| {
        vec![
            document.shadow.id().to_owned(),
            document.shadow.name().to_owned(),
            document.state.to_string(),
            document.version.to_string(),
            document.timestamp.to_string(),
        ]
    }));
    output::page(&rows, documents.next.as_ref(), "no shadows")
}
