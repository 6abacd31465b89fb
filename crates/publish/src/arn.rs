//! The parts of an ARN that tell where to call.

/// An ARN, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arn<'a> {
    pub(crate) region: &'a str,
    pub(crate) account: &'a str,
    pub(crate) resource: &'a str,
}

impl<'a> Arn<'a> {
    /// The ARN of something of the given service, if the text is one.
    pub(crate) fn of(service: &str, text: &'a str) -> Option<Arn<'a>> {
        let mut parts = text.splitn(6, ':');
        let (arn, _partition, of) = (parts.next()?, parts.next()?, parts.next()?);
        let (region, account, resource) = (parts.next()?, parts.next()?, parts.next()?);
        let whole = arn == "arn" && of == service && !region.is_empty() && !resource.is_empty();
        whole.then_some(Arn {
            region,
            account,
            resource,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arn_is_taken_apart() {
        assert_eq!(
            Arn::of("sqs", "arn:aws:sqs:eu-west-1:123456789012:alerts.fifo"),
            Some(Arn {
                region: "eu-west-1",
                account: "123456789012",
                resource: "alerts.fifo"
            })
        );
        for other in [
            "alerts",
            "arn:aws:sns:eu-west-1:123456789012:alerts",
            "arn:aws:sqs:::alerts",
            "arn:aws:sqs:eu-west-1:123456789012:",
            "arn:aws:sqs:eu-west-1",
        ] {
            assert_eq!(Arn::of("sqs", other), None, "{other}");
        }
    }
}
