//! ARNs and queue names: the one place that parses them.

/// The parts of an ARN `arn:partition:service:region:account:resource`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arn<'a> {
    pub region: &'a str,
    pub account: &'a str,
    pub resource: &'a str,
}

impl<'a> Arn<'a> {
    /// Parses the ARN of a resource of `service`; `None` if the text is anything else.
    ///
    /// ```
    /// use antumbra_registration::Arn;
    /// let arn = Arn::parse("sqs", "arn:aws:sqs:eu-west-1:123456789012:alerts.fifo").unwrap();
    /// assert_eq!((arn.region, arn.resource), ("eu-west-1", "alerts.fifo"));
    /// assert_eq!(Arn::parse("sns", "arn:aws:sqs:eu-west-1:123456789012:alerts"), None);
    /// ```
    pub fn parse(service: &str, text: &'a str) -> Option<Arn<'a>> {
        let parts: Vec<&str> = text.splitn(6, ':').collect();
        let ["arn", partition, of, region, account, resource] = parts[..] else {
            return None;
        };
        let valid = partition.starts_with("aws")
            && of == service
            && !region.is_empty()
            && account.len() == 12
            && account.bytes().all(|byte| byte.is_ascii_digit())
            && !resource.is_empty();
        valid.then_some(Arn {
            region,
            account,
            resource,
        })
    }
}

/// An SQS queue, by its name, URL or ARN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queue {
    Name(String),
    Url(String),
    Arn(String),
}

impl Queue {
    /// Distinguishes a URL, an ARN and a name. [`Queue::is_valid`] checks the name.
    pub fn parse(text: &str) -> Queue {
        if text.starts_with("https://") || text.starts_with("http://") {
            Queue::Url(text.to_owned())
        } else if Arn::parse("sqs", text).is_some() {
            Queue::Arn(text.to_owned())
        } else {
            Queue::Name(text.to_owned())
        }
    }

    /// The text it was parsed from.
    pub fn as_str(&self) -> &str {
        match self {
            Queue::Name(text) | Queue::Url(text) | Queue::Arn(text) => text,
        }
    }

    /// The queue's name: the resource of an ARN, the last segment of a URL's path.
    pub fn name(&self) -> &str {
        match self {
            Queue::Name(name) => name,
            Queue::Url(url) => url
                .splitn(4, '/')
                .nth(3)
                .and_then(|path| path.rsplit('/').next())
                .unwrap_or_default(),
            Queue::Arn(_) => self.arn().map_or("", |arn| arn.resource),
        }
    }

    /// The account that owns the queue, if it is given by its ARN.
    pub fn account(&self) -> Option<&str> {
        self.arn().map(|arn| arn.account)
    }

    /// The region of an ARN or of an AWS URL, `https://sqs.<region>.amazonaws.com…/…`.
    pub fn region(&self) -> Option<&str> {
        match self {
            Queue::Name(_) => None,
            Queue::Url(url) => {
                let host = url.strip_prefix("https://")?.split('/').next()?;
                let (region, domain) = host.strip_prefix("sqs.")?.split_once('.')?;
                domain.starts_with("amazonaws.com").then_some(region)
            }
            Queue::Arn(_) => self.arn().map(|arn| arn.region),
        }
    }

    /// Returns `true` if the name ends in `.fifo`.
    pub fn is_fifo(&self) -> bool {
        self.as_str().ends_with(".fifo")
    }

    /// Returns `true` if SQS accepts the name.
    pub fn is_valid(&self) -> bool {
        is_resource_name(self.name(), 80)
    }

    fn arn(&self) -> Option<Arn<'_>> {
        Arn::parse("sqs", self.as_str())
    }
}

/// Returns `true` if SQS and SNS accept the name: letters, digits, `-` and `_`, up to `limit` with an optional `.fifo`.
pub(crate) fn is_resource_name(text: &str, limit: usize) -> bool {
    let stem = text.strip_suffix(".fifo").unwrap_or(text);
    !stem.is_empty()
        && text.len() <= limit
        && stem
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_has_all_its_parts() {
        for invalid in [
            "alerts",
            "arn:aws:sns:eu-west-1:123456789012:alerts",
            "arn:aws:sqs:::alerts",
            "arn:aws:sqs:eu-west-1:1234:alerts",
            "arn:aws:sqs:eu-west-1:123456789012:",
            "arn:aws:sqs:eu-west-1",
        ] {
            assert_eq!(Arn::parse("sqs", invalid), None, "{invalid}");
        }
    }

    #[test]
    fn a_queue_is_given_by_name_url_or_arn() {
        let aws = "https://sqs.eu-west-1.amazonaws.com/123456789012/alerts.fifo";
        let china = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/alerts";
        let local = "http://127.0.0.1:9324/000000000000/alerts.fifo";
        let endpoint = "https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/1/alerts";
        for (text, region, fifo) in [
            ("alerts", None, false),
            ("alerts.fifo", None, true),
            (aws, Some("eu-west-1"), true),
            (china, Some("cn-north-1"), false),
            (local, None, true),
            ("https://sqs.example.org/alerts", None, false),
            (endpoint, None, false),
            (
                "arn:aws:sqs:eu-west-1:123456789012:alerts",
                Some("eu-west-1"),
                false,
            ),
        ] {
            let queue = Queue::parse(text);
            let name = if fifo { "alerts.fifo" } else { "alerts" };
            assert_eq!(
                (queue.region(), queue.is_fifo(), queue.name()),
                (region, fifo, name),
                "{text}"
            );
            assert!(queue.is_valid(), "{text}");
        }
        let topic = Queue::parse("arn:aws:sns:eu-west-1:123456789012:alerts");
        assert!(!topic.is_valid());
    }
}
