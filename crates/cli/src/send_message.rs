//! Sends a message to an SQS queue.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};

use crate::error::CliError;

/// Sends to a queue, given by name or URL, and returns the SQS message id. `group` applies to FIFO queues.
pub(crate) async fn send_message(
    client: &Client,
    queue: &str,
    body: &str,
    group: &str,
) -> Result<String, CliError> {
    let url = if queue.contains("://") {
        queue.to_owned()
    } else {
        let found = client.get_queue_url().queue_name(queue).send().await;
        let url = found.map_err(|error| sqs_error(queue, &error))?.queue_url;
        url.ok_or_else(|| {
            CliError::unavailable(format!("SQS returned no URL for the queue {queue}"))
        })?
    };
    let mut call = client.send_message().message_body(body);
    if url.ends_with(".fifo") {
        call = call
            .message_group_id(group)
            .message_deduplication_id(uuid::Uuid::new_v4());
    }
    let sent = call.queue_url(url).send().await;
    let id = sent.map_err(|error| sqs_error(queue, &error))?.message_id;
    id.ok_or_else(|| CliError::unavailable("SQS returned no message id"))
}

fn sqs_error<E: ProvideErrorMetadata>(queue: &str, error: &SdkError<E>) -> CliError {
    let reason = match error {
        SdkError::TimeoutError(_) => "the call timed out".to_owned(),
        SdkError::DispatchFailure(_) => {
            "cannot connect; for the local stack, start `antumbra local`".to_owned()
        }
        SdkError::ServiceError(_) => {
            let code = error.code().unwrap_or("service error");
            let message = error.message().unwrap_or_default();
            format!("{code}: {message}")
                .trim_end_matches(": ")
                .to_owned()
        }
        _ => "the request could not be made; check the AWS configuration".to_owned(),
    };
    CliError::unavailable(format!("SQS, queue {queue}: {reason}"))
}
