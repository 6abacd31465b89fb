//! All limits of this crate.

/// Bytes of a stream or queue event. Lambda sends at most 6 MB.
pub const EVENT_BYTES: usize = 16 * 1024 * 1024;
/// Records in one event: the largest batch size of an event source mapping.
pub const RECORDS: usize = 10_000;
/// Nesting depth of an image, including the item itself. DynamoDB allows half of it.
pub const IMAGE_DEPTH: usize = 64;
/// Key attributes of a record: partition and sort key.
pub const KEY_ATTRIBUTES: usize = 2;
/// Bytes of an AWS IoT rule's event. Lambda accepts at most 1 MiB for an asynchronous invocation.
pub const RULE_EVENT_BYTES: usize = 1024 * 1024;
/// Bytes of an MQTT payload, of requests and responses: the limit of AWS IoT.
pub const REQUEST_BYTES: usize = 128 * 1024;
pub const TOPIC_BYTES: usize = 256;
pub const TOPIC_SLASHES: usize = 7;
pub const TOKEN_CHARS: usize = 128;
pub const CLIENT_TOKEN_BYTES: usize = 64;
/// Bytes of a message id of SQS.
pub const QUEUE_ID_BYTES: usize = 100;
