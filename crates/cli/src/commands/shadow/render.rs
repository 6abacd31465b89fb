//! What the shadow commands print.

use antumbra_service::shadows::{
    DocumentSummary, Page, Shadow, ShadowId, State, StoredDocument, UpdateResult,
};
use antumbra_shadow::{Change, Changes, Document, Verdict, View};
use serde::Serialize;

use super::Part;
use crate::output::{CHANGED, FAINT, GOOD, STRONG, json, pretty, styled, table};

#[derive(Serialize)]
struct Identity<'a> {
    id: &'a str,
    name: &'a str,
}

impl<'a> From<&'a ShadowId> for Identity<'a> {
    fn from(shadow: &'a ShadowId) -> Identity<'a> {
        Identity {
            id: shadow.id(),
            name: shadow.name(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeldJson<'a> {
    version: i64,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tz: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_token: Option<&'a str>,
    document: &'a Document,
}

impl<'a> From<&'a StoredDocument> for HeldJson<'a> {
    fn from(held: &'a StoredDocument) -> HeldJson<'a> {
        HeldJson {
            version: held.version.0,
            timestamp: held.timestamp.to_string(),
            tz: held.zone.as_ref().map(|zone| zone.as_str()),
            client_token: held.client_token.as_ref().map(|token| token.as_str()),
            document: &held.document,
        }
    }
}

pub(super) fn shadow(id: &ShadowId, shadow: &Shadow, part: Part, as_json: bool) -> String {
    #[derive(Serialize)]
    struct ShadowJson<'a> {
        shadow: Identity<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reported: Option<HeldJson<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        desired: Option<HeldJson<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        delta: Option<&'a Document>,
    }
    let shows = |one: Part| part == Part::All || part == one;
    let reported = shadow.reported.as_ref().filter(|_| shows(Part::Reported));
    let desired = shadow.desired.as_ref().filter(|_| shows(Part::Desired));
    let delta = shadow.delta.as_ref().filter(|_| shows(Part::Delta));
    if as_json {
        return json(&ShadowJson {
            shadow: id.into(),
            reported: reported.map(HeldJson::from),
            desired: desired.map(HeldJson::from),
            delta,
        });
    }
    let mut lines = vec![styled(STRONG, &id.to_string())];
    for (name, held) in [("reported", reported), ("desired", desired)] {
        if let Some(held) = held {
            lines.push(format!(
                "{}  {}",
                styled(CHANGED, name),
                styled(FAINT, &facts(held))
            ));
            lines.push(pretty(held.document.view()));
        }
    }
    if let Some(delta) = delta {
        lines.push(styled(CHANGED, "delta"));
        lines.push(pretty(delta.view()));
    }
    lines.join("\n")
}

fn facts(held: &StoredDocument) -> String {
    let mut facts = format!("version {}, written {}", held.version, held.timestamp);
    if let Some(zone) = &held.zone {
        facts.push_str(&format!(", {}", zone.as_str()));
    }
    if let Some(token) = &held.client_token {
        facts.push_str(&format!(", token {}", token.as_str()));
    }
    facts
}

pub(super) fn updated(
    id: &ShadowId,
    state: State,
    updated: &UpdateResult,
    as_json: bool,
) -> String {
    #[derive(Serialize)]
    struct UpdatedJson<'a> {
        shadow: Identity<'a>,
        written: bool,
        version: i64,
        attempts: u32,
        verdicts: Option<&'a Changes>,
        acknowledged: Vec<&'a str>,
    }
    let changes = match state {
        State::Reported => updated.reported_changes.as_ref(),
        State::Desired => updated.desired_changes.as_ref(),
    };
    if as_json {
        return json(&UpdatedJson {
            shadow: id.into(),
            written: updated.written,
            version: updated.version(state).0,
            attempts: updated.attempts,
            verdicts: changes,
            acknowledged: updated
                .acknowledged
                .iter()
                .map(|done| done.pointer.as_str())
                .collect(),
        });
    }
    let outcome = if updated.written {
        styled(GOOD, "written")
    } else {
        styled(FAINT, "unchanged")
    };
    let version = updated.version(state);
    let mut lines = vec![format!(
        "{}  {state} version {version}, {outcome}",
        styled(STRONG, &id.to_string())
    )];
    let mut rows: Vec<Vec<String>> = changes
        .into_iter()
        .flat_map(Changes::iter)
        .map(row)
        .collect();
    rows.extend(updated.acknowledged.iter().map(|done| {
        vec![
            format!("  {}", styled(GOOD, "acknowledged")),
            done.pointer.clone(),
            done.value.clone(),
        ]
    }));
    if !rows.is_empty() {
        lines.push(table(&rows));
    }
    if updated.attempts > 1 {
        lines.push(styled(
            FAINT,
            &format!("  after {} attempts", updated.attempts),
        ));
    }
    lines.join("\n")
}

fn row(change: Change<'_>) -> Vec<String> {
    let style = if change.verdict.is_change() {
        CHANGED
    } else {
        FAINT
    };
    let text = |view: Option<View<'_>>| view.map(View::to_json).unwrap_or_default();
    let values = match change.verdict {
        Verdict::Added => text(change.new),
        Verdict::Updated => format!("{} -> {}", text(change.old), text(change.new)),
        Verdict::Stale | Verdict::Equal => {
            format!("{} (sent {})", text(change.old), text(change.new))
        }
        Verdict::Removed | Verdict::Same | Verdict::Unsent => text(change.old),
    };
    let note = change
        .note
        .map(|note| format!(" [{note}]"))
        .unwrap_or_default();
    vec![
        format!("  {}", styled(style, change.verdict.as_str())),
        change.pointer.to_owned(),
        format!("{values}{note}"),
    ]
}

pub(super) fn deleted(id: &ShadowId, as_json: bool) -> String {
    #[derive(Serialize)]
    struct DeletedJson<'a> {
        shadow: Identity<'a>,
        deleted: bool,
    }
    if as_json {
        return json(&DeletedJson {
            shadow: id.into(),
            deleted: true,
        });
    }
    format!(
        "{}  {}",
        styled(STRONG, &id.to_string()),
        styled(GOOD, "deleted")
    )
}

pub(super) fn page(page: &Page<DocumentSummary>, as_json: bool) -> String {
    #[derive(Serialize)]
    struct ListedJson<'a> {
        shadow: Identity<'a>,
        state: &'a str,
        version: i64,
        timestamp: String,
    }
    #[derive(Serialize)]
    struct PageJson<'a> {
        documents: Vec<ListedJson<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<&'a str>,
    }
    if as_json {
        let documents = page.rows.iter().map(|listed| ListedJson {
            shadow: (&listed.shadow).into(),
            state: listed.state.as_str(),
            version: listed.version.0,
            timestamp: listed.timestamp.to_string(),
        });
        let cursor = page.next.as_ref().map(|cursor| cursor.0.as_str());
        return json(&PageJson {
            documents: documents.collect(),
            cursor,
        });
    }
    let mut rows = vec![
        ["ID", "NAME", "STATE", "VERSION", "WRITTEN"]
            .map(|head| styled(FAINT, head))
            .to_vec(),
    ];
    rows.extend(page.rows.iter().map(|listed| {
        vec![
            listed.shadow.id().to_owned(),
            listed.shadow.name().to_owned(),
            listed.state.to_string(),
            listed.version.to_string(),
            listed.timestamp.to_string(),
        ]
    }));
    let mut text = table(&rows);
    if let Some(cursor) = &page.next {
        text.push_str(&format!("\nmore with --cursor {}", cursor.0));
    }
    text
}
