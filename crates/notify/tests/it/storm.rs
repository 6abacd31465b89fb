//! Order and loss under faults: a shard is read as Lambda reads it, again from the reported record, and the
//! whole batch again after a crash, while channels throttle, lose responses and reject some messages.
//!
//! Every channel receives the messages of an undisturbed run, per key in the same order, and messages that
//! arrive twice have the same id and content. In the second storm one target fails for long: it is suspended, and its
//! messages pass through the spill queue, whose consumer crashes, too.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use antumbra_notify::Listener;
use antumbra_service::clock::Clock as _;
use antumbra_service::notifications::Message;
use antumbra_shadow::Model;
use antumbra_testkit::{RecordingChannel, SendReply};
use fastrand::Rng;
use serde_json::{Value, json};

use crate::channels::{Fakes, TIME, body, clock, registrations};
use crate::stream::{Record, event_of, sequence_number};

const CHANGES: u64 = 400;
const LARGEST_BATCH: usize = 50;
const CHANNELS: [&str; 5] = [
    "sqs all.fifo",
    "sqs warm",
    "sns desired",
    "mqtt",
    "eventbridge audit",
];

/// Two registrations share a queue, and two the MQTT channel.
fn rules() -> Vec<Value> {
    let warm = json!({ "new": { "n": [{ "numeric": [">", 50] }] } });
    let topic = "arn:aws:sns:eu-west-1:123456789012:desired";
    vec![
        json!({ "name": "everything", "send": ["old", "new", "diff"],
                "to": { "sqs": { "queue": "all.fifo" } } }),
        json!({ "name": "house-1", "on": { "key": "^DS#house-1#" },
                "to": { "sqs": { "queue": "all.fifo" } } }),
        json!({ "name": "warm", "on": { "state": "reported", "pattern": warm },
                "send": ["new"], "to": { "sqs": { "queue": "warm" } } }),
        json!({ "name": "desired", "on": { "state": "desired" }, "to": { "sns": { "topic": topic } } }),
        json!({ "name": "live", "on": { "key": "^DS#house-2#" },
                "to": { "mqtt": { "topic": "live/${state}" } } }),
        json!({ "name": "all-live", "send": ["new"], "to": { "mqtt": { "topic": "all/${state}" } } }),
        json!({ "name": "deleted", "on": { "operations": ["remove"] }, "send": ["old"],
                "to": { "eventbridge": { "bus": "audit" } } }),
    ]
}

/// Shadows of both layouts that are created, changed and deleted.
fn shard(random: &mut Rng) -> Vec<Record> {
    let mut items: BTreeMap<String, (u64, Option<Value>)> = BTreeMap::new();
    let changes = (0..CHANGES).map(|sequence| {
        let id = format!("DS#house-{}#{}", random.u8(..4), random.u8(..5));
        let (version, old) = items.remove(&id).unwrap_or_default();
        let mut new = json!({ "version": version + 1, "reported": { "n": random.u8(..100) } });
        if random.bool() {
            new["desired"] = json!({ "n": random.u8(..100) });
        }
        let new = (old.is_none() || random.u8(..10) > 0).then_some(new);
        items.insert(id.clone(), (version + 1, new.clone()));
        Record {
            old,
            new,
            ..Record::new(&id, "DSC#main", sequence)
        }
    });
    changes.collect()
}

/// Polls a future a limited number of times, as a process that dies does.
struct Steps<F> {
    future: Pin<Box<F>>,
    left: usize,
}

impl<F: Future> Future for Steps<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        self.future.as_mut().poll(context).map(Some)
    }
}

#[derive(Debug, Default)]
struct Totals {
    crashes: usize,
    resumed: usize,
    retried: usize,
    undeliverable: usize,
}

/// Reads the shard to its end. With `crashes`, an invocation in four dies in the middle.
async fn read(shard: &[Record], channels: &Fakes, crashes: Option<&mut Rng>) -> Totals {
    let clock = Arc::new(clock());
    let start = || {
        let rules = registrations(&rules());
        Listener::new(rules, channels, Model::default(), clock.clone()).unwrap()
    };
    let (mut listener, mut random) = (start(), crashes);
    let (mut totals, mut at, mut invocations) = (Totals::default(), 0, 0);
    while at < shard.len() {
        invocations += 1;
        assert!(invocations < shard.len(), "the shard is blocked");
        let (count, left) = match &mut random {
            Some(random) => {
                let left = if random.u8(..4) == 0 {
                    random.usize(..120)
                } else {
                    usize::MAX
                };
                (random.usize(1..=LARGEST_BATCH), left)
            }
            None => (LARGEST_BATCH, usize::MAX),
        };
        let end = (at + count).min(shard.len());
        let event = event_of(&shard[at..end]);
        let handling = Steps {
            future: Box::pin(listener.handle(&event, clock.now().after(TIME))),
            left,
        };
        let Some(summary) = handling.await else {
            totals.crashes += 1;
            listener = start();
            continue;
        };
        let summary = summary.unwrap();
        totals.retried += summary.retried;
        totals.undeliverable += summary.undeliverable;
        let is_reported = |record: &usize| {
            let number = sequence_number(shard[*record].sequence);
            summary.resume_at.as_deref() == Some(number.as_str())
        };
        totals.resumed += usize::from(summary.resume_at.is_some());
        at = match &summary.resume_at {
            Some(_) => (at..end).find(is_reported).expect("a record of this batch"),
            None => end,
        };
    }
    totals
}

/// Returns the ids by key and registration in the order of their first arrival.
fn received(channel: &RecordingChannel) -> BTreeMap<String, Vec<String>> {
    let mut first: BTreeMap<String, Message> = BTreeMap::new();
    let mut order: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for message in channel.accepted() {
        if let Some(before) = first.get(&message.id) {
            assert_eq!(*before, message, "one id with different contents");
            continue;
        }
        let registration = &body(&message)["registration"];
        let ids = order.entry(format!("{} {registration}", message.key));
        let ids = ids.or_default();
        ids.push(message.id.clone());
        first.insert(message.id.clone(), message);
    }
    order
}

fn storm(random: &mut Rng) -> Fakes {
    let channels = Fakes::default();
    let addresses = CHANNELS.map(|address| channels.at(address));
    for channel in addresses.iter().chain([&channels.undeliverable]) {
        let (mut random, mut outage) = (random.fork(), 0);
        channel.reply(move |_| {
            if outage == 0 && random.u16(..500) == 0 {
                outage = 400;
            }
            outage = u32::saturating_sub(outage, 1);
            match random.u8(..100) {
                _ if outage > 0 => SendReply::Throttle,
                0..25 => SendReply::Throttle,
                25..40 => SendReply::LoseResponse,
                _ => SendReply::Accept,
            }
        });
    }
    let mut random = random.fork();
    channels
        .at("sqs warm")
        .reply(move |message| match random.u8(..100) {
            _ if message.body.contains("house-3") => SendReply::deny("InvalidMessageContents"),
            0..25 => SendReply::Throttle,
            _ => SendReply::Accept,
        });
    channels
}

#[tokio::test]
async fn every_notification_arrives_in_order_despite_faults_and_crashes() {
    let mut all = Totals::default();
    for seed in 0..12 {
        let mut random = Rng::with_seed(seed);
        let shard = shard(&mut random);
        let calm = Fakes::default();
        let undisturbed = read(&shard, &calm, None).await;
        assert_eq!((undisturbed.retried, undisturbed.resumed), (0, 0));

        let stormy = storm(&mut random);
        let totals = read(&shard, &stormy, Some(&mut random)).await;
        for address in CHANNELS {
            let mut expected = received(&calm.at(address));
            let sent = calm.at(address).accepted().len();
            assert_eq!(expected.values().flatten().count(), sent, "sent once");
            if address == "sqs warm" {
                expected.retain(|key, _| !key.contains("house-3"));
            }
            assert_eq!(
                received(&stormy.at(address)),
                expected,
                "seed {seed}: {address}"
            );
        }
        let rejected = received(&calm.at("sqs warm")).into_iter();
        let rejected = rejected.filter(|(key, _)| key.contains("house-3"));
        let mut rejected: Vec<String> = rejected.flat_map(|(_, ids)| ids).collect();
        let undeliverable = stormy.undeliverable.json_at("/notification/id");
        let mut undeliverable: Vec<String> = undeliverable
            .iter()
            .map(|id| id.as_str().unwrap().to_owned())
            .collect();
        rejected.sort();
        undeliverable.sort();
        undeliverable.dedup();
        assert_eq!(undeliverable, rejected, "seed {seed}");
        all.crashes += totals.crashes;
        all.resumed += totals.resumed;
        all.retried += totals.retried;
        all.undeliverable += totals.undeliverable;
    }
    let felt = all.crashes > 20 && all.resumed > 5 && all.retried > 2_000 && all.undeliverable > 50;
    assert!(felt, "too few faults: {all:?}");
}

/// Reads the shard while one target fails for long, and the spill queue until it is empty.
async fn read_with_spill(shard: &[Record], channels: &Fakes, random: &mut Rng) -> (usize, usize) {
    let clock = Arc::new(clock());
    let start = || {
        let rules = registrations(&rules());
        let listener = Listener::new(rules, channels, Model::default(), clock.clone()).unwrap();
        listener.with_spill(channels.spill.route())
    };
    let (mut listener, mut at, mut steps) = (start(), 0, 0);
    let (mut suspended, mut spilled) = (0, 0);
    let steps_of = |random: &mut Rng| match random.u8(..4) {
        0 => random.usize(..120),
        _ => usize::MAX,
    };
    loop {
        steps += 1;
        assert!(steps < 2_000, "not finished at {at}");
        let sick = (10..60).contains(&steps);
        for address in ["sqs all.fifo", "mqtt"] {
            let mut faults = random.fork();
            channels.at(address).reply(move |_| match faults.u8(..100) {
                _ if sick => SendReply::Throttle,
                0..20 => SendReply::Throttle,
                20..30 => SendReply::LoseResponse,
                _ => SendReply::Accept,
            });
        }
        let now = clock.now();
        if at < shard.len() {
            let end = (at + random.usize(1..=20)).min(shard.len());
            let event = event_of(&shard[at..end]);
            let handling = Steps {
                future: Box::pin(listener.handle(&event, now.after(TIME))),
                left: steps_of(random),
            };
            let Some(summary) = handling.await else {
                listener = start();
                continue;
            };
            let summary = summary.unwrap();
            suspended = suspended.max(summary.suspended);
            spilled += summary.spilled;
            let resume = summary.resume_at;
            let number = |record: &usize| sequence_number(shard[*record].sequence);
            at = match resume {
                Some(resume) => (at..end).find(|record| number(record) == resume).unwrap(),
                None => end,
            };
        }
        let mut received = channels.spill.receive(now);
        let records = channels.spill.suspensions.records();
        if at == shard.len() && received.is_empty() {
            assert!(
                records.iter().all(|record| !record.suspends()),
                "{records:?}"
            );
            return (suspended, spilled);
        }
        clock.advance(Duration::from_secs(random.u64(1..40)));
        // Some groups, ten messages at most.
        let left_out = random.u64(..);
        let is_left_out = |key: &str| (key.len() as u64 ^ left_out).is_multiple_of(3);
        received.retain(|message| !is_left_out(message.group.as_deref().unwrap()));
        received.truncate(random.usize(1..=10));
        let handling = Steps {
            future: Box::pin(listener.handle_spilled(&received, clock.now().after(TIME))),
            left: steps_of(random),
        };
        match handling.await {
            Some(summary) => channels.spill.delete(&received, &summary.failed),
            None => listener = start(),
        }
    }
}

#[tokio::test]
async fn nothing_overtakes_the_spilled_messages_of_a_target_that_fails_for_long() {
    let mut all = (0, 0);
    for seed in 100..106 {
        let mut random = Rng::with_seed(seed);
        let shard = shard(&mut random);
        let calm = Fakes::default();
        read(&shard, &calm, None).await;
        let stormy = Fakes::default();
        let (suspended, spilled) = read_with_spill(&shard, &stormy, &mut random).await;
        for address in CHANNELS {
            let (expected, actual) = (calm.at(address), stormy.at(address));
            assert_eq!(
                received(&actual),
                received(&expected),
                "seed {seed}: {address}"
            );
        }
        all = (all.0 + suspended, all.1 + spilled);
    }
    assert!(all.0 > 10 && all.1 > 500, "too few suspensions: {all:?}");
}
