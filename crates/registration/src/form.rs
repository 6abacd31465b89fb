//! The form of a registration's messages.

use antumbra_shadow::word_enum;

word_enum! {
    /// The form of a message.
    #[derive(Default)]
    pub enum Form as "form" {
        /// A description of the change, with the parts that `send` selects.
        #[default]
        Notification = "notification",
        /// The item's key attributes and nothing else, partition key first.
        Key = "key",
        /// The delta of a shadow in the format of AWS IoT Device Shadow; no message if there is none.
        ShadowDelta = "shadow-delta",
        /// Both documents of a shadow, before and after, in the format of AWS IoT Device Shadow.
        ShadowDocuments = "shadow-documents",
    }
}

impl Form {
    /// Returns `true` if `send` selects its parts. The other forms are always complete.
    pub fn has_parts(self) -> bool {
        self == Form::Notification
    }

    /// Returns `true` if it is made of both documents of a shadow.
    pub fn is_of_shadows(self) -> bool {
        matches!(self, Form::ShadowDelta | Form::ShadowDocuments)
    }
}
