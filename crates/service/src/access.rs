//! Access control: the grants of a caller, and the ids that they cover.
//!
//! A grant is a text, `resource:verb` or `resource:verb:prefix`. Identity providers, files and the command line all use
//! this text. There are no roles and no denials: a caller may do what one of its grants covers, and nothing else.

mod grant;
mod grants;
mod prefix;
mod ranges;
mod scopes;

pub use grant::{Grant, InvalidGrant, Resource, Verb};
pub use grants::Grants;
pub use prefix::{InvalidPrefix, Prefix};
pub use ranges::{IdRange, IdRanges};
pub use scopes::{SCOPE_PREFIX, scopes};
