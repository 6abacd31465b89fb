//! One queue: taking messages in hand, putting them back, sending them on.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, MessageSystemAttributeName, QueueAttributeName,
};

use super::route::FailedMessage;
use crate::error::CliError;

/// How long messages in hand are hidden from others, in seconds. After a crash they are back by then.
const IN_HAND: i32 = 120;
/// Times a queue may seem empty before it is.
const EMPTY: usize = 2;

/// A queue.
pub(super) struct QueueClient {
    pub(super) client: Client,
    pub(super) url: String,
    pub(super) name: String,
}

impl QueueClient {
    /// The queue with this name, URL or ARN.
    pub(super) async fn open(client: &Client, queue: &str) -> Result<QueueClient, CliError> {
        let url = url(client, queue).await?;
        let name = url.rsplit('/').next().unwrap_or_default().to_owned();
        let client = client.clone();
        Ok(QueueClient { client, url, name })
    }

    pub(super) fn is_fifo(&self) -> bool {
        self.name.ends_with(".fifo")
    }

    /// Up to ten messages, hidden from others for a while; none if there seem to be none.
    pub(super) async fn take(&self) -> Result<Vec<FailedMessage>, CliError> {
        let mut empty = 0;
        while empty < EMPTY {
            let taken = self
                .client
                .receive_message()
                .queue_url(&self.url)
                .max_number_of_messages(10)
                .visibility_timeout(IN_HAND)
                .wait_time_seconds(1)
                .message_attribute_names("All")
                .message_system_attribute_names(MessageSystemAttributeName::All)
                .send()
                .await
                .map_err(|error| unavailable(&error))?;
            let taken = taken.messages.unwrap_or_default();
            if !taken.is_empty() {
                return Ok(taken.into_iter().map(FailedMessage::of).collect());
            }
            empty += 1;
        }
        Ok(Vec::new())
    }

    /// Looks at messages and puts them back.
    pub(super) async fn look(&self, limit: usize) -> Result<Vec<FailedMessage>, CliError> {
        let mut looked_at = Vec::new();
        let result = loop {
            match self.take().await {
                Ok(taken) if taken.is_empty() => break Ok(()),
                Ok(taken) => looked_at.extend(taken),
                Err(failure) => break Err(failure),
            }
            if looked_at.len() >= limit {
                break Ok(());
            }
        };
        let receipts: Vec<&str> = looked_at.iter().map(|one| one.receipt.as_str()).collect();
        self.put_back(&receipts).await?;
        result?;
        looked_at.truncate(limit);
        Ok(looked_at)
    }

    /// Lets others see messages again.
    pub(super) async fn put_back(&self, receipts: &[&str]) -> Result<(), CliError> {
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

    /// Sends a message to another queue as it was first sent.
    pub(super) async fn send(&self, message: &FailedMessage, queue: &str) -> Result<(), String> {
        let url = url(&self.client, queue)
            .await
            .map_err(|failure| failure.reason)?;
        let fifo = url.ends_with(".fifo");
        let attributes = message.own_attributes();
        let mut call = self
            .client
            .send_message()
            .queue_url(url)
            .message_body(&message.body)
            .set_message_attributes((!attributes.is_empty()).then_some(attributes));
        if fifo {
            let group = message.group.as_deref().unwrap_or(&message.id);
            // Not the id it had, within whose five minutes it would be taken for itself; but the same
            // however often this is tried.
            let known = message.deduplication.as_deref().unwrap_or_default();
            let mut id = format!("{}.{known}", message.id);
            id.truncate(128);
            call = call.message_group_id(group).message_deduplication_id(id);
        }
        let sent = call.send().await;
        sent.map(drop)
            .map_err(|error| DisplayErrorContext(error).to_string())
    }

    /// About how many messages there are.
    pub(super) async fn count(&self) -> Result<u64, CliError> {
        use QueueAttributeName::ApproximateNumberOfMessages as Visible;
        let asked = self
            .client
            .get_queue_attributes()
            .queue_url(&self.url)
            .attribute_names(Visible)
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        let count = asked.attributes.as_ref().and_then(|all| all.get(&Visible));
        Ok(count.and_then(|count| count.parse().ok()).unwrap_or(0))
    }

    /// Has SQS move all dead letters back. `None` where it offers no such thing.
    pub(super) async fn start_moving(&self) -> Result<Option<()>, CliError> {
        use QueueAttributeName::QueueArn;
        let asked = self
            .client
            .get_queue_attributes()
            .queue_url(&self.url)
            .attribute_names(QueueArn)
            .send()
            .await
            .map_err(|error| unavailable(&error))?;
        let arn = asked.attributes.as_ref().and_then(|all| all.get(&QueueArn));
        let Some(arn) = arn else { return Ok(None) };
        let started = self.client.start_message_move_task().source_arn(arn);
        match started.send().await {
            Ok(_) => {}
            Err(error) => {
                let code = error.as_service_error().map(|error| error.meta().code());
                return match code.flatten() {
                    Some(code) if code.contains("UnsupportedOperation") => Ok(None),
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
                return Ok(Some(()));
            };
            let moved = task.approximate_number_of_messages_moved;
            match task.status.as_deref() {
                Some("RUNNING") => anstream::eprintln!("{moved} messages moved so far"),
                Some("FAILED") => {
                    let why = task.failure_reason.unwrap_or_default();
                    return Err(CliError::failed(format!(
                        "SQS stopped after {moved} messages: {why}; --one-by-one moves the rest"
                    )));
                }
                _ => return Ok(Some(())),
            }
        }
    }
}

async fn url(client: &Client, queue: &str) -> Result<String, CliError> {
    if queue.contains("://") {
        return Ok(queue.to_owned());
    }
    let mut call = client.get_queue_url();
    call = match queue.split(':').collect::<Vec<_>>()[..] {
        ["arn", _, _, _, account, name] => {
            call.queue_name(name).queue_owner_aws_account_id(account)
        }
        _ => call.queue_name(queue),
    };
    let found = call.send().await.map_err(|error| {
        let missing = error
            .as_service_error()
            .is_some_and(|error| error.is_queue_does_not_exist());
        match missing {
            true => CliError {
                kind: crate::error::Kind::NotFound,
                reason: format!("there is no queue {queue}"),
            },
            false => unavailable(&error),
        }
    })?;
    found
        .queue_url
        .ok_or_else(|| CliError::unavailable("SQS: the queue has no URL"))
}

fn unavailable(error: &dyn std::error::Error) -> CliError {
    CliError::unavailable(format!("SQS: {}", DisplayErrorContext(error)))
}
