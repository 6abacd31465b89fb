//! Keys of items in the main table's indexes.
//!
//! | index | partition key | sort key | items |
//! |---|---|---|---|
//! | `Listed` | `SENSORS#{shard}`, `CLIENTS#{shard}` | id | all sensors, all clients |
//! | `Listed` | `DELIVERIES#{sensor}` | order and client | deliveries of a sensor |
//! | `Fleet` | `SHADOWS#{shard}` | id and name | shadows, until they are deleted |
//! | `ByLocation` | `CITY#{city}` | `LOCATION#{building}#{floor}#{room}#{id}` | sensors |
//! | `Live` | `LIVE#{shard}` | time of the next check | states of sensors that may become lost |
//! | `Live` | `PURGE#{shard}` | time of the next step | purges of sensors and of shadows |

/// Shards of all sensors and of all clients. Only registrations and removals write them. A shard takes 1,000 a second, so
/// eight take a million sensors in little more than two minutes. More shards would make every listing dearer, since it reads
/// all of them, and a table with entries cannot get more: a listing of one id reads the shard of that id alone.
pub const LIST_SHARDS: u32 = 8;
pub const CITY: &str = "CITY#";
pub const LOCATION: &str = "LOCATION#";

pub fn deliveries(sensor: &str) -> String {
    format!("DELIVERIES#{sensor}")
}

pub fn sensors(shard: u32) -> String {
    format!("SENSORS#{shard}")
}

pub fn clients(shard: u32) -> String {
    format!("CLIENTS#{shard}")
}

pub fn fleet_shard(shard: u32) -> String {
    format!("SHADOWS#{shard}")
}

pub fn live_shard(shard: u32) -> String {
    format!("LIVE#{shard}")
}

pub fn purge_shard(shard: u32) -> String {
    format!("PURGE#{shard}")
}
