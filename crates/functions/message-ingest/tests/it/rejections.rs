//! Messages that can never be stored: quarantined with a reason and their original text.

use serde_json::json;

use crate::support::{Bench, event, record};
use antumbra_testkit::attribute;
use antumbra_testkit::dynamodb::Reply;
use antumbra_testkit::table::cases;

#[tokio::test]
async fn every_rejection_has_a_reason_and_names_limits() {
    let bench = Bench::new().await;
    let cases: Vec<[String; 3]> = cases(include_str!("../../testdata/rejections.txt"));
    let id = |number: usize| format!("m-{number:02}");
    let records = cases.iter().enumerate();
    let records = records.map(|(number, [text, ..])| record(&id(number), text, None));
    let summary = bench.handle(&event(records)).await;
    let valid = cases.iter().filter(|[_, reason, _]| reason.is_empty());
    let valid = valid.count();
    assert_eq!(summary.failed, [""; 0]);
    assert_eq!(summary.count("stored"), valid);
    assert_eq!(summary.count("quarantined"), cases.len() - valid);
    let kept = bench.quarantine.accepted();
    for (number, [text, reason, detail]) in cases.iter().enumerate() {
        let message = kept.iter().find(|message| message.id == id(number));
        let shown: String = text.chars().take(60).collect();
        if reason.is_empty() {
            assert_eq!(message, None, "{shown}");
            continue;
        }
        let message = message.unwrap_or_else(|| panic!("{shown} was stored"));
        assert_eq!(message.body, *text);
        assert_eq!(attribute(message, "reason"), Some(&**reason), "{shown}");
        // The queue that a redrive sends it back to.
        let source = attribute(message, "source").unwrap();
        assert!(source.starts_with("arn:aws:sqs:"), "{source}");
        if !detail.is_empty() {
            assert_eq!(attribute(message, "detail"), Some(&**detail), "{shown}");
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
    assert_eq!(summary.count("quarantined"), 2);
    assert_eq!((summary.count("stored"), summary.failed.len()), (1, 0));
    let reasons = bench.quarantined().into_iter().map(|(reason, _)| reason);
    let mut reasons: Vec<_> = reasons.collect();
    reasons.sort();
    assert_eq!(reasons, ["SourceFull", "Unstorable"]);
}

/// Recording the source may be rejected, throttled or slow; the message is stored all the same.
#[tokio::test]
async fn a_source_that_cannot_be_recorded_blocks_no_message() {
    let bench = Bench::new().await;
    let of_sources = |call: &antumbra_testkit::dynamodb::Call| {
        let partition = call.body.pointer("/Item/uuid/S");
        partition.is_some_and(|text| text.as_str().unwrap().starts_with("#sources#"))
    };
    bench.endpoint.script(move |call| match of_sources(call) {
        true => Reply::fail(400, "ValidationException"),
        false => Reply::Pass,
    });
    let one = || event([record("m", &crate::support::text("lamp", 1), None)]);
    assert_eq!(bench.handle(&one()).await.count("stored"), 1);
    bench.throttle(of_sources);
    let throttled = event([record("n", &crate::support::text("lamp", 2), None)]);
    let summary = bench.handle(&throttled).await;
    assert_eq!((summary.count("stored"), summary.failed.len()), (1, 0));
}
