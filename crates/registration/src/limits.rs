//! Every bound a registration keeps, in one place.

/// Bytes of one registration's file.
pub const FILE_BYTES: usize = 64 * 1024;
/// Bytes of a name.
pub const NAME_BYTES: usize = 128;
/// Bytes of a key's regular expression as written.
pub const KEY_BYTES: usize = 2 * 1024;
/// Bytes of the automaton that a key's regular expression compiles to.
pub const KEY_AUTOMATON_BYTES: usize = 1024 * 1024;
/// Levels of groups within groups in a key's regular expression.
pub const KEY_NESTING: u32 = 64;
/// Ways to satisfy one pattern, once every `$or` is multiplied out.
pub const PATTERN_ALTERNATIVES: usize = 1_000;
/// Conditions in all these ways together.
pub const PATTERN_CONDITIONS: usize = 10_000;
/// Longest delay of a message in SQS, in seconds.
pub const SQS_DELAY_SECONDS: u32 = 900;
/// Message attributes a registration may add; with our own four, these are the ten that SQS allows.
pub const ATTRIBUTES: usize = 6;
/// Characters of the name of a message attribute.
pub const ATTRIBUTE_NAME_CHARACTERS: usize = 256;
/// Characters of an SNS subject.
pub const SUBJECT_CHARACTERS: usize = 100;
/// Characters of an EventBridge detail type.
pub const DETAIL_TYPE_CHARACTERS: usize = 128;
/// Bytes of an MQTT topic, as AWS IoT allows.
pub const TOPIC_BYTES: usize = 256;
/// Slashes in an MQTT topic, as AWS IoT allows.
pub const TOPIC_SLASHES: usize = 7;
