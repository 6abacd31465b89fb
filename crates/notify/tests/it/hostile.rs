//! Invalid and hostile events: a clear result, in bounded time, and no panic.

use antumbra_wire::limits;
use serde_json::{Value, json};

use crate::channels::{Bench, assert_done, body};
use crate::stream::{Record, event, sequence_number};

fn bench() -> Bench {
    Bench::new(&[
        json!({ "name": "a", "on": { "key": "." }, "send": ["old", "new", "diff"], "to": { "sqs": { "queue": "a" } } }),
        json!({ "name": "m", "to": { "mqtt": { "topic": "t/${id}/${name}" } } }),
    ])
}

#[tokio::test]
async fn invalid_events_are_rejected_as_a_whole() {
    let bench = bench();
    for (event, reason) in [
        (&b""[..], "expected"),
        (b"hello", "expected"),
        (b"null", "expected"),
        (b"[]", "expected"),
        (b"{}", "the event has no Records"),
        (b"{\"records\":[]}", "the event has no Records"),
        (b"{\"Records\":{}}", "expected"),
        (b"{\"Records\":null}", "expected"),
        (b"{\"Records\":[", "expected"),
        (b"{\"Records\":[{]}", ""),
        (b"{\"Records\":[]}}", "text after the end"),
        (b"{\"Records\":[\xff]}", "not UTF-8"),
    ] {
        let error = bench.refuse(event).await;
        assert!(
            error.contains(reason),
            "{}: {error}",
            String::from_utf8_lossy(event)
        );
        assert!(error.len() < 200, "{error}");
    }
    assert!(bench.undeliverable().is_empty());
    let summary = bench.handle_records(&[Record::small("lamp", 1)]).await;
    assert_eq!(
        (summary.sent, summary.resume_at),
        (2, None),
        "it still works"
    );
}

#[tokio::test]
async fn an_empty_event_succeeds() {
    let summary = bench().handle(br#"{"Records":[]}"#).await;
    assert_eq!(summary, Default::default());
}

#[tokio::test]
async fn unknown_fields_are_ignored() {
    let bench = bench();
    let odd = json!({ "Records": [[[{ "a": null }]], false], "S": "\u{0}\"\\" });
    let mut record = Record::small("lamp", 1).json();
    record["futureField"] = odd.clone();
    record["userIdentity"] = json!([odd]);
    record["dynamodb"]["FutureImage"] = odd.clone();
    record["dynamodb"]["SizeBytes"] = odd.clone();
    record["dynamodb"]["ApproximateCreationDateTime"] = json!("yesterday");
    let event = json!({ "Before": odd, "Records": [record], "window": { "start": 1 } });
    let summary = bench.handle(event.to_string().as_bytes()).await;
    assert_eq!(
        (summary.records, summary.sent, summary.undeliverable),
        (1, 2, 0)
    );
    assert_eq!(summary.oldest_milliseconds, None);
    assert_eq!(bench.at("sqs a").json_at("/version"), [2]);
}

/// Each of these changes makes only its own record malformed.
#[tokio::test]
async fn a_malformed_record_is_undeliverable_and_the_others_arrive() {
    let spoils: [fn(&mut Value); 14] = [
        |record| *record = json!({}),
        |record| *record = json!(null),
        |record| *record = json!("record"),
        |record| *record = json!([]),
        |record| record["eventName"] = json!("TOUCH"),
        |record| record["eventID"] = json!(null),
        |record| record["dynamodb"] = json!(null),
        |record| record["dynamodb"]["Keys"] = json!({}),
        |record| record["dynamodb"]["Keys"]["PK"] = json!({ "M": {} }),
        |record| record["dynamodb"]["Keys"]["X"] = json!({ "S": "third" }),
        |record| record["dynamodb"]["SequenceNumber"] = json!(7),
        |record| record["dynamodb"]["NewImage"] = json!(null),
        |record| record["dynamodb"]["NewImage"] = json!([]),
        |record| record["dynamodb"]["OldImage"]["reported"] = json!({ "S": "x", "N": "1" }),
    ];
    for (number, spoil) in spoils.iter().enumerate() {
        let bench = bench();
        let mut records: Vec<Value> = (0..3).map(|n| Record::small("lamp", n).json()).collect();
        spoil(&mut records[1]);
        let summary = bench.handle(&event(records)).await;
        assert_eq!((summary.records, summary.undeliverable), (3, 1), "{number}");
        assert_eq!(summary.resume_at, None, "{number}");
        assert_eq!(bench.at("sqs a").json_at("/version"), [1, 3], "{number}");
        let undeliverable = &bench.undeliverable()[0];
        assert!(
            undeliverable["reason"].as_str().unwrap().len() > 10,
            "{undeliverable}"
        );
    }
}

#[tokio::test]
async fn a_batch_of_malformed_records_does_not_block_the_shard() {
    let bench = bench();
    let records = format!(
        "{{\"Records\":[{}{{}}]}}",
        "{},".repeat(limits::RECORDS - 1)
    );
    let summary = bench.handle(records.as_bytes()).await;
    assert_eq!(
        (summary.records, summary.undeliverable),
        (limits::RECORDS, limits::RECORDS)
    );
    assert_eq!(summary.resume_at, None);
    assert_eq!(
        bench.fakes.undeliverable.calls().len(),
        limits::RECORDS / 10
    );
}

#[tokio::test]
async fn the_largest_item_arrives_whole_where_it_fits_and_shorter_where_not() {
    let bench = bench();
    let document = |letter: &str| json!({ "text": letter.repeat(399 * 1024), "n": 1 });
    let (old, new) = (
        document("a"),
        json!({ "text": document("a")["text"], "n": 2 }),
    );
    let summary = bench
        .handle_records(&[Record::reported("lamp", 1, old, new)])
        .await;
    assert_eq!((summary.sent, summary.undeliverable), (2, 0));
    let body = &bench.at("sqs a").json()[0];
    assert_eq!(body["new"]["text"].as_str().map(str::len), Some(399 * 1024));
    assert_eq!(
        body["diff"]["updated"],
        json!({ "/n": { "old": 1, "new": 2 } })
    );
    assert_eq!(
        body.get("truncated"),
        None,
        "two images and a diff are less than a megabyte"
    );
    // All of it different: the diff has both texts, and the documents do not fit beside it.
    let record = Record::reported("lamp", 2, document("a"), document("b"));
    bench.handle_records(&[record]).await;
    assert_eq!(
        bench.at("sqs a").json_at("/truncated"),
        [json!(null), json!(["old", "new"])]
    );
}

#[tokio::test]
async fn nesting_as_deep_as_the_table_allows_arrives() {
    let bench = bench();
    let mut document = json!({ "n": 1 });
    for level in 0..30 {
        document = if level % 2 == 0 {
            json!({ "list": [document] })
        } else {
            json!({ "map": document })
        };
    }
    let summary = bench
        .handle_records(&[Record::reported("lamp", 1, json!({}), document.clone())])
        .await;
    assert_eq!((summary.sent, summary.undeliverable), (2, 0));
    assert_eq!(bench.at("sqs a").json()[0]["new"], document);
}

#[tokio::test]
async fn nesting_beyond_the_limit_is_undeliverable() {
    let bench = bench();
    let deep = format!(
        "{}{{\"N\":\"1\"}}{}",
        "{\"L\":[".repeat(20_000),
        "]}".repeat(20_000)
    );
    let record = Record::small("lamp", 1).json().to_string();
    let record = record.replacen("{\"n\":{\"N\":\"2\"}}", &format!("{{\"n\":{deep}}}"), 1);
    assert!(record.len() > 100_000);
    let good = Record::small("lamp", 2).json();
    let summary = bench
        .handle(format!("{{\"Records\":[{record},{good}]}}").as_bytes())
        .await;
    assert_done(&summary, 2, 1);
    assert_eq!(
        bench.undeliverable()[0]["record"]["sequenceNumber"],
        sequence_number(1)
    );
}

#[tokio::test]
async fn keys_of_any_text_are_notified_unchanged() {
    let odd = [
        "a b",
        "My House#Küche",
        "日本語",
        "👩‍👩‍👧‍👦",
        "e\u{301}",
        "\u{202e}right to left",
        "\u{feff}bom",
        "\u{0}\u{1}\u{7f}",
        "\n\r\t",
        "\"quoted\"\\",
        "+/#%",
        "${id}",
        "$aws",
        "'; --",
        "\u{fffe}\u{ffff}",
        "\u{10ffff}",
        " ",
        "#",
        "##DSR#",
    ];
    let bench = bench();
    let records: Vec<_> = odd
        .iter()
        .zip(0..)
        .map(|(id, n)| Record::small(id, n))
        .collect();
    let summary = bench.handle_records(&records).await;
    assert_eq!((summary.undeliverable, summary.resume_at), (0, None));
    assert_eq!(bench.at("sqs a").json_at("/shadow/id"), odd);
    for (message, id) in bench.at("sqs a").accepted().iter().zip(odd) {
        assert_eq!(message.key, format!("DS#{id}#DSR#main"));
        assert_eq!(body(message)["key"], message.key.as_str());
    }
    for (message, id) in bench.at("mqtt").accepted().iter().zip(odd) {
        let topic = message.topic.as_deref().unwrap();
        assert_eq!(topic.matches('/').count(), 2, "{id:?}: {topic}");
        let forbidden = |c: char| matches!(c, '+' | '#') || c.is_control();
        assert!(!topic.contains(forbidden), "{id:?}: {topic:?}");
    }
}

/// JSON can escape an unpaired surrogate, which is not valid text.
#[tokio::test]
async fn records_with_unpaired_surrogates_are_sent_or_undeliverable() {
    for half in [r"\ud800", r"\udc00x", r"\ud800\u0041"] {
        let bench = bench();
        let record = Record::small("lamp", 1).json().to_string();
        let in_key = record.replace("DS#lamp", &format!("DS#{half}"));
        let in_document = record.replacen("{\"N\":\"2\"}", &format!("{{\"S\":\"{half}\"}}"), 1);
        assert!(in_key != record && in_document != record);
        let event = format!(
            "{{\"Records\":[{in_key},{in_document},{}]}}",
            Record::small("fan", 2).json()
        );
        let summary = bench.handle(event.as_bytes()).await;
        assert_eq!((summary.records, summary.resume_at), (3, None), "{half}");
        let of_queue = bench.at("sqs a").accepted().len();
        let undeliverable = bench.fakes.undeliverable.accepted().len();
        assert_eq!(
            of_queue + undeliverable.min(2),
            3,
            "{half}: each once, here or there"
        );
        // The messages are valid JSON.
        assert!(
            bench
                .at("sqs a")
                .json_at("/shadow/id")
                .contains(&json!("fan"))
        );
    }
}

#[tokio::test]
async fn secrets_and_stored_responses_are_never_notified() {
    let bench = bench();
    let private = |partition: &str, sort: &str, sequence| Record {
        new: Some(json!({ "current": "whsec_x", "answer": "whsec_y" })),
        ..Record::new(partition, sort, sequence)
    };
    let records = [
        private("CLIENT#night-watch", "CLIENTSECRETS", 1),
        private("ONCE#0af1", "ONCE", 2),
        private("ONCE#0af1", "PART#owner#000000", 3),
        private("CLIENT#night-watch", "SECRETS-RENAMED", 4),
        Record::small("lamp", 5),
    ];
    let summary = bench.handle_records(&records).await;
    assert_eq!((summary.records, summary.sent), (5, 2), "{summary:?}");
    assert_eq!(summary.resume_at, None);
    assert!(bench.undeliverable().is_empty());
}
