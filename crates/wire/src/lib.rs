//! What crosses a boundary: DynamoDB stream events in, notifications out.
//!
//! Pure: no clock, no I/O, no AWS types. In reading order:
//!
//! - [`stream`]: the bytes of a stream event to records and images
//! - [`item`]: a record of the main table to the documents that changed
//! - [`notification`]: a change to the message that targets get
//! - [`limits`]: every bound, in one place

pub mod item;
pub mod limits;
pub mod notification;
pub mod stream;
