//! Which MQTT topics AWS IoT Core lets a message be published to.
//!
//! The plain broker of the local stack is held to the same rules, so that what
//! passes there passes in production.

use antumbra_service::notifications::Message;

/// Bytes of a topic.
const TOPIC_BYTES: usize = 256;
/// Slashes in a topic.
const TOPIC_SLASHES: usize = 7;
/// Payload bytes: what IoT Core calls 128 KB.
pub(crate) const PAYLOAD_BYTES: usize = 128 * 1024;
/// The highest quality of service: at least once.
const QOS: u8 = 1;

/// The topic of a message that can be published, or why it cannot.
pub(crate) fn of(message: &Message) -> Result<&str, String> {
    let bytes = message.body.len();
    if bytes > PAYLOAD_BYTES {
        return Err(format!(
            "the message has {bytes} bytes, the limit is {PAYLOAD_BYTES}"
        ));
    }
    if message.qos > QOS {
        return Err(format!("QoS {} is more than {QOS}", message.qos));
    }
    check(message.topic.as_deref())
}

fn check(topic: Option<&str>) -> Result<&str, String> {
    let topic = topic.ok_or("the message has no topic")?;
    if topic.is_empty() {
        return Err("the topic is empty".to_owned());
    }
    if let Some(wrong) = topic.chars().find(|c| matches!(c, '+' | '#' | '\0')) {
        return Err(format!("topic {topic:?} has {wrong:?} in it"));
    }
    let Some(counted) = counted(topic) else {
        return Ok(topic);
    };
    if counted.len() > TOPIC_BYTES {
        return Err(format!(
            "topic {topic:?} has {} bytes, the limit is {TOPIC_BYTES}",
            counted.len()
        ));
    }
    let slashes = counted.matches('/').count();
    if slashes > TOPIC_SLASHES {
        return Err(format!(
            "topic {topic:?} has {slashes} slashes, the limit is {TOPIC_SLASHES}"
        ));
    }
    Ok(topic)
}

/// The part of a topic that the limits count: what follows the rule's name for
/// Basic Ingest, nothing for the other reserved topics, whose services have
/// limits of their own, else all of it.
fn counted(topic: &str) -> Option<&str> {
    match topic.strip_prefix("$aws/rules/") {
        Some(rule) => Some(rule.split_once('/').map_or("", |(_, rest)| rest)),
        None if topic.starts_with('$') => None,
        None => Some(topic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_held_to_the_limits() {
        let seven = "a/".repeat(7) + "b";
        let eight = "a/".repeat(8) + "b";
        let long = "x".repeat(256);
        for fine in [
            "shadows/DS-1/reported",
            "/",
            "$",
            "a b/ü",
            &seven,
            &long,
            &format!("$aws/rules/my_rule/{seven}"),
            &format!("$aws/rules/my_rule/{long}"),
            "$aws/rules/my_rule",
            "$aws/things/t/shadow/name/n/update/accepted/more",
        ] {
            assert_eq!(check(Some(fine)), Ok(fine));
        }
        for (wrong, reason) in [
            ("", "empty"),
            ("a/+/b", "'+'"),
            ("a/#", "'#'"),
            ("a\0", "'\\0'"),
            ("$aws/rules/r/#", "'#'"),
            (&eight, "8 slashes, the limit is 7"),
            (&format!("$aws/rules/r/{eight}"), "8 slashes"),
            (&format!("{long}x"), "257 bytes, the limit is 256"),
            (&"ü".repeat(129), "258 bytes"),
        ] {
            let said = check(Some(wrong)).unwrap_err();
            assert!(said.contains(reason), "{wrong:?}: {said}");
        }
        assert!(check(None).is_err());
    }
}
