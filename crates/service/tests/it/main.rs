//! The use cases through their public interface.
#![allow(clippy::unwrap_used)]

mod dispatch;
mod imports;
mod inbox;
mod ingest_watermark;
mod quarantine;
mod sensors;
mod signal_message;
mod stale_reads;
mod updates;
mod webhook_bodies;
mod whole;
mod writers;
