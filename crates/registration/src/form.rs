//! The form of a registration's messages: what of a change they are made of.

use schemars::JsonSchema;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Form {
    /// The notification: what changed, with the parts that `send` names.
    #[default]
    Notification,
    /// The item's key attributes and nothing else, partition key first.
    Key,
}

impl Form {
    /// All of them, as registrations write them.
    pub const ALL: [(&'static str, Form); 2] =
        [("notification", Form::Notification), ("key", Form::Key)];

    /// Whether `send` chooses what is in it. The others are always whole.
    pub fn has_parts(self) -> bool {
        self == Form::Notification
    }
}
