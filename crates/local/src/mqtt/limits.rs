//! Limits of AWS IoT Core. Pure.

pub const MAX_PAYLOAD_BYTES: usize = 128 * 1024;

pub const MAX_TOPIC_BYTES: usize = 256;

/// Eight levels.
pub const MAX_TOPIC_SLASHES: usize = 7;

pub(super) const MAX_CLIENT_ID_BYTES: usize = 128;

/// A payload with its topic and room for properties. The decoder rejects larger packets without reading them.
pub(super) const MAX_PACKET_BYTES: u32 = 128 * 1024 + 16 * 1024;

/// Error of a message beyond the limits; IoT Core closes the connection of a device that sends one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitExceeded {
    #[error("the payload has {0} bytes, {MAX_PAYLOAD_BYTES} is the limit")]
    Payload(usize),
    #[error("the topic has {0} bytes, {MAX_TOPIC_BYTES} is the limit")]
    TopicBytes(usize),
    #[error("the topic has {0} slashes, {MAX_TOPIC_SLASHES} is the limit")]
    TopicSlashes(usize),
    #[error("the topic is empty or holds a wildcard")]
    TopicName,
}

pub(super) fn check(topic: &str, payload: &[u8]) -> Result<(), LimitExceeded> {
    let slashes = topic.bytes().filter(|&byte| byte == b'/').count();
    if topic.is_empty() || topic.contains(['+', '#', '\0']) {
        Err(LimitExceeded::TopicName)
    } else if topic.len() > MAX_TOPIC_BYTES {
        Err(LimitExceeded::TopicBytes(topic.len()))
    } else if slashes > MAX_TOPIC_SLASHES {
        Err(LimitExceeded::TopicSlashes(slashes))
    } else if payload.len() > MAX_PAYLOAD_BYTES {
        Err(LimitExceeded::Payload(payload.len()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_its_edge() {
        let long = "t".repeat(256);
        let large = vec![0; 128 * 1024];
        assert_eq!(check(&long, &large), Ok(()));
        assert_eq!(check("a/b/c/d/e/f/g/h", b""), Ok(()));
        assert_eq!(
            check("a/b/c/d/e/f/g/h/", b""),
            Err(LimitExceeded::TopicSlashes(8))
        );
        assert_eq!(
            check(&"t".repeat(257), b""),
            Err(LimitExceeded::TopicBytes(257))
        );
        let larger = vec![0; 128 * 1024 + 1];
        assert_eq!(check("t", &larger), Err(LimitExceeded::Payload(131_073)));
        for topic in ["", "a/+", "#", "a\0"] {
            assert_eq!(
                check(topic, b""),
                Err(LimitExceeded::TopicName),
                "{topic:?}"
            );
        }
    }
}
