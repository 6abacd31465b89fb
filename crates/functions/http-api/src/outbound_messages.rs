//! Messages that wait in the outbound queue. They are counted, never read: reading would hide them from the system that
//! takes them to the devices.

use antumbra_publish::LazyClient;
use antumbra_publish::SqsFailedQueue;
use antumbra_service::redrive::QueueError;
use aws_sdk_sqs::Client;

pub struct OutboundMessages {
    pub sqs: LazyClient<Client>,
    pub url: String,
}

impl OutboundMessages {
    /// Returns about how many messages wait, and how many were received and not deleted yet.
    pub async fn count(&self) -> Result<(u64, u64), QueueError> {
        let queue = SqsFailedQueue::open(&self.sqs, &self.url).await?;
        let depth = queue.depth().await?;
        Ok((depth.visible, depth.hidden))
    }

    /// Returns the name of the queue.
    pub fn name(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or_default()
    }
}
