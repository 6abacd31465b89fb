//! The cases of `testdata/`, as they are written there.
//!
//! Documents remain raw text until they are parsed, so that numbers of 38 digits reach the parser under test
//! and not a floating point number.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use antumbra_shadow::{Arrays, Document, Model, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The model of a case; fields left out are the default model's.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ModelCase {
    timestamp_field: Option<String>,
    timestamp_fields: Option<Vec<String>>,
    id_field: Option<String>,
    max_future_seconds: Option<u64>,
    #[serde(default)]
    whole_arrays: bool,
}

impl ModelCase {
    /// The model as the crate takes it.
    pub(crate) fn model(&self) -> Model {
        let default = Model::default();
        Model {
            timestamp_fields: match (&self.timestamp_fields, &self.timestamp_field) {
                (Some(fields), _) => fields.clone(),
                (None, Some(field)) => vec![field.clone()],
                (None, None) => default.timestamp_fields,
            },
            id_field: self.id_field.clone().unwrap_or(default.id_field),
            max_future: self.max_future_seconds.map(Duration::from_secs),
            arrays: if self.whole_arrays {
                Arrays::Whole
            } else {
                Arrays::Matched
            },
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MergeCase<'a> {
    pub(crate) name: String,
    #[serde(borrow)]
    pub(crate) stored: &'a RawValue,
    #[serde(borrow)]
    pub(crate) sent: &'a RawValue,
    pub(crate) mode: String,
    #[serde(default)]
    pub(crate) model: ModelCase,
    pub(crate) now: Option<String>,
    #[serde(borrow)]
    pub(crate) document: &'a RawValue,
    /// Pointer, verdict and perhaps a note.
    pub(crate) verdicts: Vec<Vec<String>>,
}

impl MergeCase<'_> {
    /// Time of the merge; without one in the case, the time must not matter.
    pub(crate) fn now(&self) -> Timestamp {
        let text = self.now.as_deref().unwrap_or("2024-06-01T00:00:00Z");
        Timestamp::parse(text).unwrap_or_else(|| panic!("{}: now is no time", self.name))
    }
}

/// Both sides of an update.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateCase<'a> {
    #[serde(borrow)]
    pub(crate) old: &'a RawValue,
    #[serde(borrow)]
    pub(crate) new: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DiffCase<'a> {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) model: ModelCase,
    #[serde(borrow)]
    pub(crate) old: &'a RawValue,
    #[serde(borrow)]
    pub(crate) new: &'a RawValue,
    #[serde(borrow)]
    pub(crate) added: BTreeMap<String, &'a RawValue>,
    #[serde(borrow)]
    pub(crate) updated: BTreeMap<String, UpdateCase<'a>>,
    #[serde(borrow)]
    pub(crate) removed: BTreeMap<String, &'a RawValue>,
    pub(crate) value_changed: bool,
}

impl DiffCase<'_> {
    /// The diff as it is written in JSON.
    pub(crate) fn json(&self) -> Document {
        let list = |values: &BTreeMap<String, &RawValue>| {
            let members = values
                .iter()
                .map(|(pointer, value)| format!("{}:{value}", Value::from(pointer.as_str())));
            members.collect::<Vec<_>>().join(",")
        };
        let update = |(pointer, update): (&String, &UpdateCase<'_>)| {
            format!(
                "{}:{{\"old\":{},\"new\":{}}}",
                Value::from(pointer.as_str()),
                update.old,
                update.new
            )
        };
        let updated = self
            .updated
            .iter()
            .map(update)
            .collect::<Vec<_>>()
            .join(",");
        let text = format!(
            "{{\"added\":{{{}}},\"updated\":{{{updated}}},\"removed\":{{{}}}}}",
            list(&self.added),
            list(&self.removed)
        );
        Document::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }
}

/// One acknowledgement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcknowledgeCase<'a> {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) model: ModelCase,
    #[serde(borrow)]
    pub(crate) reported: &'a RawValue,
    #[serde(borrow)]
    pub(crate) desired: &'a RawValue,
    #[serde(borrow)]
    pub(crate) remaining: &'a RawValue,
    pub(crate) acknowledged: Vec<String>,
}

/// The texts of all files of one kind, with their paths, in order of name.
pub(crate) fn files(kind: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata")
        .join(kind);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.expect("a folder's entry").path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "json"))
        .collect();
    paths.sort();
    let read = |path: PathBuf| {
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The cases of one file.
pub(crate) fn cases<'a, C: Deserialize<'a>>(path: &Path, text: &'a str) -> Vec<C> {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A case's document.
pub(crate) fn document(raw: &RawValue) -> Document {
    Document::parse(raw.get()).unwrap_or_else(|e| panic!("{e}: {raw}"))
}

/// A case's value in canonical text. Only documents have one, so it travels inside a document.
pub(crate) fn canonical(raw: &RawValue) -> String {
    let wrapped =
        Document::parse(&format!("{{\"v\":{raw}}}")).unwrap_or_else(|e| panic!("{e}: {raw}"));
    wrapped
        .pointer("/v")
        .expect("the member just written")
        .to_json()
}

/// Returns `true` if floating point and 64 bits hold every number of the text, as the reference needs it.
pub(crate) fn is_exact(raw: &RawValue) -> bool {
    let text = raw.get();
    let digits = |word: &str| word.bytes().filter(u8::is_ascii_digit).count();
    text.split(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
        .all(|word| digits(word) <= 15 || word.parse::<i64>().is_ok())
}
