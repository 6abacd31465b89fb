//! Concurrent workers on DynamoDB with lost responses; the stream shows every state.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use antumbra_dynamodb::{DynamoDbSensors, SensorConfig};
use antumbra_service::sensors::state::Attributes;
use antumbra_service::sensors::{SensorStore, State};
use antumbra_testkit::dynamodb::{Reply, client};
use antumbra_testkit::sensors::sample::id;
use antumbra_testkit::sensors::storm::{Storm, assert_end, assert_history};
use aws_sdk_dynamodbstreams::Client as Streams;
use aws_sdk_dynamodbstreams::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodbstreams::types::{AttributeValue, Record, ShardIteratorType};

use crate::store::{Store, sensors};

struct Image<'a>(&'a HashMap<String, AttributeValue>);

impl Attributes for Image<'_> {
    fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.get(name)?.as_s().ok().map(Cow::from)
    }

    fn number(&self, name: &str) -> Option<Cow<'_, str>> {
        self.0.get(name)?.as_n().ok().map(Cow::from)
    }

    fn boolean(&self, name: &str) -> Option<bool> {
        self.0.get(name)?.as_bool().ok().copied()
    }

    fn member(&self, name: &str, member: &str) -> Option<Cow<'_, str>> {
        let map = self.0.get(name)?.as_m().ok()?;
        map.get(member)?.as_s().ok().map(Cow::from)
    }
}

fn streams(store: &Store<DynamoDbSensors>) -> Streams {
    let config = aws_sdk_dynamodbstreams::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("eu-north-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(store.endpoint.url())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Streams::from_conf(config)
}

/// The records of the stream up to the last state of each sensor.
async fn records(store: &Store<DynamoDbSensors>, ends: &[State]) -> Vec<Record> {
    let streams = streams(store);
    let described = streams
        .describe_stream()
        .stream_arn(&store.stream)
        .send()
        .await
        .unwrap();
    let patience = Instant::now() + Duration::from_secs(30);
    let mut found = Vec::new();
    for shard in described.stream_description.unwrap().shards.unwrap() {
        let from = streams
            .get_shard_iterator()
            .stream_arn(&store.stream)
            .shard_id(shard.shard_id.unwrap())
            .shard_iterator_type(ShardIteratorType::TrimHorizon)
            .send()
            .await
            .unwrap();
        let mut next = from.shard_iterator;
        while let Some(iterator) = next {
            let got = streams
                .get_records()
                .shard_iterator(iterator)
                .send()
                .await
                .unwrap();
            let records = got.records.unwrap_or_default();
            let ended = records.is_empty();
            found.extend(records);
            let seen = |end: &State| images(&found).iter().any(|(_, new)| new == end);
            if ended && ends.iter().all(seen) {
                break;
            }
            assert!(Instant::now() < patience, "the stream does not end");
            next = got.next_shard_iterator;
        }
    }
    found
}

/// The states of a stream, before and after.
fn images(records: &[Record]) -> Vec<(Option<State>, State)> {
    let states = records.iter().filter_map(|record| {
        let change = record.dynamodb.as_ref()?;
        let sort = change.keys.as_ref()?.get("SK")?.as_s().ok()?;
        let image = |image: &Option<HashMap<String, AttributeValue>>| {
            image
                .as_ref()
                .map(|image| State::read(&Image(image)).unwrap())
        };
        (sort == "STATE").then(|| Some((image(&change.old_image), image(&change.new_image)?)))?
    });
    states.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_signals_end_in_the_right_state_without_gaps() {
    for seed in 0..4 {
        let store = sensors().await;
        // One response in twelve is lost, so the SDK repeats the call.
        let mut random = fastrand::Rng::with_seed(seed);
        store.endpoint.script(move |call| {
            if call.operation == "UpdateItem" && random.u8(..12) == 0 {
                Reply::PassThenDisconnect
            } else {
                Reply::Pass
            }
        });
        let config = SensorConfig::new(&store.table);
        let sensors = DynamoDbSensors::new(client(&store.endpoint), config);
        let storm = Storm {
            seed,
            sensors: 3,
            signals: 30,
            workers: 6,
        };
        let (signals, outcomes) = storm.blow(&sensors).await;
        assert!(outcomes.len() >= 4, "{outcomes:?}");
        let mut ends = Vec::new();
        for n in 0..storm.sensors {
            let end = sensors.state(&id(&format!("s{n}"))).await.unwrap();
            assert_end(&signals, &end);
            ends.push(end);
        }
        let images = images(&records(&store, &ends).await);
        let happened = assert_history(&images);
        let counted: u64 = ends.iter().map(State::sequence).sum();
        assert_eq!(happened as u64, counted, "seed {seed}");
        assert!(happened > 0);
    }
}
