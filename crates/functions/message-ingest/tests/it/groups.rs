//! A FIFO queue while DynamoDB fails at random: the messages of each group are stored in order, none is lost, and
//! bad ones block no other.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_testkit::dynamodb::Reply;

use crate::support::{Bench, event, record, text, throttled};

const GROUPS: usize = 8;
const EACH: u32 = 30;

fn bad(number: u32) -> bool {
    number % 10 == 3
}

/// The group of a message, and its number there.
type Sent = (usize, u32);

fn sent((group, number): Sent) -> serde_json::Value {
    let source = format!("thing-{group}");
    let body = if bad(number) {
        "nonsense".to_owned()
    } else {
        text(&source, number)
    };
    record(&format!("m-{group}-{number}"), &body, Some(&source))
}

#[tokio::test]
async fn every_group_is_stored_in_order() {
    let bench = Bench::new().await;
    let mut random = fastrand::Rng::with_seed(1573251510774);
    let mut faults = random.fork();
    // Messages that DynamoDB has written, in order, each once.
    let done: Arc<Mutex<Vec<(String, u32)>>> = Arc::default();
    let doing = Arc::clone(&done);
    bench.endpoint.script(move |call| {
        let field = |name: &str| call.body.pointer(&format!("/Item/{name}/S"))?.as_str();
        let reply = match faults.u32(0..10) {
            0..5 => return throttled(),
            5 => Reply::PassThenDisconnect,
            _ => Reply::Pass,
        };
        if let (Some(source), Some(id), Some(_)) =
            (field("uuid"), field("messageId"), field("undeletedId"))
        {
            let number = id.split('-').next().unwrap().parse().unwrap();
            let one = (source.to_owned(), number);
            let mut doing = doing.lock().unwrap();
            if !doing.contains(&one) {
                doing.push(one);
            }
        }
        reply
    });

    let mut queues: Vec<VecDeque<u32>> = (0..GROUPS).map(|_| (0..EACH).collect()).collect();
    let (mut invocations, mut failures) = (0, 0);
    while queues.iter().any(|queue| !queue.is_empty()) {
        invocations += 1;
        assert!(invocations < 20_000);
        // The next messages of some groups, each group's in order.
        let mut batch: Vec<Sent> = Vec::new();
        for (group, queue) in queues.iter_mut().enumerate() {
            let take = random.usize(0..5).min(queue.len());
            batch.extend(queue.drain(..take).map(|number| (group, number)));
        }
        let records = batch.iter().copied().map(sent);
        let time = Duration::from_millis(random.u64(60..150));
        let summary = bench.handle_within(&event(records), time).await;
        failures += summary.failed.len();
        for (group, number) in batch.into_iter().rev() {
            if summary.failed.contains(&format!("m-{group}-{number}")) {
                queues[group].push_front(number);
            }
        }
    }

    let mut orders: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (source, number) in done.lock().unwrap().iter() {
        orders.entry(source.clone()).or_default().push(*number);
    }
    assert_eq!(orders.len(), GROUPS);
    let expected: Vec<u32> = (0..EACH).filter(|number| !bad(*number)).collect();
    for (source, order) in orders {
        assert_eq!(order, expected, "{source}");
    }
    assert!(failures > 0, "no message came back to its queue");
    assert_eq!(bench.quarantine.accepted().len(), GROUPS * 3);
}
