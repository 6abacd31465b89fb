//! The inbox: messages that came in through a queue, kept by their source until somebody deletes them.
//!
//! In reading order: [`Source`] and [`MessageId`] name a message, [`Body`] is what was sent;
//! [`Intake`] makes a message of a queue's text, or says why it never can; the ports, one for each role
//! ([`Store`], [`Contacts`], [`Get`], [`Query`], [`Delete`], [`Sources`]); [`OncePerHour`], which spares
//! calls; and [`span`] and [`list`], which make several.
//!
//! Nothing here knows of queues, topics or tables. What a message may be is decided here alone, so that
//! every door refuses the same.

mod body;
mod browse;
mod contacts;
mod intake;
mod name;
mod ports;

pub use body::Body;
pub use browse::{ListRequest, Listed, Span, list, span};
pub use contacts::OncePerHour;
pub use intake::{
    ANSWER_BYTES, Arrival, FieldPath, InboxMessage, Intake, InvalidFieldPath, InvalidPadding,
    Padding, Reason, Refusal, TOPIC_BYTES,
};
pub use name::{InvalidName, MESSAGE_ID_BYTES, MessageId, SOURCE_BYTES, Source};
pub use ports::{
    Contact, Contacts, Delete, Get, Order, Query, Range, Sources, SourcesPage, Store,
    StoreMessageError, Stored,
};
