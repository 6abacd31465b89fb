//! Attribute names of shadow items.

use antumbra_shadow::State;

/// Number of writes of the item.
pub const VERSION: &str = "version";
/// Time of the last write, in nanoseconds since 1970. It increases with every write of the item.
pub const TIMESTAMP: &str = "timestamp";
/// Time zone that a writer named last.
pub const ZONE: &str = "tz";
/// Token that the last writer left.
pub const CLIENT_TOKEN: &str = "clientToken";
/// Time of the message that deleted the document, in nanoseconds since 1970. Such an item keeps its version and the
/// time of the write, and holds no document.
pub const DELETED_AT: &str = "deletedAt";
/// Time of the write before the delete, in nanoseconds since 1970; only in items of deleted documents.
pub const PREVIOUS_TIMESTAMP: &str = "previousTimestamp";
/// Time at which DynamoDB expires the item, in seconds since 1970; the same in every item that expires.
pub const TTL: &str = "ttl";
/// Leaves that the last write removed from the desired document because they are reported
/// ([`AcknowledgedLeaves`](antumbra_shadow::AcknowledgedLeaves)); missing for none.
pub const ACKNOWLEDGED: &str = "acknowledged";
pub const REPORTED: &str = "reported";
pub const DESIRED: &str = "desired";
pub const REPORTED_TIMES: &str = "reportedTimes";
pub const DESIRED_TIMES: &str = "desiredTimes";

/// Number of writes of times alone since the last write of a document; missing for none.
pub const TIMES_VERSION: &str = "timesVersion";
/// Partition of a shadow in the index `Fleet`.
pub const FLEET_SHARD: &str = "fleetShard";
/// Place of a shadow in its partition of the index `Fleet`.
pub const FLEET_KEY: &str = "fleetKey";

/// Returns the attribute that holds the times of a document's leaves.
pub const fn times_name(state: State) -> &'static str {
    match state {
        State::Reported => REPORTED_TIMES,
        State::Desired => DESIRED_TIMES,
    }
}
