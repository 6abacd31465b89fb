//! Liveness: finding the sensors that fell silent, never too early and never twice.
//!
//! In reading order: [`ingest_watermark`] says until when everything that was sent has been taken in, and
//! [`sweep`](sweep()) finds those who were silent for too long by then. Both are asked once a minute.
//!
//! **Why a horizon and not the time.** A sensor may have spoken in time, and its signal still lie in the
//! queue: while the queue is behind, or the function that reads it is switched off, half a fleet would be
//! found lost for nothing. Neither the queue's figures nor a heartbeat of the function can tell a queue
//! that is empty from one that nobody reads. So the sweep sends a *marker* through the very queue that
//! signals come through, and the function that takes signals in notes when a marker was sent that it
//! came upon ([`IngestProgress`]). Until then, and no later, the silence of a sensor is a silence. A queue that
//! is behind holds the sweep back by exactly as much as it is behind; one that is idle brings the marker
//! back at once.
//!
//! The bound that follows: a sensor is found lost not before its deadline, and at most one period of the
//! sweep and its run after it, or after everything sent until its deadline has been taken in.
//!
//! Limits: brokers other than SQS, through which no marker is sent (there, the current time is the
//! watermark), and a signal that has to be delivered once more after the marker behind it was taken in;
//! see [`QueueProbe::settle`].

mod ingest_watermark;
mod sweep;

pub use ingest_watermark::{IngestProgress, QueueProbe, ingest_watermark};
pub use sweep::{Limits, SweepSummary, sweep};
