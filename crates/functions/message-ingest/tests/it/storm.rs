//! A thousand messages while DynamoDB and the quarantine fail at random: each is in the inbox once or in
//! the quarantine, none is lost, and what was deleted stays deleted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use antumbra_service::inbox::{MessageDeleter, MessageId, Source, Sources};
use antumbra_shadow::Timestamp;
use antumbra_testkit::SendReply;
use antumbra_testkit::dynamodb::Reply;
use serde_json::Value;

use crate::support::{Bench, event, record, text};

const MESSAGES: u32 = 1000;
const SOURCES: u32 = 20;

fn bad(number: u32) -> bool {
    number % 50 == 7
}

fn sent(number: u32) -> Value {
    let source = format!("thing-{:02}", number % SOURCES);
    let body = if bad(number) {
        format!("nonsense {number}")
    } else {
        text(&source, number)
    };
    record(&format!("m-{number:04}"), &body, None)
}

/// A random fault of a DynamoDB call.
fn fault(random: &mut fastrand::Rng) -> Reply {
    match random.u32(0..100) {
        0..20 => Reply::fail(400, "ProvisionedThroughputExceededException"),
        20..25 => Reply::fail(500, "InternalServerError"),
        // The message is stored, but the response is lost.
        25..30 => Reply::pass_then_fail(500, "InternalServerError"),
        30..33 => Reply::PassThenDisconnect,
        _ => Reply::Pass,
    }
}

#[tokio::test]
async fn every_message_is_stored_exactly_once() {
    let bench = Bench::new().await;
    let mut random = fastrand::Rng::with_seed(1564669331);
    let mut faults = random.fork();
    bench.endpoint.script(move |_| fault(&mut faults));
    let mut busy = random.fork();
    bench.quarantine.reply(move |_| match busy.u32(0..10) {
        0..3 => SendReply::Throttle,
        3 => SendReply::deny("odd"),
        _ => SendReply::Accept,
    });

    // The queue: what is not claimed done comes again, and some of what is done does too.
    let mut queue: VecDeque<u32> = (0..MESSAGES).collect();
    let mut deleted = BTreeSet::new();
    let (mut invocations, mut stored, mut cut_off) = (0, 0, 0);
    while !queue.is_empty() {
        invocations += 1;
        assert!(invocations < 20_000, "{} are left", queue.len());
        let batch: Vec<u32> = (0..random.usize(1..40))
            .map_while(|_| queue.pop_front())
            .collect();
        let time = Duration::from_millis(random.u64(100..400));
        let records = batch.iter().map(|number| sent(*number));
        let event = event(records);
        let handling = bench.handle_within(&event, time);
        // Now and then the function ends in the middle, and all of the batch comes again.
        let summary = if random.u32(0..10) == 0 {
            let cut = Duration::from_millis(random.u64(1..60));
            tokio::time::timeout(cut, handling).await.ok()
        } else {
            Some(handling.await)
        };
        let Some(summary) = summary else {
            cut_off += 1;
            queue.extend(batch);
            continue;
        };
        stored += summary.count("stored");
        for number in batch {
            let id = format!("m-{number:04}");
            if summary.failed.contains(&id) || random.u32(0..20) == 0 {
                queue.push_back(number);
            } else if !bad(number) && random.u32(0..10) == 0 {
                // A reader deletes it, and the queue delivers it again.
                let source = Source::new(format!("thing-{:02}", number % SOURCES)).unwrap();
                let name = MessageId::new(format!("{number}-1564669332364-{id}")).unwrap();
                let now = Timestamp::default();
                while bench.inbox.delete(&source, &name, now).await.is_err() {}
                deleted.insert(number);
                queue.push_back(number);
            }
        }
    }

    bench.endpoint.script(|_| Reply::Pass);
    let mut found = BTreeMap::new();
    for source in 0..SOURCES {
        for id in bench.ids(&format!("thing-{source:02}")).await {
            let number: u32 = id.split('-').next().unwrap().parse().unwrap();
            *found.entry(number).or_insert(0) += 1;
        }
    }
    let expected: BTreeMap<u32, i32> = (0..MESSAGES)
        .filter(|number| !bad(*number) && !deleted.contains(number))
        .map(|number| (number, 1))
        .collect();
    assert!(deleted.len() > 20 && invocations > 30 && cut_off > 0);
    assert_eq!(found, expected);
    // The response of some stored messages was lost, so that they count as known.
    assert!(stored <= 980);
    let sources = bench.inbox.sources(1000, None).await.unwrap().rows;
    assert_eq!(sources.len(), SOURCES as usize);
    let put_away: BTreeSet<String> = bench
        .quarantined()
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    let expected: BTreeSet<String> = (0..MESSAGES)
        .filter(|number| bad(*number))
        .map(|number| format!("nonsense {number}"))
        .collect();
    assert_eq!(put_away, expected);
}
