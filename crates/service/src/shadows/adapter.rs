//! Shared by all implementations of [`ShadowStore`](super::ShadowStore): validation of requests and sizes of items.
//! Pure.

mod check;
mod size;

pub use check::{check_delete, check_document, check_list, check_prefix, check_write};
pub use size::{ITEM_BYTES, document_bytes, item_bytes, number_bytes};
