//! The two documents of a shadow, by name.

use crate::word_enum;

word_enum! {
    /// One of the two documents of a shadow.
    ///
    /// ```
    /// use antumbra_shadow::State;
    /// assert_eq!(State::Reported.to_string(), "reported");
    /// ```
    #[derive(PartialOrd, Ord)]
    pub enum State as "document of a shadow" {
        /// The state that the device sends.
        Reported = "reported",
        /// The state that the device is asked for.
        Desired = "desired",
    }
}
