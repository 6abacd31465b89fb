//! Costs on AWS: prices of one day, the calls that each operation was counted to make, the monthly bill of a fleet, and the
//! capacity that it needs.
//!
//! `counts.json` is written by `scripts/write-costs`, which invokes the functions and counts. A test compares it.

mod bill;
pub mod capacity;
mod counts;
mod estimate;
mod prices;

pub use bill::Bill;
pub use capacity::Resource;
pub use counts::{Batched, Counts, Idle, Profile};
pub use estimate::{Estimate, Fleet, InvalidFleet, ServiceCost, Transport};
pub use prices::{PRICES_OF, PRICES_REGION, Service, Unit};
