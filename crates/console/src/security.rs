//! Checks of every request: session, host, origin and token.
//!
//! The console is for the person at this machine. A login token in a URL, printed in the terminal, becomes a cookie. Other
//! web pages can send requests to loopback ports too, so that more is checked: the name of the host (a foreign name can
//! resolve to 127.0.0.1), the origin of writes and of event streams, and a token in the form of every write.

mod guard;
mod host;
mod logins;

pub(crate) use guard::{Session, guard, headers, start_session};
pub use host::is_loopback;
pub(crate) use logins::{Logins, SessionId, random};
