//! When a message comes back: `ChangeMessageVisibility`. The role needs that permission.

use std::time::Duration;

use antumbra_service::deliveries::MessageVisibility;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;

/// The longest that SQS hides a message, counted from its receipt; a little less, as some time has passed.
const LONGEST: Duration = Duration::from_secs(12 * 3600 - 300);

/// Hides messages of some queues.
#[derive(Debug, Clone)]
pub struct SqsVisibility {
    client: Client,
    urls: Vec<String>,
}

impl SqsVisibility {
    /// Of the queues with these URLs.
    pub fn new(client: Client, urls: impl IntoIterator<Item = String>) -> SqsVisibility {
        SqsVisibility {
            client,
            urls: urls.into_iter().collect(),
        }
    }

    /// A queue's URL and ARN end in its name.
    fn url(&self, arn: &str) -> Option<&str> {
        let name = arn.rsplit(':').next()?;
        let named = |url: &&String| url.rsplit('/').next() == Some(name);
        self.urls.iter().find(named).map(String::as_str)
    }
}

impl MessageVisibility for SqsVisibility {
    async fn postpone(&self, queue_arn: &str, receipt: &str, by: Duration) -> Result<(), String> {
        let url = self
            .url(queue_arn)
            .ok_or_else(|| format!("{queue_arn} is none of the queues that are known"))?;
        // Whole seconds, up: a delivery is never sent sooner than it was asked for.
        let by = by.min(LONGEST);
        let seconds = by.as_secs() + u64::from(by.subsec_nanos() > 0);
        self.client
            .change_message_visibility()
            .queue_url(url)
            .receipt_handle(receipt)
            .visibility_timeout(i32::try_from(seconds).unwrap_or(i32::MAX))
            .send()
            .await
            .map(drop)
            .map_err(|error| {
                let code = error.code().unwrap_or("no answer");
                format!("ChangeMessageVisibility: {code}")
            })
    }
}
