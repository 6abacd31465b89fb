//! Hiding received messages, by `ChangeMessageVisibility`. The role needs that permission.

use std::time::Duration;

use antumbra_service::deliveries::MessageVisibility;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::ProvideErrorMetadata as _;

use crate::LazyClient;

/// Maximum time: SQS allows 12 hours from the receipt, of which some have passed.
const MAX_DELAY: Duration = Duration::from_secs(12 * 3600 - 300);

#[derive(Debug, Clone)]
pub struct SqsVisibility {
    client: LazyClient<Client>,
    urls: Vec<String>,
}

impl SqsVisibility {
    pub fn new(
        client: impl Into<LazyClient<Client>>,
        urls: impl IntoIterator<Item = String>,
    ) -> SqsVisibility {
        SqsVisibility {
            client: client.into(),
            urls: urls.into_iter().collect(),
        }
    }

    /// Finds the URL by the queue's name, which ends both URL and ARN.
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
            .ok_or_else(|| format!("{queue_arn} is not one of the configured queues"))?;
        // Round up to whole seconds: a delivery must not be sent too early.
        let by = by.min(MAX_DELAY);
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
                let code = error.code().unwrap_or("no response");
                format!("ChangeMessageVisibility: {code}")
            })
    }
}
