//! Sending under failures: nothing lost, in order per key, duplicates only with the same id.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::notifications::{
    Channel, ChannelLimits, DispatchSummary, Message, SendError, dispatch,
};
use antumbra_shadow::Timestamp;
use antumbra_testkit::{RecordingChannel, SendReply};
use async_trait::async_trait;

fn channel(reply: impl FnMut(&Message) -> SendReply + Send + 'static) -> Arc<RecordingChannel> {
    let channel = RecordingChannel::with_limits(10, 1000);
    channel.reply(reply);
    Arc::new(channel)
}

fn outgoing(count: usize, keys: usize) -> Vec<Message> {
    (0..count)
        .map(|record| Message {
            id: record.to_string(),
            key: format!("k{}", record % keys),
            body: "{}".to_owned(),
            ..Message::default()
        })
        .collect()
}

async fn run(
    channel: &Arc<RecordingChannel>,
    outgoing: &[Message],
    time: Duration,
) -> DispatchSummary {
    let clock = ManualClock::new(Timestamp::parse("2026-01-01T00:00:00Z").unwrap());
    let summary = dispatch(channel.clone(), outgoing, clock.now().after(time), &clock).await;
    for batch in channel.calls() {
        let keys: HashSet<_> = batch.iter().map(|message| &message.key).collect();
        assert_eq!(keys.len(), batch.len(), "one message per key in a batch");
    }
    summary
}

#[tokio::test]
async fn distinct_keys_fill_batches() {
    let channel = channel(|_| SendReply::Accept);
    let done = run(&channel, &outgoing(95, 95), Duration::from_secs(1)).await;
    assert_eq!((done.sent, done.retried), (95, 0));
    assert_eq!(channel.calls().len(), 10);
}

#[tokio::test]
async fn a_permanent_failure_is_rejected_and_delays_no_other() {
    let channel = channel(|message| match message.key.as_str() {
        "k1" => SendReply::deny("no such queue"),
        _ => SendReply::Accept,
    });
    let done = run(&channel, &outgoing(9, 3), Duration::from_secs(1)).await;
    assert_eq!(done.sent, 6);
    assert_eq!(
        done.rejected.iter().map(|r| r.index).collect::<Vec<_>>(),
        [1, 4, 7]
    );
    assert!(done.unsent.is_empty());
}

#[tokio::test]
async fn an_outage_leaves_everything_unsent_at_the_deadline() {
    let channel = channel(|_| SendReply::Throttle);
    let done = run(&channel, &outgoing(25, 25), Duration::from_secs(5)).await;
    assert_eq!(done.unsent, (0..25).collect::<Vec<_>>());
    assert!(done.retried > 20, "tried again while there was time");
}

#[tokio::test]
async fn one_bad_key_delays_only_itself() {
    let channel = channel(|message| match message.key.as_str() {
        "k0" => SendReply::Throttle,
        _ => SendReply::Accept,
    });
    let done = run(&channel, &outgoing(30, 10), Duration::from_secs(5)).await;
    assert_eq!(done.sent, 27);
    assert_eq!(done.unsent, [0, 10, 20]);
}

#[tokio::test]
async fn all_messages_arrive_in_order_after_any_mix_of_failures() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let keys = 1 + (seed as usize % 17);
        let mut dice = random.fork();
        let channel = channel(move |_| match dice.u8(..) {
            0..60 => SendReply::Throttle,
            60..90 => SendReply::LoseResponse,
            _ => SendReply::Accept,
        });
        let outgoing = outgoing(random.usize(1..120), keys);
        let done = run(&channel, &outgoing, Duration::from_secs(3600)).await;
        assert_eq!(done.sent, outgoing.len(), "seed {seed}");

        let mut last: HashMap<String, usize> = HashMap::new();
        let mut seen = HashSet::new();
        for Message { key, id, .. } in channel.accepted() {
            if seen.insert(id.clone()) {
                let record: usize = id.parse().unwrap();
                let before = last.insert(key, record);
                assert!(
                    before.is_none_or(|before| before < record),
                    "seed {seed}: out of order"
                );
            }
        }
        assert_eq!(seen.len(), outgoing.len(), "seed {seed}: lost");
    }
}

/// Publishes one message per call and counts the calls in flight.
struct OnePerCall {
    concurrent_calls: usize,
    in_flight: Mutex<Vec<String>>,
    most_in_flight: Mutex<usize>,
    arrived: Mutex<Vec<(String, usize)>>,
}

impl OnePerCall {
    fn new(concurrent_calls: usize) -> Arc<OnePerCall> {
        Arc::new(OnePerCall {
            concurrent_calls,
            in_flight: Mutex::default(),
            most_in_flight: Mutex::default(),
            arrived: Mutex::default(),
        })
    }
}

#[async_trait]
impl Channel for OnePerCall {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: 1,
            batch_bytes: 1000,
            message_bytes: 1000,
        }
    }

    fn concurrent_calls(&self) -> usize {
        self.concurrent_calls
    }

    async fn send(&self, messages: &[Message]) -> Vec<Result<(), SendError>> {
        let [message] = messages else {
            panic!("{} messages in one call", messages.len());
        };
        let number: usize = message.id.parse().unwrap();
        {
            let mut in_flight = self.in_flight.lock().unwrap();
            assert!(!in_flight.contains(&message.key), "two of one key at once");
            in_flight.push(message.key.clone());
            let mut most = self.most_in_flight.lock().unwrap();
            *most = in_flight.len().max(*most);
        }
        // Later messages are faster, so that order is not kept by chance.
        for _ in 0..100 - number {
            tokio::task::yield_now().await;
        }
        let mut in_flight = self.in_flight.lock().unwrap();
        in_flight.retain(|key| *key != message.key);
        let mut arrived = self.arrived.lock().unwrap();
        arrived.push((message.key.clone(), number));
        // The first messages of five keys fail once.
        let attempts = arrived.iter().filter(|(_, other)| *other == number).count();
        vec![match number < 5 && attempts == 1 {
            true => Err(SendError::Retry("throttled".to_owned())),
            false => Ok(()),
        }]
    }
}

#[tokio::test]
async fn messages_of_different_keys_are_in_flight_together_and_those_of_one_key_in_order() {
    for (concurrent_calls, expected) in [(16, 16), (1, 1)] {
        let channel = OnePerCall::new(concurrent_calls);
        let clock = ManualClock::new(Timestamp::parse("2026-01-01T00:00:00Z").unwrap());
        let deadline = clock.now().after(Duration::from_secs(60));
        let done = dispatch(channel.clone(), &outgoing(80, 20), deadline, &clock).await;
        assert_eq!((done.sent, done.retried), (80, 5));
        assert_eq!(*channel.most_in_flight.lock().unwrap(), expected);
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::new();
        for (key, number) in channel.arrived.lock().unwrap().drain(..) {
            by_key.entry(key).or_default().push(number);
        }
        for (key, numbers) in by_key {
            assert!(numbers.is_sorted(), "{key}: {numbers:?}");
        }
    }
}
