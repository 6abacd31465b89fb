//! Reading a request: path, query, headers and body, each with a problem of its own when it cannot be.

mod body;
mod conditions;
mod parts;
mod query;

pub(crate) use body::{JsonBody, RawBody, read_body};
pub(crate) use conditions::{Conditions, Match, matches, number, other_version};
pub(crate) use parts::{PathParts, check_path};
pub(crate) use query::{Paging, Queried, cursor, instant, limit, time};
