//! Topics of shadow requests: `shadow/{thing}/get`, `shadow/{thing}/name/{name}/update` and so on. The local stack
//! also accepts AWS's own topics below `$aws/things/{thing}/shadow`.
//!
//! Ids and names are percent-encoded: `/`, `+`, `#`, `%` and control characters become `%` and two hexadecimal
//! digits, as in topics of notifications. Only this form is accepted, so each shadow has exactly one topic.

use antumbra_shadow::word_enum;

/// The shadow of a topic without a name.
const UNNAMED: &str = "main";

word_enum! {
    pub enum Operation as "request to a shadow" {
        Get = "get",
        Update = "update",
        Delete = "delete",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowTopic<'a> {
    /// The part before the operation.
    pub prefix: &'a str,
    pub operation: Operation,
    /// The thing's id and the shadow's name, or why they are invalid.
    pub shadow: Result<(String, String), String>,
    /// The topic contains the shadow's name.
    pub named: bool,
}

/// The topic is not a request to a shadow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the topic of a request to a shadow")]
pub struct NotAShadowTopic;

impl<'a> ShadowTopic<'a> {
    /// Parses a topic.
    pub fn parse(topic: &'a str) -> Result<ShadowTopic<'a>, NotAShadowTopic> {
        let levels: Vec<&str> = topic.split('/').collect();
        let (thing, name, word) = match levels[..] {
            ["shadow", thing, word] | ["$aws", "things", thing, "shadow", word] => {
                (thing, None, word)
            }
            ["shadow", thing, "name", name, word]
            | ["$aws", "things", thing, "shadow", "name", name, word] => (thing, Some(name), word),
            _ => return Err(NotAShadowTopic),
        };
        let operation = word.parse().map_err(|_| NotAShadowTopic)?;
        let shadow = unescape_level("thing", thing).and_then(|thing| match name {
            None => Ok((thing, UNNAMED.to_owned())),
            Some(UNNAMED) => Err(format!(
                "The shadow {UNNAMED} is the one without a name, and has no topics with one"
            )),
            Some(name) => Ok((thing, unescape_level("shadow", name)?)),
        });
        Ok(ShadowTopic {
            prefix: &topic[..topic.len() - word.len() - 1],
            operation,
            shadow,
            named: name.is_some(),
        })
    }

    /// Returns the topic of the response; the outcome is `accepted` or `rejected`.
    pub fn response_topic(&self, outcome: &str) -> String {
        format!("{}/{}/{outcome}", self.prefix, self.operation)
    }
}

/// Percent-encodes a value as a topic level.
pub fn escape_level(value: &str) -> String {
    let mut level = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '/' | '+' | '#' | '%') || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                level.push_str(&format!("%{byte:02X}"));
            }
        } else {
            level.push(c);
        }
    }
    level
}

fn unescape_level(what: &str, level: &str) -> Result<String, String> {
    let wrong = || format!("Invalid {what} name in the topic");
    let mut bytes = Vec::with_capacity(level.len());
    let mut rest = level.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = behind;
            continue;
        }
        let digits = behind.get(..2).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = &behind[2..];
    }
    let value = String::from_utf8(bytes).map_err(|_| wrong())?;
    if value.is_empty() || escape_level(&value) != level {
        return Err(wrong());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shadow_has_one_topic() {
        for id in ["lamp-7", "a/b", "100%", "%2F", "My House#1", "å\u{1}", "+"] {
            let topic = format!("shadow/{}/update", escape_level(id));
            let parsed = ShadowTopic::parse(&topic).unwrap();
            assert_eq!(parsed.shadow, Ok((id.to_owned(), "main".to_owned())));
        }
        for level in [
            "", "%", "%2", "%2f", "%41", "%FF", "%zz", "a+b", "a#", "%+1",
        ] {
            let topic = format!("shadow/{level}/get");
            let parsed = ShadowTopic::parse(&topic).unwrap();
            assert!(parsed.shadow.is_err(), "{level}");
            assert_eq!(
                parsed.response_topic("rejected"),
                format!("shadow/{level}/get/rejected")
            );
        }
        let main = ShadowTopic::parse("shadow/lamp/name/main/get").unwrap();
        assert!(main.shadow.is_err());
    }

    #[test]
    fn topics_of_aws_are_accepted() {
        let topic = "$aws/things/lamp/shadow/name/light/delete";
        let parsed = ShadowTopic::parse(topic).unwrap();
        assert_eq!(parsed.shadow, Ok(("lamp".to_owned(), "light".to_owned())));
        assert_eq!(parsed.operation, Operation::Delete);
        assert_eq!(
            parsed.response_topic("accepted"),
            format!("{topic}/accepted")
        );
        let topic = "$aws/things/lamp/shadow/get";
        let parsed = ShadowTopic::parse(topic).unwrap();
        assert_eq!(parsed.shadow, Ok(("lamp".to_owned(), "main".to_owned())));
    }

    #[test]
    fn other_topics_are_rejected() {
        for topic in [
            "",
            "shadow",
            "shadow/lamp",
            "shadow/lamp/put",
            "shadow/lamp/get/accepted",
            "shadow/a/b/get",
            "shadow/lamp/name/get",
            "shadow/lamp/nom/light/get",
            "shadow/lamp/name/a/b/get",
            "/shadow/lamp/get",
            "shadow/lamp/get/",
            "$aws/things/lamp/get",
            "$aws/things/lamp/shadow/update/delta",
            "Shadow/lamp/get",
        ] {
            assert!(ShadowTopic::parse(topic).is_err(), "{topic}");
        }
    }
}
