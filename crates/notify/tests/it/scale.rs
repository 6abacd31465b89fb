//! Ten thousand registrations.

use serde_json::{Value, json};

use crate::channels::Bench;
use crate::stream::Record;

#[tokio::test]
async fn ten_thousand_registrations_find_their_changes() {
    let mut rules: Vec<Value> = (0..10_000)
        .map(|n| {
            let key = format!("^DS#house-{}#room-{n}#", n % 100);
            let mut on = json!({ "key": key });
            if n % 3 == 0 {
                on["pattern"] = json!({ "new": { "n": [{ "numeric": [">", n] }] } });
            }
            json!({ "name": format!("room-{n}"), "on": on,
                    "to": { "sqs": { "queue": format!("queue-{}", n % 500) } } })
        })
        .collect();
    rules.push(
        json!({ "name": "all", "on": { "state": "desired" }, "to": { "sqs": { "queue": "all" } } }),
    );
    let bench = Bench::new(&rules);
    // Room 9999 has a pattern that its change does not fulfil, the others have none or fulfil it.
    let rooms = [0, 1, 500, 501, 2999, 9998, 9999];
    let records: Vec<_> = rooms
        .iter()
        .map(|n| {
            Record::small(
                &format!("house-{}#room-{n}#lamp", n % 100),
                if *n == 9999 { n - 1 } else { n + 1 },
            )
        })
        .chain([Record::small("house-0#room-1#lamp", 7)])
        .collect();
    let summary = bench.handle_records(&records).await;
    assert_eq!((summary.records, summary.matched, summary.sent), (8, 6, 6));
    let got = |queue: u64| {
        bench
            .at(&format!("sqs queue-{queue}"))
            .json_at("/registration")
    };
    assert_eq!(got(0), ["room-0", "room-500"]);
    assert_eq!(got(1), ["room-1", "room-501"]);
    assert_eq!(got(498), ["room-9998"]);
    assert_eq!(got(499), ["room-2999"]);
    assert!(bench.at("sqs all").accepted().is_empty());
}
