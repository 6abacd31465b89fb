//! Patch: the difference of two documents in a form that can be stored without them.
//!
//! Unlike a [`Diff`](crate::Diff) it turns the old document into the new one and the new one back into the old one.
//! Objects are compared member by member. Arrays, timestamped values and scalars are replaced as a whole, so that no
//! position of an array has to be known.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::diff::{Part, diff};
use crate::document::{Document, DocumentError};
use crate::model::Model;
use crate::pairs::all_twins;
use crate::pointer;
use crate::tape::{Kind, View};
use crate::text;

/// The difference of two documents, with the old and the new values.
///
/// ```
/// use antumbra_shadow::{Document, Model, Patch, Patched};
///
/// let old = Document::parse(r#"{"led":"off","fan":{"speed":1,"on":true}}"#)?;
/// let new = Document::parse(r#"{"led":"on","fan":{"on":true}}"#)?;
/// let patch = Patch::between(&old, &new, &Model::default(), usize::MAX).unwrap();
/// assert_eq!(patch.to_json(), r#"[["/fan/speed",[1],[]],["/led",["off"],["on"]]]"#);
///
/// let mut patched = Patched::new(&old);
/// patched.apply(&patch).unwrap();
/// assert_eq!(patched.document().unwrap(), new);
/// patched.revert(&patch).unwrap();
/// assert_eq!(patched.document().unwrap(), old);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Patch(Vec<Replaced>);

/// A value that is replaced: its JSON Pointer, and the values before and after as lists of one, or of none if there is
/// no value.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Replaced(String, Vec<Box<RawValue>>, Vec<Box<RawValue>>);

/// A leaf that a patch changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedLeaf {
    /// JSON Pointer; in the old document if the leaf is removed, otherwise in the new one.
    pub pointer: String,
    /// The value before, as JSON text.
    pub old: Option<String>,
    /// The value after, as JSON text.
    pub new: Option<String>,
}

/// Error of a patch that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The text is not a patch.
    #[error("not a patch: {0}")]
    Syntax(String),
    /// The document has another value than the patch replaces.
    #[error("the document does not fit the patch at {pointer:?}")]
    Misfit {
        /// JSON Pointer of the value.
        pointer: String,
    },
    /// The result is not a document.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl Patch {
    /// Computes the patch that turns `old` into `new`; `None` if its text has more bytes than the limit.
    pub fn between(old: &Document, new: &Document, model: &Model, limit: usize) -> Option<Patch> {
        let mut walk = Walk {
            model,
            pointer: String::new(),
            patch: Patch::default(),
            bytes_left: limit.checked_sub(2)?,
        };
        walk.members(old.view(), new.view()).then_some(walk.patch)
    }

    /// Returns whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the values that it replaces: JSON Pointer, and the JSON texts before and after. Unlike
    /// [`leaves`](Patch::leaves) they can be objects.
    ///
    /// ```
    /// use antumbra_shadow::Patch;
    /// let patch = Patch::parse(r#"[["/fan",[],[{"speed":1}]]]"#).unwrap();
    /// let replaced: Vec<_> = patch.replaced().collect();
    /// assert_eq!(replaced, [("/fan", None, Some(r#"{"speed":1}"#))]);
    /// ```
    pub fn replaced(&self) -> impl Iterator<Item = (&str, Option<&str>, Option<&str>)> {
        fn text(value: &[Box<RawValue>]) -> Option<&str> {
            value.first().map(|value| value.get())
        }
        let replaced = self.0.iter();
        replaced.map(|Replaced(pointer, old, new)| (pointer.as_str(), text(old), text(new)))
    }

    /// Returns its JSON text: a list of pointers with the values before and after.
    pub fn to_json(&self) -> String {
        // Texts and raw JSON values always have a JSON form.
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// Reads its JSON text.
    pub fn parse(text: &str) -> Result<Patch, PatchError> {
        let values: Vec<Replaced> =
            serde_json::from_str(text).map_err(|error| PatchError::Syntax(error.to_string()))?;
        match values.iter().all(|one| one.1.len() < 2 && one.2.len() < 2) {
            true => Ok(Patch(values)),
            false => Err(PatchError::Syntax("a value has two states".to_owned())),
        }
    }

    /// Returns the leaves that change, as [`diff`](crate::diff()) lists them, if their pointers and values have at most
    /// `limit` bytes together.
    pub fn leaves(
        &self,
        model: &Model,
        limit: usize,
    ) -> Result<Option<Vec<PatchedLeaf>>, PatchError> {
        let (mut old, mut new) = (String::from("{"), String::from("{"));
        for (number, Replaced(_, before, after)) in self.0.iter().enumerate() {
            for (out, value) in [(&mut old, before), (&mut new, after)] {
                if let Some(value) = value.first() {
                    let comma = if out.len() > 1 { "," } else { "" };
                    // Writing to a String cannot fail.
                    let _ = write!(out, "{comma}\"{number}\":{}", value.get());
                }
            }
        }
        old.push('}');
        new.push('}');
        let (old, new) = (Document::parse(&old)?, Document::parse(&new)?);
        let mut leaves = Vec::new();
        let mut bytes = 0;
        for leaf in diff(old.view(), new.view(), model).leaves() {
            let below = leaf.pointer.to_string();
            let below = below.strip_prefix('/').unwrap_or_default();
            let (number, rest) = match below.find('/') {
                Some(at) => below.split_at(at),
                None => (below, ""),
            };
            let Some(replaced) = number.parse().ok().and_then(|n: usize| self.0.get(n)) else {
                continue;
            };
            let value = |view: Option<View<'_>>| view.map(View::to_json);
            let leaf = PatchedLeaf {
                pointer: format!("{}{rest}", replaced.0),
                old: value(leaf.old.filter(|_| leaf.part != Part::Added)),
                new: value(leaf.new.filter(|_| leaf.part != Part::Removed)),
            };
            let size = |value: &Option<String>| value.as_ref().map_or(0, String::len);
            bytes += leaf.pointer.len() + size(&leaf.old) + size(&leaf.new);
            if bytes > limit {
                return Ok(None);
            }
            leaves.push(leaf);
        }
        Ok(Some(leaves))
    }

    /// Returns the changed values before and after, in documents that hold nothing else.
    ///
    /// ```
    /// use antumbra_shadow::Patch;
    /// let patch = Patch::parse(r#"[["/fan/speed",[1],[]],["/led",["off"],["on"]]]"#).unwrap();
    /// let [old, new] = patch.documents().unwrap();
    /// assert_eq!(old.as_str(), r#"{"fan":{"speed":1},"led":"off"}"#);
    /// assert_eq!(new.as_str(), r#"{"led":"on"}"#);
    /// ```
    pub fn documents(&self) -> Result<[Document; 2], PatchError> {
        let mut sides = [(); 2].map(|()| Value::Object(BTreeMap::new()));
        for Replaced(pointer, old, new) in &self.0 {
            for (side, value) in sides.iter_mut().zip([old, new]) {
                if let Some(value) = value.first() {
                    let misfit = || PatchError::Misfit {
                        pointer: pointer.clone(),
                    };
                    *side.member(pointer).ok_or_else(misfit)? = Value::Text(value.get().to_owned());
                }
            }
        }
        let [old, new] = sides.map(|side| Document::parse(&side.to_json()));
        Ok([old?, new?])
    }
}

/// Bytes of an entry beside its pointer and values, without what JSON escapes.
const ENTRY_BYTES: usize = r#"["",[],[]],"#.len();

struct Walk<'m> {
    model: &'m Model,
    pointer: String,
    patch: Patch,
    bytes_left: usize,
}

impl Walk<'_> {
    /// Compares two objects. Returns `false` if the patch became too large.
    fn members(&mut self, old: View<'_>, new: View<'_>) -> bool {
        all_twins(old, new, |old, new| {
            let Some(either) = old.or(new) else {
                return true;
            };
            let length = self.pointer.len();
            pointer::push_key(&mut self.pointer, &either.key());
            let fits = match (old, new) {
                (Some(old), Some(new)) if old.same(new) => true,
                (Some(old), Some(new)) if self.has_members(old) && self.has_members(new) => {
                    self.members(old, new)
                }
                _ => self.replaced(old, new),
            };
            self.pointer.truncate(length);
            fits
        })
    }

    fn has_members(&self, view: View<'_>) -> bool {
        view.kind() == Kind::Object && !view.is_empty_container() && self.model.time(view).is_none()
    }

    fn replaced(&mut self, old: Option<View<'_>>, new: Option<View<'_>>) -> bool {
        let value = |view: Option<View<'_>>| {
            let raw = view.map(|view| RawValue::from_string(view.to_json()));
            // The text of a value is JSON.
            raw.and_then(Result::ok).into_iter().collect()
        };
        // With the quotation marks of a text.
        let size = |view: Option<View<'_>>| view.map_or(0, |view| view.raw().len() + 2);
        let bytes = ENTRY_BYTES + self.pointer.len() + size(old) + size(new);
        match self.bytes_left.checked_sub(bytes) {
            None => return false,
            Some(left) => self.bytes_left = left,
        }
        let replaced = Replaced(self.pointer.clone(), value(old), value(new));
        self.patch.0.push(replaced);
        true
    }
}

/// A document to which patches are applied, forwards or backwards. Only objects on the way to changed values are taken
/// apart.
#[derive(Debug, Clone)]
pub struct Patched(Value);

#[derive(Debug, Clone)]
enum Value {
    /// Canonical JSON text.
    Text(String),
    /// By names as they stand in canonical text, which is ordered by them.
    Object(BTreeMap<String, Value>),
}

impl Patched {
    /// Starts with a document.
    pub fn new(document: &Document) -> Patched {
        Patched(Value::Text(document.as_str().to_owned()))
    }

    /// Replaces the old values of a patch by the new ones. After an error the document is useless.
    pub fn apply(&mut self, patch: &Patch) -> Result<(), PatchError> {
        let mut values = patch.0.iter();
        values.try_for_each(|Replaced(pointer, old, new)| self.replace(pointer, old, new))
    }

    /// Replaces the new values of a patch by the old ones. After an error the document is useless.
    pub fn revert(&mut self, patch: &Patch) -> Result<(), PatchError> {
        let mut values = patch.0.iter();
        values.try_for_each(|Replaced(pointer, old, new)| self.replace(pointer, new, old))
    }

    /// Returns the document as it is now.
    pub fn document(&self) -> Result<Document, PatchError> {
        Ok(Document::parse(&self.0.to_json())?)
    }

    fn replace(
        &mut self,
        pointer: &str,
        from: &[Box<RawValue>],
        to: &[Box<RawValue>],
    ) -> Result<(), PatchError> {
        let misfit = || PatchError::Misfit {
            pointer: pointer.to_owned(),
        };
        let (parents, name) = pointer.rsplit_once('/').ok_or_else(misfit)?;
        let mut parents = parents.split('/').skip(1);
        let object = parents.try_fold(&mut self.0, |at, token| at.members()?.get_mut(&key(token)));
        let members = object.and_then(Value::members).ok_or_else(misfit)?;
        let name = key(name);
        let stored = members.get(&name).map(Value::to_json);
        if stored.as_deref() != from.first().map(|value| value.get()) {
            return Err(misfit());
        }
        match to.first() {
            Some(value) => {
                members.insert(name, Value::Text(value.get().to_owned()));
            }
            None => {
                members.remove(&name);
            }
        }
        Ok(())
    }
}

/// The member's name in canonical text that a token of a JSON Pointer stands for.
fn key(token: &str) -> String {
    let mut key = String::new();
    text::escape_into(&mut key, &pointer::unescape(token));
    key
}

impl Value {
    /// The members of an object; `None` for any other value.
    fn members(&mut self) -> Option<&mut BTreeMap<String, Value>> {
        if let Value::Text(text) = self {
            let object = Document::parse(text).ok()?;
            let members = object.view().children();
            let members = members.map(|one| (one.raw_key().to_owned(), Value::Text(one.to_json())));
            *self = Value::Object(members.collect());
        }
        match self {
            Value::Object(members) => Some(members),
            Value::Text(_) => None,
        }
    }

    /// The member at a pointer, made if it is missing; `None` if the pointer leads through another value than an object.
    fn member(&mut self, pointer: &str) -> Option<&mut Value> {
        let empty = || Value::Object(BTreeMap::new());
        let mut tokens = pointer.split('/').skip(1);
        tokens.try_fold(self, |at, token| {
            Some(at.members()?.entry(key(token)).or_insert_with(empty))
        })
    }

    fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        let members = match self {
            Value::Text(text) => return out.push_str(text),
            Value::Object(members) => members,
        };
        out.push('{');
        for (position, (name, member)) in members.iter().enumerate() {
            out.push_str(if position > 0 { ",\"" } else { "\"" });
            out.push_str(name);
            out.push_str("\":");
            member.write(out);
        }
        out.push('}');
    }
}
