//! Parses the payloads of shadow requests. Invalid ones are rejected with the codes and messages of AWS.

use std::borrow::Cow;

use antumbra_shadow::{Document, DocumentError, Timestamp};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::topic::Operation;
use crate::limits::{CLIENT_TOKEN_BYTES, REQUEST_BYTES};

/// Code and message of a rejected request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Rejection {
    pub code: u16,
    /// Message of AWS for this error, or our own if AWS has none.
    pub message: Cow<'static, str>,
}

impl Rejection {
    pub fn new(code: u16, message: impl Into<Cow<'static, str>>) -> Rejection {
        Rejection {
            code,
            message: message.into(),
        }
    }

    /// Rejection of a payload that is too large, or of an update that would make the document too large.
    pub fn too_large() -> Rejection {
        Rejection::new(413, "The payload exceeds the maximum size allowed")
    }
}

/// The requested change of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Removes all members.
    Clear,
    /// Merges the members; `null` removes one.
    Patch(Document),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpdateRequest {
    pub reported: Option<Part>,
    pub desired: Option<Part>,
    /// The version that the shadow must have.
    pub version: Option<i64>,
    /// The response has a verdict per leaf.
    pub verbose: bool,
    /// Time that orders plain values and `null`s.
    pub timestamp: Option<Timestamp>,
    /// Desired values that are reported are removed; by default, as the deployment is configured.
    pub acknowledge: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Get,
    Update(UpdateRequest),
    Delete {
        /// The version that the shadow must have.
        version: Option<i64>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// Client token for the response, also to a rejected request.
    pub client_token: Option<String>,
    /// The request, or the rejection to respond with.
    pub request: Result<Request, Rejection>,
}

/// Parses the payload of a request.
pub fn read(operation: Operation, payload: &[u8]) -> Requested {
    let mut client_token = None;
    let request = read_into(operation, payload, &mut client_token);
    Requested {
        client_token,
        request,
    }
}

const JSON_SPACE: [char; 4] = [' ', '\n', '\r', '\t'];

fn read_into(
    operation: Operation,
    payload: &[u8],
    client_token: &mut Option<String>,
) -> Result<Request, Rejection> {
    if payload.len() > REQUEST_BYTES {
        return Err(Rejection::too_large());
    }
    let text = std::str::from_utf8(payload).map_err(|_| {
        Rejection::new(
            415,
            "Unsupported documented encoding; supported encoding is UTF-8",
        )
    })?;
    // `get` and `delete` need no payload.
    let text = match (operation, text.trim_matches(JSON_SPACE)) {
        (Operation::Get | Operation::Delete, "") => "{}",
        (_, text) => text,
    };
    let members = Members::read(text).ok_or_else(invalid_json)?;
    let mut version = None;
    let mut update = UpdateRequest::default();
    let mut state = None;
    let boolean = |value: &RawValue, name: &str| {
        serde_json::from_str(value.get())
            .map_err(|_| Rejection::new(400, format!("Invalid {name}")))
    };
    // The token first: the response repeats it even if the rest is invalid.
    if let Some(token) = members.get("clientToken") {
        *client_token = Some(read_token(token)?);
    }
    for (name, value) in &members.0 {
        match (&**name, operation) {
            ("clientToken", _) => {}
            ("version", Operation::Update | Operation::Delete) => {
                version = Some(read_version(value)?);
            }
            ("verbose", Operation::Update) => update.verbose = boolean(value, "verbose")?,
            ("acknowledge", Operation::Update) => {
                update.acknowledge = Some(boolean(value, "acknowledge")?);
            }
            ("timestamp", Operation::Update) => {
                update.timestamp = Some(read_timestamp(value.get())?);
            }
            ("state", Operation::Update) => state = Some(*value),
            _ => {
                let name: String = name.chars().take(64).collect();
                return Err(Rejection::new(400, format!("Unknown node: {name}")));
            }
        }
    }
    match operation {
        Operation::Get => Ok(Request::Get),
        Operation::Delete => Ok(Request::Delete { version }),
        Operation::Update => {
            let (reported, desired) = read_state(state)?;
            Ok(Request::Update(UpdateRequest {
                reported,
                desired,
                version,
                ..update
            }))
        }
    }
}

fn invalid_json() -> Rejection {
    Rejection::new(400, "Invalid JSON")
}

fn read_token(value: &RawValue) -> Result<String, Rejection> {
    let token: Option<String> = serde_json::from_str(value.get()).ok();
    token
        .filter(|token| (1..=CLIENT_TOKEN_BYTES).contains(&token.len()))
        .ok_or_else(|| Rejection::new(400, "Invalid clientToken"))
}

fn read_version(value: &RawValue) -> Result<i64, Rejection> {
    let version: Option<i64> = serde_json::from_str(value.get()).ok();
    version
        .filter(|version| *version >= 0)
        .ok_or_else(|| Rejection::new(400, "Invalid version"))
}

/// Reads a time in any form that timestamped values take: a JSON number, or RFC 3339 in a JSON string.
fn read_timestamp(json: &str) -> Result<Timestamp, Rejection> {
    let document = Document::parse(&format!("{{\"t\":{json}}}")).ok();
    let time = document.and_then(|document| Timestamp::of(document.view().get("t")?));
    time.ok_or_else(|| Rejection::new(400, "Invalid timestamp"))
}

type Parts = (Option<Part>, Option<Part>);

fn read_state(state: Option<&RawValue>) -> Result<Parts, Rejection> {
    let missing = || Rejection::new(400, "Missing required node: state");
    let state = state.ok_or_else(missing)?;
    if !state.get().starts_with('{') {
        return Err(Rejection::new(400, "State node must be an object"));
    }
    let members = Members::read(state.get()).ok_or_else(invalid_json)?;
    let (mut reported, mut desired) = (None, None);
    for (name, value) in &members.0 {
        match &**name {
            "reported" => reported = Some(read_part(value, "Reported node must be an object")?),
            "desired" => desired = Some(read_part(value, "Desired node must be an object")?),
            _ => return Err(Rejection::new(400, "State contains an invalid node")),
        }
    }
    match (&reported, &desired) {
        (None, None) => Err(missing()),
        _ => Ok((reported, desired)),
    }
}

fn read_part(value: &RawValue, not_an_object: &'static str) -> Result<Part, Rejection> {
    match value.get() {
        "null" => return Ok(Part::Clear),
        text if !text.starts_with('{') => return Err(Rejection::new(400, not_an_object)),
        _ => {}
    }
    Document::parse(value.get())
        .map(Part::Patch)
        .map_err(|error| match error {
            DocumentError::Syntax(_) => invalid_json(),
            DocumentError::TooLong { .. } => Rejection::too_large(),
            DocumentError::TooDeep { limit, .. } => {
                // The deepest level of a document can contain only plain values, so objects have one level less.
                let levels = limit - 1;
                let message =
                    format!("JSON contains too many levels of nesting; maximum is {levels}");
                Rejection::new(400, message)
            }
            other => Rejection::new(400, format!("Invalid JSON: {other}")),
        })
}

/// Members of a JSON object, with unparsed values.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Returns `None` if the text is not an object, or a name occurs twice.
    fn read(text: &'a str) -> Option<Members<'a>> {
        let members: Members<'a> = serde_json::from_str(text).ok()?;
        let mut names: Vec<&str> = members.0.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        let has_duplicates = names.windows(2).any(|pair| pair[0] == pair[1]);
        (!has_duplicates).then_some(members)
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        let mut members = self.0.iter();
        members
            .find(|member| member.0 == name)
            .map(|member| member.1)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push((Cow::Owned(member.0), member.1));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
