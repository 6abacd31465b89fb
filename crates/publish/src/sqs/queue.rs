//! What names a queue: its name, URL or ARN.

use crate::arn::Arn;

/// A queue as it was given. What is neither a URL nor the ARN of a queue is taken for a name: if it
/// is none, the service says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Queue {
    Name(String),
    Url {
        url: String,
        region: Option<String>,
    },
    Arn {
        name: String,
        account: String,
        region: String,
    },
}

impl Queue {
    pub(super) fn parse(text: &str) -> Queue {
        if text.starts_with("https://") || text.starts_with("http://") {
            return Queue::Url {
                url: text.to_owned(),
                region: region_of(text).map(str::to_owned),
            };
        }
        match Arn::of("sqs", text) {
            Some(arn) => Queue::Arn {
                name: arn.resource.to_owned(),
                account: arn.account.to_owned(),
                region: arn.region.to_owned(),
            },
            None => Queue::Name(text.to_owned()),
        }
    }

    /// The region it says it is in.
    pub(super) fn region(&self) -> Option<&str> {
        match self {
            Queue::Name(_) => None,
            Queue::Url { region, .. } => region.as_deref(),
            Queue::Arn { region, .. } => Some(region),
        }
    }

    /// Whether it is a FIFO queue, which its name says.
    pub(super) fn is_fifo(&self) -> bool {
        let (Queue::Name(name) | Queue::Url { url: name, .. } | Queue::Arn { name, .. }) = self;
        name.ends_with(".fifo")
    }
}

/// The region of one of AWS's own queue URLs, `https://sqs.<region>.amazonaws.com…/…`.
fn region_of(url: &str) -> Option<&str> {
    let host = url.strip_prefix("https://")?.split('/').next()?;
    let (region, domain) = host.strip_prefix("sqs.")?.split_once('.')?;
    domain.starts_with("amazonaws.com").then_some(region)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_named_in_three_ways() {
        let aws = "https://sqs.eu-west-1.amazonaws.com/123456789012/alerts.fifo";
        let china = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/alerts";
        let local = "http://127.0.0.1:9324/000000000000/alerts.fifo";
        for (text, region, fifo) in [
            ("alerts", None, false),
            ("alerts.fifo", None, true),
            (aws, Some("eu-west-1"), true),
            (china, Some("cn-north-1"), false),
            (local, None, true),
            ("https://sqs.example.org/alerts", None, false),
            (
                "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/a",
                None,
                false,
            ),
            (
                "arn:aws:sqs:eu-west-1:123456789012:alerts",
                Some("eu-west-1"),
                false,
            ),
            (
                "arn:aws:sqs:eu-west-1:123456789012:a.fifo",
                Some("eu-west-1"),
                true,
            ),
            ("arn:aws:sns:eu-west-1:123456789012:alerts", None, false),
        ] {
            let queue = Queue::parse(text);
            assert_eq!(queue.region(), region, "{text}");
            assert_eq!(queue.is_fifo(), fifo, "{text}");
        }
    }
}
