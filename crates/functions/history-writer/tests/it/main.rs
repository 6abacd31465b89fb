//! The history of shadows, from writes through the stream and the function to the state at any time.

#![allow(clippy::unwrap_used)]

mod bounds;
mod cursors;
mod feed;
mod holes;
mod purge;
mod restore;
mod rig;
mod storm;
mod writer;
