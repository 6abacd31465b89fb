//! Limits of MQTT topics and payloads in AWS IoT Core.
//!
//! The local stack's broker has the same limits, so that a message that passes there passes in production.

use antumbra_service::notifications::Message;

const TOPIC_BYTES: usize = 256;
const TOPIC_SLASHES: usize = 7;
/// Maximum payload bytes: 128 KB in the documentation of IoT Core.
pub(crate) const PAYLOAD_BYTES: usize = 128 * 1024;
/// The highest quality of service: at least once.
const MAX_QOS: u8 = 1;

/// Returns the topic if the message can be published there, or the reason why not.
pub(crate) fn checked_topic<'a>(
    message: &Message,
    topic: Option<&'a str>,
) -> Result<&'a str, String> {
    let bytes = message.body.len();
    if bytes > PAYLOAD_BYTES {
        return Err(format!(
            "the message has {bytes} bytes, the limit is {PAYLOAD_BYTES}"
        ));
    }
    if message.qos > MAX_QOS {
        return Err(format!("QoS {} is more than {MAX_QOS}", message.qos));
    }
    check(topic)
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

/// The part of a topic that the limits apply to: for Basic Ingest the part after the rule's name, for other reserved
/// topics none (their services have their own limits), else all of it.
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
    fn topics_beyond_a_limit_are_rejected() {
        let seven = "a/".repeat(7) + "b";
        let eight = "a/".repeat(8) + "b";
        let long = "x".repeat(256);
        for valid in [
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
            assert_eq!(check(Some(valid)), Ok(valid));
        }
        for (invalid, reason) in [
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
            let error = check(Some(invalid)).unwrap_err();
            assert!(error.contains(reason), "{invalid:?}: {error}");
        }
        assert!(check(None).is_err());
    }
}
