//! A table with an endpoint before it, a quarantine that can be made to fail, and events.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES};
use antumbra_lambda_kit::batch::BatchSummary;
use antumbra_message_ingest::Ingest;
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::inbox::{
    MessageDeleter as _, MessageId, MessageIndex, MessageParser, MessageReader, Range, Source,
};
use antumbra_service::notifications::Channel;
use antumbra_service::quarantine::Quarantine;
use antumbra_shadow::Timestamp;
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::dynamodb::{Call, Endpoint, Reply, TestTable};
use serde_json::{Value, json};

/// The queue of this name keeps the order of each group.
pub(crate) const FIFO: &str = "arn:aws:sqs:us-east-1:123456789012:inbound.fifo";
pub(crate) const STANDARD: &str = "arn:aws:sqs:us-east-1:123456789012:inbound";

/// Everything around the function.
pub(crate) struct Bench {
    pub(crate) endpoint: Endpoint,
    pub(crate) inbox: DynamoDbInbox,
    pub(crate) database: aws_sdk_dynamodb::Client,
    pub(crate) table: String,
    pub(crate) quarantine: Arc<RecordingChannel>,
    pub(crate) ingest: Ingest<DynamoDbInbox, DynamoDbInbox>,
}

impl Bench {
    pub(crate) async fn new() -> Bench {
        Bench::with(MessageParser::default()).await
    }

    pub(crate) async fn with(parser: MessageParser) -> Bench {
        let table = TestTable::create(MESSAGES).await;
        let inbox = DynamoDbInbox::new(table.client.clone(), &table.name);
        let quarantine = Arc::new(RecordingChannel::default());
        let channel = Arc::clone(&quarantine) as Arc<dyn Channel>;
        Bench {
            ingest: Ingest::new(
                inbox.clone(),
                inbox.clone(),
                Quarantine::new(channel),
                parser,
                Arc::new(SystemClock),
            ),
            endpoint: table.endpoint,
            inbox,
            database: table.client,
            table: table.name,
            quarantine,
        }
    }

    /// One invocation, with ten seconds.
    pub(crate) async fn handle(&self, event: &Value) -> BatchSummary {
        self.handle_within(event, Duration::from_secs(10)).await
    }

    pub(crate) async fn handle_within(&self, event: &Value, time: Duration) -> BatchSummary {
        let deadline = SystemClock.now().after(time);
        let event = event.to_string();
        self.ingest
            .process_batch(event.as_bytes(), deadline)
            .await
            .unwrap()
    }

    /// Reason and text of each quarantined message.
    pub(crate) fn quarantined(&self) -> Vec<(String, String)> {
        let quarantined = self.quarantine.quarantined().into_iter();
        quarantined
            .map(|(text, reason, _)| (reason, text))
            .collect()
    }

    /// The ids of a source's messages.
    pub(crate) async fn ids(&self, source: &str) -> Vec<String> {
        let source = Source::new(source).unwrap();
        let ids = self.inbox.ids(&source, &Range::default(), 1000).await;
        ids.unwrap().iter().map(ToString::to_string).collect()
    }

    pub(crate) async fn delete(&self, source: &str, id: &str) {
        let (source, id) = (Source::new(source).unwrap(), MessageId::new(id).unwrap());
        let deleted = self.inbox.delete(&source, &id, Timestamp::default());
        deleted.await.unwrap();
    }

    /// Throttles these calls.
    pub(crate) fn throttle(&self, calls: impl Fn(&Call) -> bool + Send + 'static) {
        self.endpoint.script(move |call| match calls(call) {
            true => throttled(),
            false => Reply::Pass,
        });
    }

    /// The body of a message, as readers get it.
    pub(crate) async fn body(&self, source: &str, id: &str) -> Option<String> {
        let (source, id) = (Source::new(source).unwrap(), MessageId::new(id).unwrap());
        let found = self.inbox.get(&source, &id).await.unwrap();
        found.map(|message| message.body.as_json().to_owned())
    }
}

/// A record of an event: the id in the queue, the text, and the group.
pub(crate) fn record(id: &str, body: &str, group: Option<&str>) -> Value {
    let mut record = json!({
        "messageId": id,
        "receiptHandle": "handle",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": "1564669332364",
            "SenderId": "AIDAIENQZJOLO23YVJ4VO",
            "ApproximateFirstReceiveTimestamp": "1564669332370",
        },
        "messageAttributes": {},
        "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
        "eventSource": "aws:sqs",
        "eventSourceARN": if group.is_some() { FIFO } else { STANDARD },
        "awsRegion": "us-east-1",
    });
    if let Some(group) = group {
        record["attributes"]["MessageGroupId"] = group.into();
    }
    record
}

pub(crate) fn event(records: impl IntoIterator<Item = Value>) -> Value {
    json!({ "Records": records.into_iter().collect::<Vec<_>>() })
}

/// A message that can be stored.
pub(crate) fn text(source: &str, epoch: u32) -> String {
    json!({"thingName": source, "epochTime": epoch}).to_string()
}

/// DynamoDB has no room for more calls.
pub(crate) fn throttled() -> Reply {
    Reply::fail(400, "ProvisionedThroughputExceededException")
}

/// Returns these counts of a summary.
pub(crate) fn counts<const N: usize>(summary: &BatchSummary, names: [&str; N]) -> [usize; N] {
    names.map(|name| summary.count(name))
}
