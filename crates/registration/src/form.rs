//! The form of a registration's messages.

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Form {
    /// A description of the change, with the parts that `send` selects.
    #[default]
    Notification,
    /// The item's key attributes and nothing else, partition key first.
    Key,
    /// The delta of a shadow in the format of AWS IoT Device Shadow; no message if there is none.
    ShadowDelta,
    /// Both documents of a shadow, before and after, in the format of AWS IoT Device Shadow.
    ShadowDocuments,
}

impl Form {
    /// All forms, with their words in registrations.
    pub const ALL: [(&'static str, Form); 4] = [
        ("notification", Form::Notification),
        ("key", Form::Key),
        ("shadow-delta", Form::ShadowDelta),
        ("shadow-documents", Form::ShadowDocuments),
    ];

    /// Returns `true` if `send` selects its parts. The other forms are always complete.
    pub fn has_parts(self) -> bool {
        self == Form::Notification
    }

    /// Returns `true` if it is made of both documents of a shadow.
    pub fn is_of_shadows(self) -> bool {
        matches!(self, Form::ShadowDelta | Form::ShadowDocuments)
    }
}
