//! All limits of a document.
//!
//! They are DynamoDB's, so that every document can be stored without loss.
//! The size of an item depends on its encoding and is checked where that is known.

/// Significant digits of a number.
pub const NUMBER_DIGITS: usize = 38;
/// A number's magnitude is below ten to this power.
pub const NUMBER_MAX_EXPONENT: i64 = 126;
/// A number other than zero is at least ten to this power.
pub const NUMBER_MIN_EXPONENT: i64 = -130;
/// Values on the longest way from the root to a leaf, both included: `{"a":1}` is 2 deep.
pub const DEPTH: usize = 32;
/// Bytes of JSON text that are read at all. Far above what can be stored; it bounds the work.
pub const TEXT_BYTES: usize = 16 * 1024 * 1024;
