//! The item size limit: the largest item by our computation is the largest that DynamoDB accepts.

use antumbra_service::shadows::adapter::{ITEM_BYTES, item_bytes};
use antumbra_service::shadows::{ClientToken, Layout, NewDocument, ShadowId, State, Write, Zone};
use antumbra_testkit::sample::{document, named, new, number, shadow, write, write_one};
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::store::shadows;

/// Numbers with an undisputed size.
const EVEN_NUMBERS: [&str; 12] = [
    "0",
    "7",
    "-12345",
    "100",
    "100.5",
    "-0.15",
    "0.0000001",
    "3.14159",
    "1e125",
    "-1e-130",
    "1700000000123456789",
    "99999999999999999999999999999999999999",
];

/// Numbers whose outermost digit shares a pair with a zero. DynamoDB Local counts that pair, the embedded
/// DynamoDB counts half of the digits and arrives at one byte less. We use the larger size, so that an item
/// that passes our check fits everywhere.
const ODD_NUMBERS: [&str; 6] = ["110", "-110", "0.015", "-0.015", "1200000", "0.00000000110"];

/// Documents of different types of values; the padding is added to each.
fn shapes() -> [String; 5] {
    let many = |count: usize, one: &dyn Fn(usize) -> String| {
        (0..count).map(one).collect::<Vec<_>>().join(",")
    };
    [
        String::new(),
        format!(
            r#","numbers":[{}]"#,
            many(600, &|n| EVEN_NUMBERS[n % EVEN_NUMBERS.len()].to_owned())
        ),
        format!(
            r#","members":{{{}}}"#,
            many(400, &|n| format!(r#""å{n}":{}"#, n % 2 == 0))
        ),
        format!(
            r#","empty":[{}]"#,
            many(400, &|n| ["{}", "[]", "null", "\"\""][n % 4].to_owned())
        ),
        format!(
            r#","sensors":{{{}}}"#,
            many(60, &|n| format!(
                r#""s{n}":{{"value":{n}.25,"unit":"°C","timestamp":17000000{n:04}7}}"#
            ))
        ),
    ]
}

fn padded(lamp: &ShadowId, layout: Layout, shape: &str, padding: usize) -> Write {
    let json = format!(r#"{{"pad":"{}"{shape}}}"#, "x".repeat(padding));
    let desired = match layout {
        Layout::Separate => None,
        Layout::Combined => new(number(-7), 0),
    };
    Write {
        reported: new(document(&json), 0).map(|new| NewDocument {
            zone: Some(Zone::new("Europe/Stockholm").unwrap()),
            ..new
        }),
        desired,
        client_token: Some(ClientToken::new("token").unwrap()),
        ..write(lamp)
    }
}

async fn the_limit_is_as_computed(layout: Layout, states: &[State]) {
    let store = shadows(layout).await;
    let lamps = [shadow("a"), named("My House#Basement", "Ö")];
    for (shape, lamp) in shapes().iter().zip(lamps.iter().cycle()) {
        let room = ITEM_BYTES - item_bytes(&padded(lamp, layout, shape, 0), states);
        let largest = padded(lamp, layout, shape, room);
        write_one(&*store, largest).await.unwrap();

        // The same item with one more byte, sent without our check.
        let scan = store.client.scan().table_name(&store.table);
        let items = scan.send().await.unwrap().items.unwrap();
        let [item] = <[_; 1]>::try_from(items).unwrap();
        let put = |longer: &str| {
            let mut item = item.clone();
            let Some(AttributeValue::M(reported)) = item.get_mut("reported") else {
                panic!("a map");
            };
            let pad = "x".repeat(room) + longer;
            reported.insert("pad".to_owned(), AttributeValue::S(pad));
            let put = store.client.put_item().table_name(&store.table);
            put.set_item(Some(item)).send()
        };
        put("").await.unwrap();
        let rejected = put("x").await.unwrap_err();
        assert_eq!(rejected.code(), Some("ValidationException"));
        let message = rejected.message().unwrap();
        assert!(message.starts_with("Item size"), "{message}");

        let delete = store.client.delete_item().table_name(&store.table);
        let key = |name: &str| item[name].clone();
        delete
            .key("PK", key("PK"))
            .key("SK", key("SK"))
            .send()
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn numbers_of_disputed_size_fit() {
    let store = shadows(Layout::Separate).await;
    let lamp = shadow("lamp");
    let numbers: Vec<&str> = ODD_NUMBERS.into_iter().cycle().take(600).collect();
    let shape = format!(r#","numbers":[{}]"#, numbers.join(","));
    let reported = [State::Reported];
    let room = ITEM_BYTES - item_bytes(&padded(&lamp, Layout::Separate, &shape, 0), &reported);
    let largest = padded(&lamp, Layout::Separate, &shape, room);
    write_one(&*store, largest).await.unwrap();
}

#[tokio::test]
async fn the_limit_of_one_document() {
    the_limit_is_as_computed(Layout::Separate, &[State::Reported]).await;
}

#[tokio::test]
async fn the_limit_of_both_documents() {
    let both = [State::Reported, State::Desired];
    the_limit_is_as_computed(Layout::Combined, &both).await;
}
