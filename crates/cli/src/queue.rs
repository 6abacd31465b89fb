//! Putting a message in a queue, as the systems do that feed the functions.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};

use crate::error::CliError;

/// Sends to a queue by its name or its URL and gives the queue's id of the message. In a FIFO queue the
/// messages of one group stay in order.
pub(crate) async fn send(
    client: &Client,
    queue: &str,
    body: &str,
    group: &str,
) -> Result<String, CliError> {
    let url = if queue.contains("://") {
        queue.to_owned()
    } else {
        let found = client.get_queue_url().queue_name(queue).send().await;
        let url = found.map_err(|error| failure(queue, &error))?.queue_url;
        url.ok_or_else(|| CliError::unavailable(format!("SQS: the queue {queue} has no URL")))?
    };
    let mut call = client.send_message().message_body(body);
    if url.ends_with(".fifo") {
        call = call
            .message_group_id(group)
            .message_deduplication_id(uuid::Uuid::new_v4());
    }
    let sent = call.queue_url(url).send().await;
    let id = sent.map_err(|error| failure(queue, &error))?.message_id;
    id.ok_or_else(|| CliError::unavailable("SQS: the message has no id"))
}

fn failure<E: ProvideErrorMetadata>(queue: &str, error: &SdkError<E>) -> CliError {
    let what = match error {
        SdkError::TimeoutError(_) => "no answer in time".to_owned(),
        SdkError::DispatchFailure(_) => "no connection; is `antumbra local` running?".to_owned(),
        SdkError::ServiceError(_) => {
            let code = error.code().unwrap_or("refused");
            let message = error.message().unwrap_or_default();
            format!("{code}: {message}")
                .trim_end_matches(": ")
                .to_owned()
        }
        _ => "the call could not be made; is the AWS configuration complete?".to_owned(),
    };
    CliError::unavailable(format!("SQS, queue {queue}: {what}"))
}
