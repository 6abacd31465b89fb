//! All limits of registrations.

/// Maximum bytes of one registration's file.
pub const FILE_BYTES: usize = 64 * 1024;
/// Maximum bytes of a name.
pub const NAME_BYTES: usize = 128;
/// Maximum bytes of the text of a key's regular expression.
pub const KEY_BYTES: usize = 2 * 1024;
/// Maximum bytes of the automaton that a key's regular expression compiles to.
pub const KEY_AUTOMATON_BYTES: usize = 1024 * 1024;
/// Maximum depth of nested groups in a key's regular expression.
pub const KEY_NESTING: u32 = 64;
/// Maximum bytes of the path of a leaf condition.
pub const LEAF_PATH_BYTES: usize = 1024;
/// Maximum alternatives of a pattern after expanding every `$or`.
pub const PATTERN_ALTERNATIVES: usize = 1_000;
/// Maximum conditions in all alternatives together.
pub const PATTERN_CONDITIONS: usize = 10_000;
/// Maximum delay of a message in SQS, in seconds.
pub const SQS_DELAY_SECONDS: u32 = 900;
/// Maximum message attributes of a registration. SQS allows ten; every notification has four.
pub const ATTRIBUTES: usize = 6;
/// Maximum characters of the name of a message attribute.
pub const ATTRIBUTE_NAME_CHARACTERS: usize = 256;
/// Maximum characters of an SNS subject.
pub const SUBJECT_CHARACTERS: usize = 100;
/// Maximum characters of an EventBridge detail type.
pub const DETAIL_TYPE_CHARACTERS: usize = 128;
/// Maximum bytes of an MQTT topic in AWS IoT.
pub const TOPIC_BYTES: usize = 256;
/// Maximum slashes of an MQTT topic in AWS IoT.
pub const TOPIC_SLASHES: usize = 7;
