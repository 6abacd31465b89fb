//! A table with an endpoint before it, a quarantine that can be made to fail, and events.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbInbox, MESSAGES, Table};
use antumbra_message_ingest::{BatchSummary, Ingest};
use antumbra_service::clock::{Clock, SystemClock};
use antumbra_service::inbox::{
    MessageId, MessageIndex, MessageParser, MessageReader, Range, Source,
};
use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message, SendError};
use antumbra_service::quarantine::Quarantine;
use antumbra_testkit::dynamodb::{Endpoint, Reply, address, client, failure, table_name};
use serde_json::{Value, json};

/// The queue of this name keeps the order of each group.
pub(crate) const FIFO: &str = "arn:aws:sqs:us-east-1:123456789012:inbound.fifo";
pub(crate) const STANDARD: &str = "arn:aws:sqs:us-east-1:123456789012:inbound";

/// What decides on a message that is to be put away.
type Verdict = Box<dyn FnMut(&Message) -> Result<(), SendError> + Send>;

/// A quarantine that keeps what it takes.
pub(crate) struct Kept {
    pub(crate) messages: Mutex<Vec<Message>>,
    verdict: Mutex<Verdict>,
}

impl Kept {
    fn new() -> Arc<Kept> {
        Arc::new(Kept {
            messages: Mutex::default(),
            verdict: Mutex::new(Box::new(|_| Ok(()))),
        })
    }

    /// Lets this decide from now on.
    pub(crate) fn decide(
        &self,
        verdict: impl FnMut(&Message) -> Result<(), SendError> + Send + 'static,
    ) {
        *self.verdict.lock().unwrap() = Box::new(verdict);
    }

    /// Reason and text of what is there.
    pub(crate) fn reasons(&self) -> Vec<(String, String)> {
        let messages = self.messages.lock().unwrap();
        let reason = |message: &Message| {
            let mut attributes = message.attributes.iter();
            let reason = attributes.find(|(name, _)| name == "reason").unwrap();
            (reason.1.clone(), message.body.clone())
        };
        messages.iter().map(reason).collect()
    }
}

impl Channel for Kept {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: 10,
            batch_bytes: 1024 * 1024,
            message_bytes: 1024 * 1024,
        }
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        let answer = |message: &Message| {
            let verdict = (self.verdict.lock().unwrap())(message);
            if verdict.is_ok() {
                self.messages.lock().unwrap().push(message.clone());
            }
            verdict
        };
        Box::pin(async move { messages.iter().map(answer).collect() })
    }
}

/// Everything around the function.
pub(crate) struct Bench {
    pub(crate) endpoint: Endpoint,
    pub(crate) inbox: DynamoDbInbox,
    pub(crate) database: aws_sdk_dynamodb::Client,
    pub(crate) table: String,
    pub(crate) kept: Arc<Kept>,
    pub(crate) ingest: Ingest<DynamoDbInbox, DynamoDbInbox>,
}

impl Bench {
    pub(crate) async fn new() -> Bench {
        Bench::with(MessageParser::default()).await
    }

    pub(crate) async fn with(intake: MessageParser) -> Bench {
        let endpoint = Endpoint::start(address()).await;
        let database = client(&endpoint);
        let table = table_name();
        let made = Table {
            name: &table,
            ..MESSAGES
        };
        made.ensure(&database).await.unwrap();
        endpoint.take_calls();
        let inbox = DynamoDbInbox::new(database.clone(), &table);
        let kept = Kept::new();
        let quarantine = Quarantine::new(Arc::clone(&kept) as Arc<dyn Channel>);
        Bench {
            ingest: Ingest::new(
                inbox.clone(),
                inbox.clone(),
                quarantine,
                intake,
                Arc::new(SystemClock),
            ),
            endpoint,
            inbox,
            database,
            table,
            kept,
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
            .handle(event.as_bytes(), deadline)
            .await
            .unwrap()
    }

    /// The ids of a source's messages.
    pub(crate) async fn ids(&self, source: &str) -> Vec<String> {
        let source = Source::new(source).unwrap();
        let ids = self.inbox.ids(&source, &Range::default(), 1000).await;
        ids.unwrap().iter().map(ToString::to_string).collect()
    }

    /// The body of a message, as readers get it.
    pub(crate) async fn body(&self, source: &str, id: &str) -> Option<String> {
        let (source, id) = (Source::new(source).unwrap(), MessageId::new(id).unwrap());
        let found = self.inbox.get(&source, &id).await.unwrap();
        found.map(|message| message.body.as_json().to_owned())
    }
}

/// A record of an event: the queue's id, what was sent, and in which group.
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
    let (status, body) = failure(400, "ProvisionedThroughputExceededException");
    Reply::Answer(status, body)
}
