//! Ids and their order; bodies.

use antumbra_service::inbox::MessageParser;

use crate::support::{Bench, event, record};

fn parser(uuid: &str, message_id: &str, digits: usize) -> MessageParser {
    MessageParser {
        uuid: uuid.parse().unwrap(),
        message_id: message_id.parse().unwrap(),
        padding: digits.to_string().parse().unwrap(),
        retention: None,
    }
}

/// The ids of one source, in the inbox's order, without the suffix that the queue adds.
async fn places(parser: MessageParser, values: &[&str]) -> Vec<String> {
    let bench = Bench::with(parser).await;
    let records = values.iter().enumerate().map(|(number, value)| {
        let body = format!(r#"{{"thingName":"lamp","epochTime":{value}}}"#);
        record(&format!("m{number}"), &body, None)
    });
    let summary = bench.handle(&event(records)).await;
    assert_eq!(summary.count("stored"), values.len());
    let ids = bench.ids("lamp").await;
    let place = |id: &String| id.split("-1564669332364-").next().unwrap().to_owned();
    ids.iter().map(place).collect()
}

#[tokio::test]
async fn numbers_sort_as_texts_without_padding_and_as_numbers_with_it() {
    let values = ["10", "9", "\"8\"", "100", "5.0", "1e1"];
    let plain = places(parser("thingName", "epochTime", 0), &values).await;
    assert_eq!(plain, ["10", "10", "100", "5", "8", "9"]);
    let padded = places(parser("thingName", "epochTime", 4), &values).await;
    assert_eq!(padded, ["0005", "0008", "0009", "0010", "0010", "0100"]);
}

#[tokio::test]
async fn numbers_sort_as_numbers_by_default() {
    let values = ["10", "9", "1564669331", "1564669332364", "\"7\""];
    let sorted = places(MessageParser::default(), &values).await;
    let expected = [
        "0000000009",
        "0000000010",
        "1564669331",
        "1564669332364",
        "7",
    ];
    assert_eq!(sorted, expected);
}

#[tokio::test]
async fn negative_numbers_sort_before_zero_and_strings_stay_strings() {
    let values = ["3", "-1", "-10", "0", "\"2026-01-31\"", "\"b\""];
    let padded = places(parser("thingName", "epochTime", 3), &values).await;
    assert_eq!(padded, ["-989", "-998", "000", "003", "2026-01-31", "b"]);
}

#[tokio::test]
async fn a_number_too_wide_to_sort_is_quarantined() {
    let bench = Bench::with(parser("thingName", "epochTime", 3)).await;
    let text = r#"{"thingName":"lamp","epochTime":1000}"#;
    let summary = bench.handle(&event([record("m", text, None)])).await;
    assert_eq!(summary.count("quarantined"), 1);
    assert_eq!(
        bench.quarantined(),
        [("MessageIdInvalid".to_owned(), text.to_owned())]
    );
}

#[tokio::test]
async fn dotted_paths_reach_nested_fields_and_numbers_name_sources() {
    let bench = Bench::with(parser(
        "data.mo_header.imei",
        "data.mo_header.cdr_reference",
        0,
    ))
    .await;
    let text = r#"{"data":{"mo_header":{"imei":300234010753370,"cdr_reference":-1240133}}}"#;
    let summary = bench.handle(&event([record("m", text, None)])).await;
    assert_eq!(summary.count("stored"), 1);
    assert_eq!(
        bench.ids("300234010753370").await,
        ["-1240133-1564669332364-m"]
    );
    let short = r#"{"data":{"mo_header":"none"}}"#;
    bench.handle(&event([record("n", short, None)])).await;
    assert_eq!(bench.quarantined()[0].0, "UuidMissing");
}

#[tokio::test]
async fn stored_messages_are_returned_unchanged() {
    let bench = Bench::new().await;
    let sent = r#" { "thingName": "lamp", "epochTime": 1,
        "big": 9007199254740993, "digits": 12345678901234567890123456789012345678,
        "whole": 72, "spelt": 72.50, "exponent": 1E3, "null": null, "empty": [[], {}, ""], "deep": {"b": {"a": [0.10]}} } "#;
    let back = concat!(
        r#"{"big":9007199254740993,"deep":{"b":{"a":[0.10]}},"digits":12345678901234567890123456789012345678,"#,
        r#""empty":[[],{},""],"epochTime":1,"exponent":1E3,"null":null,"spelt":72.50,"thingName":"lamp","whole":72}"#,
    );
    bench.handle(&event([record("m", sent, None)])).await;
    let found = bench.body("lamp", "0000000001-1564669332364-m").await;
    assert_eq!(found.as_deref(), Some(back));
}

#[tokio::test]
async fn retention_sets_the_expiry() {
    let day = std::time::Duration::from_secs(24 * 60 * 60);
    let bench = Bench::with(MessageParser {
        retention: Some(30 * day),
        ..MessageParser::default()
    })
    .await;
    let text = crate::support::text("lamp", 1);
    bench.handle(&event([record("m", &text, None)])).await;
    let items = bench
        .database
        .scan()
        .table_name(&bench.table)
        .send()
        .await
        .unwrap();
    let item = items
        .items()
        .iter()
        .find(|item| item.contains_key("body"))
        .unwrap();
    let ttl: u64 = item["ttl"].as_n().unwrap().parse().unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    let left = ttl - now.as_secs();
    assert!((30 * 86_400 - 60..=30 * 86_400).contains(&left), "{left}");
}
