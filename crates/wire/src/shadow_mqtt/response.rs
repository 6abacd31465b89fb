//! What is answered to a request: accepted or rejected.

use antumbra_shadow::{Document, Kind, Model, View};

use super::documents::{ShadowDocument, ShadowDocuments};
use super::fields::Fields;
use super::request::{Part, Rejection};
use crate::limits::REQUEST_BYTES;

/// What every answer says beside what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted<'a> {
    /// The version of the shadow.
    pub version: i64,
    /// When it was answered.
    pub seconds: i64,
    /// What the request calls itself.
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

/// What was sent for one document, and what that document is now.
#[derive(Debug, Clone, Copy)]
pub struct Sent<'a> {
    /// What was sent.
    pub part: &'a Part,
    /// What is there now.
    pub now: &'a ShadowDocument,
}

/// A shadow as it is. One that does not fit a message, even without its metadata, is told of as that.
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

/// What became of an update: of each member that was sent, what the shadow says now, and `null` for what
/// is gone. It took place, so that what does not fit is left out of the answer.
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
                let mut said = String::new();
                project(sent.view(), Some(now.document.view()), model, &mut said);
                // What is made of two documents is one; were it not, what was sent is close enough.
                let said = Document::parse(&said).unwrap_or_else(|_| sent.clone());
                let times = &now.times;
                let times = times.metadata_of(said.view(), &now.document, accepted.seconds);
                state = state.json(name, said.as_str());
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

/// A shadow is gone, which had that version.
pub fn accepted_delete(accepted: Accepted<'_>) -> String {
    accepted.end(Fields::default()).to_json()
}

/// A request was not carried out.
///
/// ```
/// use antumbra_wire::shadow_mqtt::{Rejection, rejected};
/// let answer = rejected(&Rejection::new(409, "Version conflict"), 1700000000, Some("t"));
/// assert_eq!(answer, r#"{"code":409,"message":"Version conflict","timestamp":1700000000,"clientToken":"t"}"#);
/// ```
pub fn rejected(rejection: &Rejection, seconds: i64, client_token: Option<&str>) -> String {
    Fields::default()
        .number("code", i64::from(rejection.code))
        .text("message", Some(&rejection.message))
        .number("timestamp", seconds)
        .text("clientToken", client_token)
        .to_json()
}

/// Of each member that was sent what is there now; what is not there is as it was sent, which is null.
fn project(sent: View<'_>, now: Option<View<'_>>, model: &Model, out: &mut String) {
    let open = |view: View<'_>, root: bool| {
        view.kind() == Kind::Object && (root || model.time(view).is_none())
    };
    let root = sent.index() == 0;
    match now {
        Some(now) if !(open(sent, root) && open(now, root)) => now.write_json(out),
        None if sent.kind() != Kind::Object => sent.write_json(out),
        now => {
            out.push('{');
            for (position, member) in sent.children().enumerate() {
                out.push_str(if position > 0 { ",\"" } else { "\"" });
                out.push_str(member.raw_key());
                out.push_str("\":");
                project(
                    member,
                    now.and_then(|now| now.get(&member.key())),
                    model,
                    out,
                );
            }
            out.push('}');
        }
    }
}
