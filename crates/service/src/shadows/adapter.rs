//! What every implementation of [`Persistence`](super::Persistence) shares: what is refused before
//! the store is asked, how large an item would be, and how a cursor is sealed.
//!
//! Pure. It is for those who keep shadows somewhere; who uses them needs none of it.

mod check;
mod cursor;
mod size;

pub use check::{check_delete, check_list, check_write};
pub use cursor::{open_cursor, seal_cursor};
pub use size::{ITEM_BYTES, document_bytes, item_bytes, number_bytes};
