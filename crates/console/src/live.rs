//! Changes as they happen, as fragments of pages.
//!
//! One reader per process follows the changes, and only while a page is open. Fragments are rendered once and sent to all
//! pages that show them.

/// The event stream of a page.
pub(crate) const PATH: &str = "/events";
