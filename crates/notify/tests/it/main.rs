//! The listener through its public interface: events in, messages on recording channels and the response out.

#![allow(clippy::unwrap_used)]

mod batches;
mod bodies;
mod channels;
mod hostile;
mod isolation;
mod memory;
mod redrive;
mod resend;
mod scale;
mod shadows;
mod spill;
mod storm;
mod stream;
mod time;
