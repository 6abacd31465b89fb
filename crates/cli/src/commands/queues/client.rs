//! One SQS queue: receiving, releasing and moving its messages.

use antumbra_registration::Queue;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, MessageSystemAttributeName, QueueAttributeName,
};

use super::route::FailedMessage;
use crate::error::{CliError, chain};

/// Visibility timeout of received messages in seconds. After a crash they reappear by then.
const VISIBILITY_SECONDS: i32 = 120;
/// Empty responses after which a queue counts as empty.
const EMPTY_RESPONSES: usize = 2;

pub(super) struct QueueClient {
    pub(super) client: Client,
    pub(super) url: String,
    pub(super) name: String,
}

impl QueueClient {
    /// Finds a queue by name, URL or ARN.
    pub(super) async fn open(client: &Client, queue: &str) -> Result<QueueClient, CliError> {
        let url = url(client, queue).await?;
        let name = url.rsplit('/').next().unwrap_or_default().to_owned();
        let client = client.clone();
        Ok(QueueClient { client, url, name })
    }

    pub(super) fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }

    /// Receives up to ten messages, hidden from other consumers for a while.
    pub(super) async fn receive(&self) -> Result<Vec<FailedMessage>, CliError> {
        let mut empty = 0;
        while empty < EMPTY_RESPONSES {
            let received = self
                .client
                .receive_message()
                .queue_url(&self.url)
                .max_number_of_messages(10)
                .visibility_timeout(VISIBILITY_SECONDS)
                .wait_time_seconds(1)
                .message_attribute_names("All")
                .message_system_attribute_names(MessageSystemAttributeName::All)
                .send()
                .await
                .map_err(|error| unavailable(&error))?;
            let received = received.messages.unwrap_or_default();
            if !received.is_empty() {
                return Ok(received.into_iter().map(FailedMessage::new).collect());
            }
            empty += 1;
        }
        Ok(Vec::new())
    }

    /// Receives messages and makes them visible again.
    pub(super) async fn peek(&self, limit: usize) -> Result<Vec<FailedMessage>, CliError> {
        let mut messages = Vec::new();
        let result = loop {
            match self.receive().await {
                Ok(received) if received.is_empty() => break Ok(()),
                Ok(received) => messages.extend(received),
                Err(error) => break Err(error),
            }
            if messages.len() >= limit {
                break Ok(());
            }
        };
        let receipts: Vec<&str> = messages.iter().map(|one| one.receipt.as_str()).collect();
        self.release(&receipts).await?;
        result?;
        messages.truncate(limit);
        Ok(messages)
    }

    /// Makes received messages visible again.
    pub(super) async fn release(&self, receipts: &[&str]) -> Result<(), CliError> {
        for ten in receipts.chunks(10) {
            let entries = ten.iter().enumerate().map(|(at, receipt)| {
                ChangeMessageVisibilityBatchRequestEntry::builder()
                    .id(at.to_string())
                    .receipt_handle(*receipt)
                    .visibility_timeout(0)
                    .build()
                    .map_err(CliError::failed)
            });
            self.client
                .change_message_visibility_batch()
                .queue_url(&self.url)
                .set_entries(Some(entries.collect::<Result<_, _>>()?))
                .send()
                .await
                .map_err(|error| unavailable(&error))?;
        }
        Ok(())
    }

    pub(super) async fn delete(&self, message: &FailedMessage) -> Result<(), CliError> {
        self.client
            .delete_message()
            .queue_url(&self.url)
            .receipt_handle(&message.receipt)
            .send()
            .await
            .map(drop)
            .map_err(|error| unavailable(&error))
    }

    /// Sends a message to another queue with its original attributes.
    pub(super) async fn send(&self, message: &FailedMessage, queue: &str) -> Result<(), String> {
        let url = url(&self.client, queue)
            .await
            .map_err(|error| error.reason)?;
        let fifo = url.ends_with(".fifo");
        let attributes = message.original_attributes();
        let mut call = self
            .client
            .send_message()
            .queue_url(url)
            .message_body(&message.body)
            .set_message_attributes((!attributes.is_empty()).then_some(attributes));
        if fifo {
            let group = message.group.as_deref().unwrap_or(&message.id);
            // The original deduplication id would make SQS drop the message for five minutes. This one is new,
            // and the same for every attempt.
            let original = message.deduplication.as_deref().unwrap_or_default();
            let mut id = format!("{}.{original}", message.id);
            id.truncate(128);
            call = call.message_group_id(group).message_deduplication_id(id);
        }
        let sent = call.send().await;
        sent.map(drop).map_err(|error| describe(&error))
    }

    /// Returns the approximate number of messages.
    pub(super) async fn count(&self) -> Result<u64, CliError> {
        use QueueAttributeName::ApproximateNumberOfMessages as Visible;
        let response = self
            .client
            .get_queue_attributes()
            .queue_url(&self.url)
            .attribute_names(Visible)
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        let count = response
            .attributes
            .as_ref()
            .and_then(|all| all.get(&Visible));
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    /// Lets SQS move all dead letters back. Returns false where SQS does not support it, as emulators.
    pub(super) async fn redrive_by_sqs(&self) -> Result<bool, CliError> {
        use QueueAttributeName::QueueArn;
        let response = self
            .client
            .get_queue_attributes()
            .queue_url(&self.url)
            .attribute_names(QueueArn)
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        let arn = response
            .attributes
            .as_ref()
            .and_then(|all| all.get(&QueueArn));
        let Some(arn) = arn else { return Ok(false) };
        let started = self.client.start_message_move_task().source_arn(arn);
        match started.send().await {
            Ok(_) => {}
            Err(error) => {
                let code = error.as_service_error().map(|error| error.meta().code());
                return match code.flatten() {
                    Some(code) if code.contains("UnsupportedOperation") => Ok(false),
                    _ => Err(unavailable(&error)),
                };
            }
        }
        loop {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            let tasks = self.client.list_message_move_tasks().source_arn(arn);
            let tasks = tasks.send().await.map_err(|error| unavailable(&error))?;
            let task = tasks.results.unwrap_or_default().into_iter().next();
            let Some(task) = task else {
                return Ok(true);
            };
            let moved = task.approximate_number_of_messages_moved;
            match task.status.as_deref() {
                Some("RUNNING") => anstream::eprintln!("{moved} messages moved so far"),
                Some("FAILED") => {
                    let reason = task.failure_reason.unwrap_or_default();
                    return Err(CliError::failed(format!(
                        "SQS stopped after {moved} messages: {reason}; use --one-by-one to move the rest"
                    )));
                }
                _ => return Ok(true),
            }
        }
    }
}

async fn url(client: &Client, queue: &str) -> Result<String, CliError> {
    let parsed = Queue::parse(queue);
    if let Queue::Url(url) = parsed {
        return Ok(url);
    }
    let account = parsed.account().map(str::to_owned);
    let call = client.get_queue_url().queue_name(parsed.name());
    let call = call.set_queue_owner_aws_account_id(account);
    let found = call.send().await.map_err(|error| {
        let missing = error
            .as_service_error()
            .is_some_and(|error| error.is_queue_does_not_exist());
        match missing {
            true => CliError::not_found(format!("the queue {queue} does not exist")),
            false => unavailable(&error),
        }
    })?;
    found
        .queue_url
        .ok_or_else(|| CliError::unavailable(format!("SQS returned no URL for the queue {queue}")))
}

fn unavailable<E>(error: &SdkError<E>) -> CliError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    CliError::unavailable(format!("SQS: {}", describe(error)))
}

/// Formats an SDK error for the terminal.
fn describe<E>(error: &SdkError<E>) -> String
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    match error {
        SdkError::TimeoutError(_) => "the call timed out".to_owned(),
        SdkError::DispatchFailure(_) => {
            "cannot connect; for the local stack, start `antumbra local`".to_owned()
        }
        SdkError::ResponseError(_) => "the response could not be parsed".to_owned(),
        SdkError::ServiceError(_) => match (error.code(), error.message()) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (code, message) => code.or(message).unwrap_or("service error").to_owned(),
        },
        _ => chain(error),
    }
}
