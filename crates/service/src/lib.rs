//! Use cases of Antumbra and the ports they need. No AWS.
//!
//! One module per noun. A port is a small trait whose documentation states the law every
//! implementation keeps; adapters implement ports, functions wire them.

pub mod access;
pub mod api;
pub mod backoff;
pub mod clients;
pub mod clock;
pub mod deliveries;
mod fnv;
pub mod history;
pub mod idempotency;
pub mod inbox;
pub mod liveness;
pub mod notifications;
pub mod paging;
pub mod purges;
pub mod quarantine;
pub mod redrive;
pub mod sensors;
#[warn(missing_docs)]
pub mod shadows;
pub mod store;
pub mod text;

pub use fnv::shard;
