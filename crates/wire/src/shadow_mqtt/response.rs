//! Payloads of responses: accepted or rejected.

use antumbra_shadow::{Document, Kind, Model, View};

use super::documents::{ShadowDocument, ShadowDocuments};
use super::fields::Fields;
use super::request::{Part, Rejection};
use crate::limits::REQUEST_BYTES;

/// Members of every accepted response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted<'a> {
    pub version: i64,
    /// Time of the response.
    pub seconds: i64,
    pub client_token: Option<&'a str>,
}

impl Accepted<'_> {
    fn end(self, fields: Fields) -> Fields {
        fields
            .number("version", self.version)
            .number("timestamp", self.seconds)
            .text("clientToken", self.client_token)
    }
}

/// The sent part of a document, and the document after the update.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    pub part: &'a Part,
    pub now: &'a ShadowDocument,
}

/// Returns the response to `get`. A shadow that exceeds the limit even without its metadata is rejected.
pub fn accepted_get(
    sections: &ShadowDocuments,
    model: &Model,
    accepted: Accepted<'_>,
) -> Result<String, Rejection> {
    let fields = sections.fields(Some(&sections.delta(model)));
    let fields = accepted.end(fields);
    fields
        .within(REQUEST_BYTES, &["metadata"])
        .map_err(|_| Rejection::too_large())
}

/// Returns the response to `update`: the current value of each sent member, `null` for deleted ones. The update
/// has been applied, so a response that is too large is shortened rather than rejected.
pub fn accepted_update(
    reported: Option<Sent<'_>>,
    desired: Option<Sent<'_>>,
    verdicts: Option<String>,
    model: &Model,
    accepted: Accepted<'_>,
) -> String {
    let (mut state, mut metadata) = (Fields::default(), Fields::default());
    for (name, sent) in [("desired", desired), ("reported", reported)] {
        let Some(Sent { part, now }) = sent else {
            continue;
        };
        match part {
            Part::Clear => state = state.json(name, "null"),
            Part::Patch(sent) => {
                let mut projected = String::new();
                project(
                    sent.view(),
                    Some(now.document.view()),
                    model,
                    &mut projected,
                );
                // The projection of two documents is a document; the fallback is never used.
                let projected = Document::parse(&projected).unwrap_or_else(|_| sent.clone());
                let times = &now.times;
                let times = times.metadata_of(projected.view(), &now.document, accepted.seconds);
                state = state.json(name, projected.as_str());
                metadata = metadata.json(name, times);
            }
        }
    }
    let mut fields = Fields::default()
        .json("state", state.to_json())
        .json("metadata", metadata.to_json());
    if let Some(verdicts) = verdicts {
        fields = fields.json("verdicts", verdicts);
    }
    let least = accepted.end(Fields::default()).to_json();
    let fields = accepted.end(fields);
    fields
        .within(REQUEST_BYTES, &["verdicts", "metadata", "state"])
        .unwrap_or(least)
}

pub fn accepted_delete(accepted: Accepted<'_>) -> String {
    accepted.end(Fields::default()).to_json()
}

/// The response to a rejected request.
pub fn rejected(rejection: &Rejection, seconds: i64, client_token: Option<&str>) -> String {
    Fields::default()
        .number("code", i64::from(rejection.code))
        .text("message", Some(&rejection.message))
        .number("timestamp", seconds)
        .text("clientToken", client_token)
        .to_json()
}

/// Writes the current value of each sent member; a missing one is as sent, which is `null`.
fn project(sent: View<'_>, now: Option<View<'_>>, model: &Model, out: &mut String) {
    let open = |view: View<'_>, root: bool| {
        view.kind() == Kind::Object && (root || model.time(view).is_none())
    };
    let root = sent.index() == 0;
    match now {
        Some(now) if !(open(sent, root) && open(now, root)) => now.write_json(out),
        None if sent.kind() != Kind::Object => sent.write_json(out),
        now => {
            // Both are in rising order of their names as written.
            let mut nows = now.into_iter().flat_map(View::children).peekable();
            out.push('{');
            for (position, member) in sent.children().enumerate() {
                out.push_str(if position > 0 { ",\"" } else { "\"" });
                out.push_str(member.raw_key());
                out.push_str("\":");
                let name = member.raw_key();
                while nows.next_if(|now| now.raw_key() < name).is_some() {}
                let now = nows.next_if(|now| now.raw_key() == name);
                project(member, now, model, out);
            }
            out.push('}');
        }
    }
}
