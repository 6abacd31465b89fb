//! Liveness: finding the sensors that fell silent, never too early and never twice.
//!
//! In reading order: [`ingest_watermark`] returns the time up to which all sent signals have been ingested;
//! [`sweep`](sweep()) marks the sensors that had been silent for too long by then. Both run once a minute.
//!
//! **Why a watermark and not the current time.** A sensor may have sent its signal in time while the signal
//! still waits in the queue. If the queue is behind, or the function that reads it is disabled, half a fleet
//! would become lost by mistake. Neither the queue's metrics nor a heartbeat of the function can distinguish an
//! empty queue from one that nobody reads. So the sweep sends a *marker* through the same queue as signals, and
//! the ingest function records the sent time of each marker it receives ([`IngestProgress`]). A sensor's
//! silence counts only up to that time. A queue that is behind delays the sweep by exactly as much; an idle
//! queue returns the marker at once.
//!
//! Bound: a sensor becomes lost not before its deadline, and at most one sweep period and one sweep run after
//! it, or after everything sent until the deadline has been ingested.
//!
//! Many sensors are swept by several invocations at the same time, each with a group of the index's shards
//! ([`SweepGroup`]). What one does not reach in time is due for the next.
//!
//! Limits: no marker is sent through brokers other than SQS; there the current time is the watermark. A signal
//! that has to be delivered again after the marker behind it was ingested can be missed; see
//! [`QueueProbe::settle`].

mod ingest_watermark;
mod sweep;

use std::time::Duration;

/// Time between two sweeps, unless a deployment sets another.
pub const SWEEP_PERIOD: Duration = Duration::from_secs(60);

pub use ingest_watermark::{IngestProgress, QueueProbe, ingest_watermark};
pub use sweep::{InvalidGroup, Limits, SweepGroup, SweepSummary, sweep};
