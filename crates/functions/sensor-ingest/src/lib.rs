//! Sensor ingest: what sensors say, from SQS or from RabbitMQ through Amazon MQ, to their state and their
//! readings.
//!
//! [`Ingest::handle`] takes the bytes of an event and answers which messages are to be delivered again.
//! It reads the event ([`IncomingSignal`]), decides of each message what it is (`plan`, pure), writes states,
//! then readings, puts away what can never be taken in, notes how far the queue was read, and only then
//! answers. Everything it does may be done twice: a crash anywhere is healed by the next delivery.

mod arrival;
mod config;
mod ingest;
mod plan;
mod redelivered;
mod rules;
mod summary;

pub use arrival::{EventError, IncomingSignal};
pub use config::Config;
pub use ingest::Ingest;
pub use rules::{AutoRegistration, IdPattern, InvalidPattern, Rules, UnknownSensorPolicy};
pub use summary::{BatchSummary, Unfinished};

/// The function's name, in metrics and on the local stack.
pub const NAME: &str = "sensor-ingest";
