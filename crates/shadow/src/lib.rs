//! Device shadow documents: merge, diff and acknowledgement.
//!
//! Pure: no clock, no I/O, no randomness; time is an argument. In reading order:
//!
//! - [`Document`]: a JSON object in canonical form, and [`View`], a cursor on its values
//! - [`Model`] and [`Timestamp`]: which objects are *timestamped values*, and when they were measured
//! - [`merge`](merge()): stored and sent become one, with a verdict per leaf; [`merge_in_order`] by the times of messages
//! - [`diff`](diff()) and [`apply`]: the leaves in which two documents differ
//! - [`Patch`]: the same difference, to be stored without the documents
//! - [`acknowledge`](acknowledge()) and [`delta`]: desired against reported; [`AcknowledgedLeaves`]: the record of it
//! - [`LeafTimes`]: when each leaf took its present value
//! - [`limits`]: all limits

#![warn(missing_docs)]

mod acknowledge;
mod acknowledged_leaves;
mod apply;
pub mod blocks;
mod build;
mod changes;
mod diff;
mod document;
pub mod limits;
mod merge;
mod model;
pub mod number;
mod order;
mod pairs;
mod parse;
mod patch;
pub mod pointer;
pub mod scan;
mod state;
mod stretch;
pub mod tape;
pub mod text;
mod times;
pub mod timestamp;
mod words;

pub use acknowledge::{Acknowledged, Acknowledgements, acknowledge, delta};
pub use acknowledged_leaves::{AcknowledgedLeaves, AcknowledgedNodes};
pub use apply::{ApplyError, apply};
pub use changes::{Change, Changes, Note, Verdict};
pub use diff::{Container, Diff, DiffBuffer, Leaf, Part, Pointer, Token, diff};
pub use document::{Document, DocumentError};
pub use merge::{Merged, Mode, merge, merge_in_order, merge_older};
pub use model::{Arrays, Model};
pub use patch::{Patch, PatchError, Patched, PatchedLeaf};
pub use state::State;
pub use stretch::common_prefix;
pub use tape::{Kind, View};
pub use times::LeafTimes;
pub use timestamp::Timestamp;
