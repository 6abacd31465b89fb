//! The two documents of a shadow, by name.

use std::fmt;

/// One of the two documents of a shadow.
///
/// ```
/// use antumbra_shadow::State;
/// assert_eq!(State::Reported.to_string(), "reported");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// The state that the device sends.
    Reported,
    /// The state that the device is asked for.
    Desired,
}

impl State {
    /// The state as it is written everywhere.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Reported => "reported",
            State::Desired => "desired",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
