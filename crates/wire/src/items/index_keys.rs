//! Keys of items in the main table's indexes.
//!
//! | index | partition key | sort key | items |
//! |---|---|---|---|
//! | `Listed` | `SENSORS`, `CLIENTS` | id | all sensors, all clients |
//! | `Listed` | `DELIVERIES#{sensor}` | order and client | deliveries of a sensor |
//! | `ByLocation` | `CITY#{city}` | `LOCATION#{building}#{floor}#{room}#{id}` | sensors |
//! | `Live` | `LIVE#{shard}` | time of the next check | states of sensors that may become lost |
//! | `Live` | `PURGE` | time of the next step | purges |

/// Partition of all sensors.
pub const SENSORS: &str = "SENSORS";
/// Partition of all clients.
pub const CLIENTS: &str = "CLIENTS";
/// Partition of all purges.
pub const PURGES: &str = "PURGE";
/// Start of a city's partition key.
pub const CITY: &str = "CITY#";
/// Start of a location's sort key.
pub const LOCATION: &str = "LOCATION#";

/// Partition of a sensor's deliveries.
pub fn deliveries(sensor: &str) -> String {
    format!("DELIVERIES#{sensor}")
}

/// Partition of a shard of sensor states.
pub fn live_shard(shard: u32) -> String {
    format!("LIVE#{shard}")
}
