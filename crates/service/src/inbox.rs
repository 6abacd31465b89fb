//! The inbox: messages from a queue, stored by source until they are deleted.
//!
//! In reading order: [`Source`] and [`MessageId`] identify a message, [`Body`] is its content; [`MessageParser`] makes
//! a message from the text of a queue's message, or rejects it; the ports, one for each role ([`MessageWriter`],
//! [`SourceTracker`], [`MessageReader`], [`MessageIndex`], [`MessageDeleter`], [`Sources`]);
//! [`HourlySourceTracker`], which saves calls; [`span`] and [`list`], which combine calls; and [`Outbound`], the other
//! direction: messages to devices.

mod body;
mod browse;
mod name;
mod outbound;
mod parser;
mod ports;
mod source_tracker;

pub use crate::paging::Page;
pub use body::Body;
pub use browse::{ListRequest, Span, list, shorten_page, span};
pub use name::{MESSAGE_ID_BYTES, MessageId, SOURCE_BYTES, Source};
pub use outbound::{Outbound, OutboundError, OutboundQueue};
pub use parser::{
    FieldPath, InboxMessage, IncomingMessage, InvalidFieldPath, InvalidPadding, MessageParser,
    Padding, RESPONSE_BYTES, Rejection, RejectionCode, TOPIC_BYTES,
};
pub use ports::{
    Contact, MessageDeleter, MessageIndex, MessageReader, MessageWriter, Order, Range,
    SourceTracker, Sources, StoreMessageError, Stored,
};
pub use source_tracker::{HourlySourceTracker, contact_hour};
