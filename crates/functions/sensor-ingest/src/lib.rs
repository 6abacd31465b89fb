//! Sensor ingest: what sensors say, from SQS or from RabbitMQ through Amazon MQ, to their state and their
//! readings.
//!
//! [`Ingest::handle`] takes the bytes of an event and answers which messages are to be delivered again.
//! It reads the event ([`Arrival`]), decides of each message what it is (`plan`, pure), writes states,
//! then readings, puts away what can never be taken in, notes how far the queue was read, and only then
//! answers. Everything it does may be done twice: a crash anywhere is healed by the next delivery.

mod arrival;
mod ingest;
mod outcome;
mod plan;
mod redelivered;
mod rules;
mod settings;

pub use arrival::{Arrival, EventError};
pub use ingest::Ingest;
pub use outcome::{Handled, Unfinished};
pub use rules::{Admission, IdPattern, InvalidPattern, Newcomer, Rules};
pub use settings::Settings;

/// The function's name, in metrics and on the local stack.
pub const NAME: &str = "sensor-ingest";
