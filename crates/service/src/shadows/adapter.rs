//! What every implementation of [`ShadowStore`](super::Persistence) shares: what is refused before
//! the store is asked, and how large an item would be.
//!
//! Pure. It is for those who keep shadows somewhere; who uses them needs none of it.

mod check;
mod size;

pub use check::{check_delete, check_document, check_list, check_write};
pub use size::{ITEM_BYTES, document_bytes, item_bytes, number_bytes};
