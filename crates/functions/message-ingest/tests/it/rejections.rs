//! Messages that can never be stored: quarantined with a reason and their original text.

use serde_json::json;

use crate::support::{Bench, event, record, throttled};
use antumbra_testkit::dynamodb::Reply;

/// A message with this much padding in it.
fn padded(bytes: usize) -> String {
    json!({"thingName": "lamp", "epochTime": 1, "padding": "x".repeat(bytes)}).to_string()
}

fn deep(levels: usize) -> String {
    let inner = format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    format!(r#"{{"thingName":"lamp","epochTime":1,"deep":{inner}}}"#)
}

#[tokio::test]
async fn every_rejection_has_a_reason_and_names_limits() {
    let bench = Bench::new().await;
    let of_uuid = |uuid: &str| format!(r#"{{"thingName":{uuid},"epochTime":1}}"#);
    let of_id = |id: &str| format!(r#"{{"thingName":"lamp","epochTime":{id}}}"#);
    let long = "u".repeat(129);
    let cases = [
        (
            "".to_owned(),
            "NotJson",
            "not JSON at byte 0: a value is expected",
        ),
        (
            "{ not JSON".to_owned(),
            "NotJson",
            "not JSON at byte 2: a string is expected",
        ),
        (r#"{"thingName":"\ud800"}"#.to_owned(), "NotJson", ""),
        (
            "null".to_owned(),
            "NotAnObject",
            "a document is a JSON object, not null",
        ),
        (
            "[{}]".to_owned(),
            "NotAnObject",
            "a document is a JSON object, not an array",
        ),
        ("\"text\"".to_owned(), "NotAnObject", ""),
        (
            "{}".to_owned(),
            "UuidMissing",
            "there is no field thingName",
        ),
        (
            of_uuid("null"),
            "UuidInvalid",
            "the field thingName holds null, not a string or a whole number",
        ),
        (
            of_uuid("1.5"),
            "UuidInvalid",
            "the field thingName holds a number with a fraction, not a string or a whole number",
        ),
        (of_uuid("{}"), "UuidInvalid", ""),
        (of_uuid("[]"), "UuidInvalid", ""),
        (of_uuid("true"), "UuidInvalid", ""),
        (
            of_uuid("\"\""),
            "UuidInvalid",
            "the field thingName: the uuid is empty",
        ),
        (
            of_uuid("\"a/b\""),
            "UuidInvalid",
            "the field thingName: the uuid may not hold '/'",
        ),
        (of_uuid("\"+\""), "UuidInvalid", ""),
        (of_uuid("\"#sources\""), "UuidInvalid", ""),
        (of_uuid("\"a\\u0000\""), "UuidInvalid", ""),
        (of_uuid("\"a\\n\""), "UuidInvalid", ""),
        (
            of_uuid("\"$aws\""),
            "UuidInvalid",
            "the field thingName: the uuid starts with $, which is reserved",
        ),
        (
            of_uuid(&format!("\"{long}\"")),
            "UuidInvalid",
            "the field thingName: the uuid has 129 bytes, the limit is 128",
        ),
        (
            r#"{"thingName":"lamp"}"#.to_owned(),
            "MessageIdMissing",
            "there is no field epochTime",
        ),
        (of_id("null"), "MessageIdInvalid", ""),
        (
            of_id("\"\""),
            "MessageIdInvalid",
            "the field epochTime: it is empty",
        ),
        (of_id("0.5"), "MessageIdInvalid", ""),
        (
            of_id("\"a/b\""),
            "MessageIdInvalid",
            "the field epochTime: the messageId may not hold '/'",
        ),
        (
            of_id(&format!("\"{}\"", "9".repeat(300))),
            "TooLarge",
            "the topic of a request for it would have 339 bytes, the limit is 256",
        ),
        (
            of_id(&format!("\"{}\"", "9".repeat(2000))),
            "MessageIdInvalid",
            "the field epochTime: the messageId has 2019 bytes, the limit is 1024",
        ),
        (padded(130_000), "", ""),
        (
            padded(131_072),
            "TooLarge",
            "the response with it would have 131177 bytes, the limit is 131072",
        ),
        (padded(1_000_000), "TooLarge", ""),
        (
            of_id("1e126"),
            "Unstorable",
            "at byte 32: a number is near 1e126, outside 1e-130 to 1e126",
        ),
        (
            of_id(&format!("1,\"n\":{}", "1".repeat(39))),
            "Unstorable",
            "at byte 38: a number has 39 significant digits, the limit is 38",
        ),
        (
            of_id("1,\"a\":1,\"a\":2"),
            "Unstorable",
            "an object has a name twice",
        ),
        (
            of_id("1,\"\":2"),
            "Unstorable",
            "invalid: a name in a document is empty",
        ),
        (deep(30), "", ""),
        (
            deep(31),
            "Unstorable",
            "the document is 33 levels deep, the limit is 32",
        ),
        (deep(10_000), "Unstorable", ""),
    ];
    let records: Vec<_> = cases
        .iter()
        .enumerate()
        .map(|(number, (text, ..))| record(&format!("m-{number:02}"), text, None))
        .collect();
    let summary = bench.handle(&event(records)).await;
    let refused = cases
        .iter()
        .filter(|(_, reason, _)| !reason.is_empty())
        .count();
    assert_eq!(summary.failed, [""; 0]);
    assert_eq!(
        (summary.count("quarantined"), summary.count("stored")),
        (refused, cases.len() - refused)
    );
    let kept = bench.quarantine.accepted();
    for (number, (text, reason, detail)) in cases.iter().enumerate() {
        let message = kept
            .iter()
            .find(|message| message.id == format!("m-{number:02}"));
        let shown: String = text.chars().take(60).collect();
        if reason.is_empty() {
            assert_eq!(message, None, "{shown}");
            continue;
        }
        let message = message.unwrap_or_else(|| panic!("{shown} was stored"));
        assert_eq!(message.body, *text);
        assert_eq!(
            message.attributes[0],
            ("reason".to_owned(), (*reason).to_owned()),
            "{shown}"
        );
        // The queue that a redrive sends it back to.
        let (name, source) = &message.attributes[1];
        assert_eq!(name, "source", "{shown}");
        assert!(source.starts_with("arn:aws:sqs:"), "{source}");
        if !detail.is_empty() {
            assert_eq!(
                message.attributes[3],
                ("detail".to_owned(), (*detail).to_owned()),
                "{shown}"
            );
        }
    }
}

#[tokio::test]
async fn messages_that_the_store_rejects_are_quarantined() {
    let bench = Bench::new().await;
    bench.endpoint.script(|call| {
        let of = |name: &str| call.body.pointer("/Item/uuid/S") == Some(&json!(name));
        let refusal = |code| Reply::fail(400, code);
        match call.operation.as_str() {
            "PutItem" if of("full") => refusal("ItemCollectionSizeLimitExceededException"),
            "PutItem" if of("refused") => refusal("ValidationException"),
            _ => Reply::Pass,
        }
    });
    let records = ["full", "refused", "lamp"]
        .map(|source| record(source, &crate::support::text(source, 1), None));
    let summary = bench.handle(&event(records)).await;
    assert_eq!(
        (
            summary.count("quarantined"),
            summary.count("stored"),
            summary.failed.len()
        ),
        (2, 1, 0)
    );
    let mut reasons: Vec<_> = bench
        .quarantined()
        .into_iter()
        .map(|(reason, _)| reason)
        .collect();
    reasons.sort();
    assert_eq!(reasons, ["SourceFull", "Unstorable"]);
}

/// Recording the source may be rejected; the message is stored all the same.
#[tokio::test]
async fn a_source_that_cannot_be_recorded_blocks_no_message() {
    let bench = Bench::new().await;
    let of_sources = |call: &antumbra_testkit::dynamodb::Call| {
        call.body.pointer("/Item/uuid/S") == Some(&json!("#sources"))
    };
    bench.endpoint.script(move |call| match of_sources(call) {
        true => Reply::fail(400, "ValidationException"),
        false => Reply::Pass,
    });
    let one = || event([record("m", &crate::support::text("lamp", 1), None)]);
    assert_eq!(bench.handle(&one()).await.count("stored"), 1);
    // If recording the source is throttled, the message fails and is received again.
    bench.endpoint.script(move |call| match of_sources(call) {
        true => throttled(),
        false => Reply::Pass,
    });
    let waiting = bench
        .handle_within(&one(), std::time::Duration::from_secs(2))
        .await;
    assert_eq!(waiting.failed, ["m"]);
}
