//! The inbox: messages that came in through a queue, kept by their source until somebody deletes them.
//!
//! In reading order: [`Source`] and [`MessageId`] name a message, [`Body`] is what was sent;
//! [`MessageParser`] makes a message of a queue's text, or says why it never can; the ports, one for each role
//! ([`MessageWriter`], [`SourceTracker`], [`MessageReader`], [`MessageIndex`], [`MessageDeleter`], [`Sources`]); [`HourlySourceTracker`], which spares
//! calls; and [`span`] and [`list`], which make several.
//!
//! Nothing here knows of queues, topics or tables. What a message may be is decided here alone, so that
//! every door refuses the same.

mod body;
mod browse;
mod name;
mod parser;
mod ports;
mod source_tracker;

pub use crate::paging::Page;
pub use body::Body;
pub use browse::{ListRequest, Span, list, shorten_page, span};
pub use name::{MESSAGE_ID_BYTES, MessageId, SOURCE_BYTES, Source};
pub use parser::{
    ANSWER_BYTES, FieldPath, InboxMessage, IncomingMessage, InvalidFieldPath, InvalidPadding,
    MessageParser, Padding, Rejection, RejectionCode, TOPIC_BYTES,
};
pub use ports::{
    Contact, MessageDeleter, MessageIndex, MessageReader, MessageWriter, Order, Range,
    SourceTracker, Sources, StoreMessageError, Stored,
};
pub use source_tracker::HourlySourceTracker;
