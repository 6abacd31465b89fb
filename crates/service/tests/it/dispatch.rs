//! Sending under failures: nothing lost, in order per key, duplicates only with the same id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::notifications::{
    BoxFuture, Channel, ChannelLimits, ChannelMessage, DispatchSummary, Message, SendError,
    dispatch,
};
use antumbra_shadow::Timestamp;

type Answer = Box<dyn FnMut(&Message) -> Result<(), SendError> + Send>;

/// Accepts what its script accepts and keeps what arrived.
struct Scripted {
    answer: Mutex<Answer>,
    arrived: Mutex<Vec<Message>>,
    calls: Mutex<usize>,
}

impl Scripted {
    fn new(
        answer: impl FnMut(&Message) -> Result<(), SendError> + Send + 'static,
    ) -> Arc<Scripted> {
        Arc::new(Scripted {
            answer: Mutex::new(Box::new(answer)),
            arrived: Mutex::default(),
            calls: Mutex::default(),
        })
    }

    fn arrived(&self) -> Vec<(String, String)> {
        self.arrived
            .lock()
            .unwrap()
            .iter()
            .map(|m| (m.key.clone(), m.id.clone()))
            .collect()
    }
}

impl Channel for Scripted {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: 10,
            batch_bytes: 1000,
            message_bytes: 1000,
        }
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            *self.calls.lock().unwrap() += 1;
            assert!(messages.len() <= 10);
            let keys: std::collections::HashSet<_> = messages.iter().map(|m| &m.key).collect();
            assert_eq!(keys.len(), messages.len(), "one message per key in a batch");
            let mut answer = self.answer.lock().unwrap();
            messages
                .iter()
                .map(|message| {
                    let result = answer(message);
                    // A failure with the word "accepted" happened after the service took the message.
                    if result.is_ok()
                        || matches!(&result, Err(SendError::Retry(reason)) if reason == "accepted")
                    {
                        self.arrived.lock().unwrap().push(message.clone());
                    }
                    result
                })
                .collect()
        })
    }
}

fn outgoing(count: usize, keys: usize) -> Vec<ChannelMessage> {
    (0..count)
        .map(|record| ChannelMessage {
            channel: 0,
            message: Message {
                id: record.to_string(),
                key: format!("k{}", record % keys),
                body: "{}".to_owned(),
                ..Message::default()
            },
        })
        .collect()
}

async fn run(
    channel: &Arc<Scripted>,
    outgoing: &Vec<ChannelMessage>,
    time: Duration,
) -> DispatchSummary {
    let clock = ManualClock::new(Timestamp::parse("2026-01-01T00:00:00Z").unwrap());
    let channels: Vec<Arc<dyn Channel>> = vec![channel.clone()];
    dispatch(&channels, outgoing, clock.now().after(time), &clock).await
}

#[tokio::test]
async fn distinct_keys_fill_batches() {
    let channel = Scripted::new(|_| Ok(()));
    let done = run(&channel, &outgoing(95, 95), Duration::from_secs(1)).await;
    assert_eq!((done.sent, done.retried), (95, 0));
    assert_eq!(*channel.calls.lock().unwrap(), 10);
}

#[tokio::test]
async fn a_permanent_failure_is_refused_and_holds_nobody() {
    let channel = Scripted::new(|message| match message.key.as_str() {
        "k1" => Err(SendError::Permanent("no such queue".to_owned())),
        _ => Ok(()),
    });
    let done = run(&channel, &outgoing(9, 3), Duration::from_secs(1)).await;
    assert_eq!(done.sent, 6);
    assert_eq!(
        done.refused.iter().map(|r| r.index).collect::<Vec<_>>(),
        [1, 4, 7]
    );
    assert!(done.unsent.is_empty());
}

#[tokio::test]
async fn an_outage_leaves_everything_unsent_at_the_deadline() {
    let channel = Scripted::new(|_| Err(SendError::Retry("throttled".to_owned())));
    let done = run(&channel, &outgoing(25, 25), Duration::from_secs(5)).await;
    assert_eq!(done.unsent, (0..25).collect::<Vec<_>>());
    assert!(done.retried > 20, "tried again while there was time");
}

#[tokio::test]
async fn one_bad_key_delays_only_itself() {
    let channel = Scripted::new(|message| match message.key.as_str() {
        "k0" => Err(SendError::Retry("throttled".to_owned())),
        _ => Ok(()),
    });
    let done = run(&channel, &outgoing(30, 10), Duration::from_secs(5)).await;
    assert_eq!(done.sent, 27);
    assert_eq!(done.unsent, [0, 10, 20]);
}

#[tokio::test]
async fn any_mix_of_failures_ends_with_all_there_in_order() {
    for seed in 0..300 {
        let mut random = fastrand::Rng::with_seed(seed);
        let keys = 1 + (seed as usize % 17);
        let mut dice = random.fork();
        let channel = Scripted::new(move |_| match dice.u8(..) {
            0..60 => Err(SendError::Retry("throttled".to_owned())),
            60..90 => Err(SendError::Retry("accepted".to_owned())),
            _ => Ok(()),
        });
        let outgoing = outgoing(random.usize(1..120), keys);
        let done = run(&channel, &outgoing, Duration::from_secs(3600)).await;
        assert_eq!(done.sent, outgoing.len(), "seed {seed}");

        let mut last: HashMap<String, usize> = HashMap::new();
        let mut seen = std::collections::HashSet::new();
        for (key, id) in channel.arrived() {
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
