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
    /// What is desired of a shadow and not yet so, as AWS IoT Device Shadow tells it; nothing when all is.
    ShadowDelta,
    /// Both documents of a shadow, before and after, as AWS IoT Device Shadow tells them.
    ShadowDocuments,
}

impl Form {
    /// All of them, as registrations write them.
    pub const ALL: [(&'static str, Form); 4] = [
        ("notification", Form::Notification),
        ("key", Form::Key),
        ("shadow-delta", Form::ShadowDelta),
        ("shadow-documents", Form::ShadowDocuments),
    ];

    /// Whether `send` chooses what is in it. The others are always whole.
    pub fn has_parts(self) -> bool {
        self == Form::Notification
    }

    /// Whether it is made of both documents of a shadow, and of nothing else.
    pub fn is_of_shadows(self) -> bool {
        matches!(self, Form::ShadowDelta | Form::ShadowDocuments)
    }
}
