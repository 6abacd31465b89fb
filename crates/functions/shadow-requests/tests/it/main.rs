//! Requests to shadows, from the bytes of an event to the response.
#![allow(clippy::unwrap_used)]

mod calls;
mod corpus;
mod hostile;
mod order;
mod process;
mod support;
