//! Every bound of this crate, in one place.

/// Bytes of a stream event that are read at all. Lambda hands over 6 MB at most.
pub const EVENT_BYTES: usize = 16 * 1024 * 1024;
/// Records in one stream event: the largest batch an event source mapping can be set to.
pub const RECORDS: usize = 10_000;
/// Containers within containers in an image, the item itself included. DynamoDB stores half as many.
pub const IMAGE_DEPTH: usize = 64;
/// Key attributes of a record: partition and sort key.
pub const KEY_ATTRIBUTES: usize = 2;
/// Bytes of a signal's text. Four members, of which only a text value can be long.
pub const SIGNAL_BYTES: usize = 8 * 1024;
/// Characters of a refused value that an error shows.
pub const SHOWN_CHARS: usize = 40;
/// The first nanosecond after 1970 that no time has which is ordered by a year of four digits: the year
/// 10000.
pub const TIME_END_NANOSECONDS: i128 = 253_402_300_800 * 1_000_000_000;
/// Bytes of a rule's event that are read at all. Lambda queues at most 1 MiB for an asynchronous call.
pub const RULE_EVENT_BYTES: usize = 1024 * 1024;
/// Bytes of an MQTT payload, of requests and answers alike: what AWS IoT calls 128 KB.
pub const REQUEST_BYTES: usize = 128 * 1024;
/// Bytes of an MQTT topic.
pub const TOPIC_BYTES: usize = 256;
/// Slashes in an MQTT topic.
pub const TOPIC_SLASHES: usize = 7;
/// Characters of a request's token.
pub const TOKEN_CHARS: usize = 128;
/// Bytes of what a request to a shadow calls itself.
pub const CLIENT_TOKEN_BYTES: usize = 64;
