//! The measured variants by name: each runs one step of the listener, the whole listener or a peer on the same event.
//!
//! `T` only tokenises the event and is the unit of the other times. `shelf` is a listener made of off-the-shelf crates.

use std::hint::black_box;

use antumbra_service::inbox::{IncomingMessage, MessageParser};
use antumbra_wire::events::sqs;
use antumbra_wire::stream::{StreamBatch, Tape};
use aws_lambda_events::event::dynamodb::Event;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::documents::{self, Times};
use crate::listeners::{Ours, Sent, Shelf, paths, rules};
use crate::patterns;
use antumbra_testkit::stream::{self, Order, Shape};

pub(crate) const RECORDS: usize = 100;
pub(crate) const SEED: u64 = 1;

/// Processes one event of [`RECORDS`] records, or as many pairs of documents.
pub(crate) type Run = Box<dyn FnMut()>;

/// The variants of the report. `bench-peers` measures "acknowledge whole" too, and `scripts/bench` counts the
/// instructions of "match" and "ingest".
pub(crate) const NAMES: [&str; 18] = [
    "T",
    "decode",
    "plan",
    "10 rules",
    "1,000 rules",
    "10,000 rules",
    "1,000 leaf conditions",
    "everything sent",
    "another order",
    "nobody",
    "shelf events",
    "shelf",
    "diff",
    "json-patch",
    "merge",
    "merge of texts",
    "tokenise both",
    "acknowledge",
];

/// Prepares a variant for events with documents of this shape.
pub(crate) fn variant(name: &str, shape: Shape) -> Run {
    let event = stream::event(RECORDS, shape, Order::Same, SEED);
    let pairs = || documents::pairs(shape);
    let listen = |event: Vec<u8>, rules: Vec<String>, sent, expected| -> Run {
        let ours = Ours::new(&rules, sent, shape);
        Box::new(move || {
            let summary = ours.handle(black_box(&event));
            assert_eq!((summary.matched, summary.sent), (expected, expected));
        })
    };
    match name {
        "T" => Box::new(move || {
            black_box(serde_json::from_slice::<IgnoredAny>(black_box(&event)).unwrap());
        }),
        "decode" => {
            let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
            Box::new(move || {
                for record in batch.read(black_box(&event)).unwrap().iter() {
                    black_box(record.unwrap().images(&mut tape).unwrap());
                }
            })
        }
        "plan" => {
            let ours = Ours::new(&rules(1_000, true), Sent::Diff, shape);
            let plan = move || ours.listener.rehearse(black_box(&event)).unwrap();
            Box::new(move || assert_eq!(plan(), RECORDS))
        }
        "10 rules" => listen(event, rules(10, true), Sent::Diff, RECORDS),
        "1,000 rules" => listen(event, rules(1_000, true), Sent::Diff, RECORDS),
        "10,000 rules" => listen(event, rules(10_000, true), Sent::Diff, RECORDS),
        "1,000 leaf conditions" => listen(event, paths(1_000), Sent::Leaves, RECORDS),
        "everything sent" => listen(event, rules(1_000, true), Sent::Everything, RECORDS),
        "another order" => {
            let event = stream::event(RECORDS, shape, Order::Shuffled, SEED);
            listen(event, rules(1_000, true), Sent::Diff, RECORDS)
        }
        "nobody" => listen(event, rules(1_000, false), Sent::Diff, 0),
        "shelf events" => Box::new(move || {
            black_box(serde_json::from_slice::<Event>(black_box(&event)).unwrap());
        }),
        "shelf" => {
            let shelf = Shelf::new(&rules(10, true));
            Box::new(move || assert_eq!(shelf.listen(black_box(&event)), RECORDS))
        }
        "diff" => documents::diff(&pairs(), shape),
        "json-patch" => documents::json_patch(&pairs()),
        "merge" => documents::merge(&pairs(), shape),
        "merge of texts" => documents::merge_texts(pairs(), shape),
        "tokenise both" => documents::tokenise(pairs()),
        "acknowledge" => documents::acknowledged(&pairs(), shape, Times::LeftOut),
        "match" => {
            let mut engine = patterns::Engine::new(&patterns::patterns(1_000));
            let documents = patterns::documents(1_000);
            Box::new(move || {
                black_box(engine.matches(&documents));
            })
        }
        "ingest" => ingest(),
        "acknowledge whole" => documents::acknowledged(&pairs(), shape, Times::Kept),
        _ => panic!("no variant {name}"),
    }
}

/// The inbox, from the bytes of a queue's event to messages that are ready to be stored.
fn ingest() -> Run {
    let record = |number: usize| {
        let body = format!(
            r#"{{"thingName":"device-{}","epochTime":"{}","temperature":72.5,"humidity":41}}"#,
            number % 50,
            1_564_669_331 + number,
        );
        json!({
            "messageId": format!("7d7efcff-0000-0000-0000-{number:012}"),
            "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
            "body": body,
            "attributes": {
                "ApproximateReceiveCount": "1",
                "SentTimestamp": "1564669331364",
                "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                "ApproximateFirstReceiveTimestamp": "1564669331365",
            },
            "messageAttributes": {},
            "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:antumbra-inbound",
            "awsRegion": "eu-west-1",
        })
    };
    let records: Vec<_> = (0..RECORDS).map(record).collect();
    let event = json!({ "Records": records }).to_string().into_bytes();
    let parser = MessageParser::default();
    Box::new(move || {
        for message in sqs::read(black_box(&event)).unwrap() {
            let incoming = IncomingMessage {
                text: &message.body,
                queue_id: &message.origin.id,
                sent_milliseconds: message.origin.sent_milliseconds,
            };
            black_box(parser.read(&incoming, message.sent).unwrap());
        }
    })
}
