use antumbra_publish::{queue_error, queue_url};
use aws_sdk_sqs::Client;

use crate::error::CliError;

/// Sends to a queue, given by name, URL or ARN, and returns the SQS message id. `group` applies to FIFO queues.
pub(crate) async fn send_message(
    client: &Client,
    queue: &str,
    body: &str,
    group: &str,
) -> Result<String, CliError> {
    let url = queue_url(client, queue).await?;
    let mut call = client.send_message().message_body(body);
    if url.ends_with(".fifo") {
        call = call
            .message_group_id(group)
            .message_deduplication_id(uuid::Uuid::new_v4());
    }
    let sent = call.queue_url(url).send().await;
    let id = sent.map_err(|error| queue_error(&error))?.message_id;
    id.ok_or_else(|| CliError::unavailable("SQS returned no message id"))
}
