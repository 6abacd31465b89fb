//! One registration: a rule of `registrations/`, read from its file.

use std::sync::Arc;

use antumbra_shadow::{State, View};

use crate::change::{Change, Operation};
use crate::form::Form;
use crate::key::{Key, KeyExpression, KeySet, Literals};
use crate::leaf::paths::PathScratch;
use crate::leaf::{Leaf, MatchedLeaf};
use crate::limits::NAME_BYTES;
use crate::pattern::Pattern;
use crate::problem::Place;
use crate::read::{Fields, Reader};
use crate::target::Target;

/// A rule: which changes are sent, with which content, to which target.
#[derive(Debug, Clone)]
pub struct Registration {
    pub file: Box<str>,
    /// The name, unique among all registrations: letters, digits, `-`, `_` and `.`.
    pub name: Box<str>,
    pub description: Option<Box<str>>,
    /// Disabled registrations are checked and match nothing.
    pub enabled: bool,
    /// The conditions of a change. Default: every change of every shadow.
    pub on: On,
    /// The form of a message: `notification` describes the change, `key` is only the item's key.
    pub form: Form,
    /// The parts of the change that a notification contains, in any combination.
    pub send: Parts,
    /// The destination: exactly one target.
    pub to: Target,
}

/// The conditions of a registration; all must hold.
#[derive(Debug, Clone, Default)]
pub struct On {
    /// A regular expression on the item's key, PK#SK. Default: every item of a shadow.
    pub key: Option<Arc<str>>,
    /// The document: reported, desired or both.
    pub state: Option<State>,
    /// The operations on the item. Default: all of them.
    pub operations: Operations,
    /// The kind of difference required: `value` ignores changed timestamps, `any` does not.
    pub changes: Changes,
    /// A pattern that the change must match, in EventBridge's pattern language.
    pub pattern: Option<Pattern>,
    /// A condition on single changed values, by their path.
    pub leaf: Option<Leaf>,
}

/// The kind of difference that a change must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Changes {
    Value,
    #[default]
    Any,
}

/// A set of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations(u8);

impl Operations {
    fn new(operations: &[Operation]) -> Operations {
        Operations(
            operations
                .iter()
                .fold(0, |set, operation| set | 1 << *operation as u8),
        )
    }

    /// Returns `true` if the set contains the operation.
    pub fn contains(self, operation: Operation) -> bool {
        self.0 & 1 << operation as u8 != 0
    }
}

impl Default for Operations {
    fn default() -> Operations {
        Operations::new(Operation::ALL)
    }
}

/// The parts of a change that a notification contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    pub old: bool,
    pub new: bool,
    pub diff: bool,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts {
            old: false,
            new: false,
            diff: true,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Old,
    New,
    Diff,
}

const PARTS: [(&str, Part); 3] = [("old", Part::Old), ("new", Part::New), ("diff", Part::Diff)];

impl Registration {
    /// Checks all conditions except the key, the pattern and [`Registration::changed_enough`].
    pub(crate) fn passes(&self, change: &Change<'_>) -> bool {
        let On {
            state, operations, ..
        } = &self.on;
        operations.contains(change.operation)
            && (change.shadow.is_some() || !self.form.is_of_shadows())
            && state.is_none_or(|state| change.shadow.is_some_and(|shadow| shadow.state == state))
    }

    /// Returns whether [`Registration::passes`] says the same of every change as for the other registration.
    pub(crate) fn passes_alike(&self, other: &Registration) -> bool {
        let kind = |one: &Registration| (one.on.operations, one.on.state, one.form.is_of_shadows());
        kind(self) == kind(other)
    }

    /// Returns `true` if changes of other items than shadows never match, whatever their keys.
    pub fn matches_only_shadows(&self) -> bool {
        self.on.key.is_none() || self.on.state.is_some() || self.form.is_of_shadows()
    }

    /// Returns a test of keys: `false` if the registration matches no change of the items with these keys, and `true`
    /// if it may.
    pub fn can_match(&self) -> impl Fn(&KeySet) -> bool {
        let key = self.on.key.as_deref().map(KeyExpression::new);
        let (enabled, only_shadows) = (self.enabled, self.matches_only_shadows());
        move |keys| match &key {
            _ if !enabled || (only_shadows && !keys.shadows) => false,
            None => keys.shadows,
            Some(expression) => keys.overlaps(expression),
        }
    }

    /// Checks the kind of difference. Called last because it needs the diff.
    pub(crate) fn changed_enough(&self, change: &Change<'_>) -> bool {
        self.on.changes == Changes::Any || change.value_changed()
    }

    /// Checks the condition on single changed values, if there is one.
    pub(crate) fn leaf_holds(&self, change: &Change<'_>, scratch: &mut PathScratch) -> bool {
        let leaf = self.on.leaf.as_ref();
        leaf.is_none_or(|leaf| leaf.matches(change, self.on.changes, scratch))
    }

    /// Calls `visit` with each changed value that the leaf condition matches.
    pub fn each_matched_leaf(
        &self,
        change: &Change<'_>,
        visit: &mut dyn FnMut(MatchedLeaf<'_, '_>),
    ) {
        if let Some(leaf) = &self.on.leaf {
            leaf.each_match(change.diff.diff(), change, self.on.changes, visit);
        }
    }

    /// Reads the object of a file, and its key in the form that the index needs. `None` if it has problems; they are
    /// added to the reader.
    pub(crate) fn read(
        view: View<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<(Registration, Option<(Key, Literals)>)> {
        let file = reader.problems.file.into();
        let known = &[
            "$schema",
            "name",
            "description",
            "enabled",
            "on",
            "as",
            "send",
            "to",
        ];
        let mut fields = Fields::open(view, &Place::ROOT, reader, known)?;
        fields.plain("$schema");
        fields.require("name");
        let name = fields.plain("name");
        if let Some(reason) = name.as_deref().and_then(name_fault) {
            fields.problem_at("name", reason);
        }
        let description = fields.plain("description");
        let enabled = fields.bool("enabled").unwrap_or(true);
        let (on, key) = fields.below("on", On::read).unwrap_or_default();
        let form = fields.choice("as", Form::WORDS).unwrap_or_default();
        if !form.has_parts() && fields.get("send").is_some() {
            fields.problem_at(
                "send",
                "selects the parts of a notification, and this form has none",
            );
        }
        let send = fields
            .choices("send", &PARTS)
            .map_or_else(Parts::default, |parts| Parts {
                old: parts.contains(&Part::Old),
                new: parts.contains(&Part::New),
                diff: parts.contains(&Part::Diff),
            });
        fields.require("to");
        let to = fields.below("to", Target::read);
        let registration = Registration {
            file,
            name: name?.into(),
            description: description.map(Into::into),
            enabled,
            on,
            form,
            send,
            to: to?,
        };
        Some((registration, key))
    }
}

fn name_fault(name: &str) -> Option<String> {
    let valid = name.len() <= NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
    (!valid).then(|| format!("must be 1 to {NAME_BYTES} letters, digits, - _ and dots, starting with a letter or digit"))
}

impl On {
    fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<(On, Option<(Key, Literals)>)> {
        let known = &["key", "state", "operations", "changes", "pattern", "leaf"];
        let mut fields = Fields::open(view, place, reader, known)?;
        let text = fields.plain("key");
        let key = text.as_deref().and_then(|text| {
            Key::parse(text)
                .map_err(|reason| fields.problem_at("key", reason))
                .ok()
        });
        let states = [
            ("reported", Some(State::Reported)),
            ("desired", Some(State::Desired)),
            ("both", None),
        ];
        let state = fields.choice("state", &states).flatten();
        let operations = fields
            .choices("operations", Operation::WORDS)
            .map(|list| Operations::new(&list))
            .unwrap_or_default();
        let changes = fields
            .choice(
                "changes",
                &[("value", Changes::Value), ("any", Changes::Any)],
            )
            .unwrap_or_default();
        let pattern = fields.below("pattern", |view, place, reader| {
            Pattern::read(view, place, reader.problems)
        });
        let leaf = fields.below("leaf", Leaf::read);
        let on = On {
            key: key.as_ref().map(|(key, _)| key.shared_text()),
            state,
            operations,
            changes,
            pattern,
            leaf,
        };
        Some((on, key))
    }
}
