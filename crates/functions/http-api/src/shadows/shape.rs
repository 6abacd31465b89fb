//! What the routes of shadows take and give.

use antumbra_service::shadows::{
    ClientToken, DesiredMode, Shadow, ShadowId, State as Side, StoredDocument, Update,
    UpdateResult, Version, Zone,
};
use antumbra_shadow::{Changes, Document, Mode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::problem::{Code, Problem};
use crate::request::RawBody;

/// Bytes of verdicts that an answer holds: Lambda answers with 6 MB at most, and a value can have a
/// pointer longer than itself.
const VERDICT_BYTES: usize = 4 * 1024 * 1024;

/// A device's main shadow.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TheShadow {
    /// The device's id, percent-encoded. Through API Gateway, one with `/`, `?` or `%` twice.
    #[param(min_length = 1, max_length = 2045)]
    id: String,
}

impl TheShadow {
    pub(super) fn id(self) -> Result<ShadowId, Problem> {
        ShadowId::new(self.id).map_err(|fault| Problem::new(Code::InvalidPath, fault.to_string()))
    }
}

/// One of a device's shadows.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct NamedShadow {
    /// The device's id, percent-encoded. Through API Gateway, one with `/`, `?` or `%` twice.
    #[param(min_length = 1, max_length = 2045)]
    id: String,
    /// The shadow's name, percent-encoded.
    #[param(min_length = 1, max_length = 1020)]
    name: String,
}

impl NamedShadow {
    pub(super) fn id(self) -> Result<ShadowId, Problem> {
        ShadowId::named(self.id, self.name)
            .map_err(|fault| Problem::new(Code::InvalidPath, fault.to_string()))
    }
}

/// How a document is merged.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UpdateQuery {
    /// Who decides over what only one side has. A report is merged with `ServerIsMaster` unless said
    /// otherwise, and a desire with `Patch`.
    #[param(inline)]
    mode: Option<ModeWord>,
    /// Leave the desired document alone when reporting.
    #[serde(default)]
    ignore_desired: bool,
    /// A word to leave with what is written, of at most 64 bytes.
    #[param(min_length = 1, max_length = 64)]
    client_token: Option<String>,
    /// The device's time zone, such as `Europe/Stockholm`.
    #[param(max_length = 64, example = "Europe/Stockholm")]
    tz: Option<String>,
}

/// Who decides over what only one side has.
#[derive(Clone, Copy, Deserialize, ToSchema)]
pub(crate) enum ModeWord {
    /// The sender adds and updates, and cannot delete.
    ServerIsMaster,
    /// What the sender leaves out is removed.
    ClientIsMaster,
    /// What the sender leaves out is kept, and `null` deletes.
    Patch,
}

/// An update with the side it is about.
pub(super) struct Change {
    pub(super) shadow: ShadowId,
    pub(super) side: Side,
    pub(super) update: Update,
}

impl UpdateQuery {
    pub(super) fn update(
        self,
        shadow: ShadowId,
        side: Side,
        RawBody(body): &RawBody,
    ) -> Result<Change, Problem> {
        let document = Document::from_slice(body)?;
        let mut update = match side {
            Side::Reported => Update::report(shadow.clone(), document),
            Side::Desired => Update::desire(shadow.clone(), document),
        };
        if let Some(mode) = self.mode {
            update = update.mode(match mode {
                ModeWord::ServerIsMaster => Mode::ServerIsMaster,
                ModeWord::ClientIsMaster => Mode::ClientIsMaster,
                ModeWord::Patch => Mode::Patch,
            });
        }
        if self.ignore_desired {
            update = update.desired_mode(DesiredMode::IgnoreDesiredState);
        }
        let invalid = |fault: antumbra_service::shadows::InvalidId| {
            Problem::new(Code::InvalidQuery, fault.to_string())
        };
        if let Some(token) = self.client_token {
            update = update.client_token(ClientToken::new(token).map_err(invalid)?);
        }
        if let Some(tz) = self.tz {
            update = update.zone(Zone::new(tz).map_err(invalid)?);
        }
        Ok(Change {
            shadow,
            side,
            update,
        })
    }
}

/// A document: any JSON object of at most 32 levels. Its numbers are kept exactly, to 38 digits.
#[derive(ToSchema)]
#[schema(value_type = Object, example = json!({
    "led": {"value": "on", "timestamp": "2026-01-31T12:00:00Z"},
}))]
#[allow(dead_code)]
pub(crate) struct DocumentBody(Document);

/// A document as it is stored.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeldDocument<'a> {
    /// How often it has been written. In quotes, it is the document's entity tag.
    #[schema(minimum = 1, example = 3)]
    version: i64,
    /// When it was written last.
    #[schema(format = DateTime)]
    timestamp: String,
    /// The time zone the last writer named.
    #[serde(skip_serializing_if = "Option::is_none")]
    tz: Option<&'a str>,
    /// The word the last writer left.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_token: Option<&'a str>,
    /// The document.
    #[schema(value_type = Object)]
    document: &'a Document,
}

impl<'a> From<&'a StoredDocument> for HeldDocument<'a> {
    fn from(held: &'a StoredDocument) -> HeldDocument<'a> {
        HeldDocument {
            version: held.version.0,
            timestamp: held.timestamp.to_string(),
            tz: held.zone.as_ref().map(Zone::as_str),
            client_token: held.client_token.as_ref().map(ClientToken::as_str),
            document: &held.document,
        }
    }
}

/// A shadow.
#[derive(Serialize, ToSchema)]
#[schema(as = Shadow)]
pub(crate) struct ShadowAnswer<'a> {
    /// The device's id.
    #[schema(example = "lamp-7")]
    id: &'a str,
    /// The shadow's name.
    #[schema(example = "main")]
    name: &'a str,
    /// What the device says, if it said anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    reported: Option<HeldDocument<'a>>,
    /// What is wanted of it, if anything ever was.
    #[serde(skip_serializing_if = "Option::is_none")]
    desired: Option<HeldDocument<'a>>,
    /// What is wanted and not yet so.
    #[schema(value_type = Object)]
    delta: Document,
}

impl<'a> ShadowAnswer<'a> {
    pub(super) fn new(id: &'a ShadowId, shadow: &'a Shadow) -> ShadowAnswer<'a> {
        ShadowAnswer {
            id: id.id(),
            name: id.name(),
            reported: shadow.reported.as_ref().map(HeldDocument::from),
            desired: shadow.desired.as_ref().map(HeldDocument::from),
            delta: shadow.delta.clone().unwrap_or_default(),
        }
    }
}

/// What is wanted of a device and not yet so.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delta)]
pub(crate) struct DeltaAnswer<'a> {
    /// The device's id.
    #[schema(example = "lamp-7")]
    id: &'a str,
    /// The shadow's name.
    #[schema(example = "main")]
    name: &'a str,
    /// The version of the reported document; 0 when there is none.
    #[schema(minimum = 0, example = 3)]
    reported_version: i64,
    /// The version of the desired document; 0 when there is none.
    #[schema(minimum = 0, example = 2)]
    desired_version: i64,
    /// The delta.
    #[schema(value_type = Object)]
    delta: Document,
}

impl<'a> DeltaAnswer<'a> {
    pub(super) fn new(id: &'a ShadowId, shadow: &Shadow) -> DeltaAnswer<'a> {
        DeltaAnswer {
            id: id.id(),
            name: id.name(),
            reported_version: version(&shadow.reported).0,
            desired_version: version(&shadow.desired).0,
            delta: shadow.delta.clone().unwrap_or_default(),
        }
    }
}

/// What an update led to.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Update)]
pub(crate) struct UpdateAnswer<'a> {
    /// The device's id.
    #[schema(example = "lamp-7")]
    id: &'a str,
    /// The shadow's name.
    #[schema(example = "main")]
    name: &'a str,
    /// Whether anything was written. What changes nothing is not.
    written: bool,
    /// The version the document has now; 0 if it is not there.
    #[schema(minimum = 0, example = 3)]
    version: i64,
    /// How many times it was tried.
    #[schema(minimum = 1)]
    attempts: u32,
    /// What became of each value, in document order. Left out when it would be longer than an answer can
    /// be.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<VerdictShape>>)]
    verdicts: Option<&'a Changes>,
    /// Where desired values have come true.
    #[schema(example = json!(["/led"]))]
    acknowledged: Vec<&'a str>,
}

/// What became of one value.
#[derive(ToSchema)]
#[schema(as = Verdict)]
#[allow(dead_code)]
pub(crate) struct VerdictShape {
    /// Where, as a JSON Pointer.
    #[schema(example = "/led")]
    pointer: String,
    /// `added`, `updated`, `removed`, or `kept` and why.
    #[schema(example = "kept: stale")]
    verdict: String,
    /// What else there is to know.
    #[schema(nullable = false)]
    note: Option<String>,
    /// The stored value, if there was one.
    #[schema(value_type = Option<serde_json::Value>)]
    old: Option<()>,
    /// The sent value, if there was one.
    #[schema(value_type = Option<serde_json::Value>)]
    new: Option<()>,
}

impl<'a> UpdateAnswer<'a> {
    pub(super) fn new(id: &'a ShadowId, side: Side, updated: &'a UpdateResult) -> UpdateAnswer<'a> {
        let changes = match side {
            Side::Reported => updated.reported_changes.as_ref(),
            Side::Desired => updated.desired_changes.as_ref(),
        };
        UpdateAnswer {
            id: id.id(),
            name: id.name(),
            written: updated.written,
            version: updated.version(side).0,
            attempts: updated.attempts,
            verdicts: changes.filter(|changes| length(changes) <= VERDICT_BYTES),
            acknowledged: updated
                .acknowledged
                .iter()
                .map(|done| done.pointer.as_str())
                .collect(),
        }
    }
}

/// About how long verdicts are as JSON.
fn length(changes: &Changes) -> usize {
    let around =
        r#"{"pointer":"","verdict":"kept: unsent","note":"not a timestamp","old":,"new":},"#;
    let one = |change: antumbra_shadow::Change<'_>| {
        let values = [change.old, change.new].into_iter().flatten();
        let values: usize = values.map(|value| value.to_json().len()).sum();
        around.len() + change.pointer.len() + values
    };
    changes.iter().map(one).sum()
}

pub(super) fn version(held: &Option<StoredDocument>) -> Version {
    held.as_ref().map_or(Version::NONE, |held| held.version)
}

/// The entity tag of a shadow as a whole.
pub(super) fn whole_tag(shadow: &Shadow) -> String {
    let (reported, desired) = (version(&shadow.reported), version(&shadow.desired));
    format!("r{reported}.d{desired}")
}
