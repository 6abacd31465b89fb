//! What crosses a boundary: events of streams and queues and MQTT requests in, notifications and
//! answers out.
//!
//! Pure: no clock, no I/O, no AWS types. In reading order:
//!
//! - [`stream`]: the bytes of a stream event to records and images
//! - [`item`]: a record of the main table to the documents that changed
//! - [`notification`]: a change to the message that targets get
//! - [`sqs`] and [`rabbitmq`]: the bytes of a queue's event to its messages
//! - [`signal`]: the text of a message to what a sensor says
//! - [`rules`], [`rule`]: which MQTT messages reach which function, and as what
//! - [`request`], [`answer`]: what is asked of the inbox over MQTT, and what it answers
//! - [`shadow`]: shadows over MQTT, in the vocabulary of AWS IoT Device Shadow
//! - [`limits`]: every bound, in one place

pub mod answer;
pub mod item;
pub mod limits;
pub mod notification;
pub mod rabbitmq;
pub mod request;
pub mod rule;
pub mod rules;
pub mod shadow;
pub mod signal;
pub mod sqs;
pub mod stream;
