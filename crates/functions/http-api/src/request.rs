//! Reading a request: path, query, headers and body, each with a problem of its own when it cannot be.

#![allow(dead_code, unused_imports)]

mod body;
mod conditions;
mod parts;
mod query;

pub(crate) use body::{BODY_BYTES, JsonBody, RawBody, read_body};
pub(crate) use conditions::{Conditions, Match, matches};
pub(crate) use parts::{PathParts, check_path};
pub(crate) use query::{Paging, Queried};
