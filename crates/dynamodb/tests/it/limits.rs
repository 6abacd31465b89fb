//! DynamoDB's limit, found by DynamoDB: what we reckon to be the largest item is the largest it takes.

use antumbra_service::shadows::adapter::{ITEM_BYTES, item_bytes};
use antumbra_service::shadows::{ClientToken, Layout, ShadowId, State, Write, Zone};
use antumbra_testkit::sample::{document, named, new, number, shadow, write, write_one};
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::store::Store;

/// Documents that weigh in different ways; the padding is added to each.
fn shapes() -> [String; 5] {
    let many = |count: usize, one: &dyn Fn(usize) -> String| {
        (0..count).map(one).collect::<Vec<_>>().join(",")
    };
    [
        String::new(),
        format!(
            r#","numbers":[{}]"#,
            many(4000, &|n| match n % 6 {
                0 => format!("{n}"),
                1 => format!("-{n}.{n}"),
                2 => format!("{n}00000"),
                3 => format!("0.000{n}"),
                4 => format!("{n}e-30"),
                _ => format!("1{n:037}"),
            })
        ),
        format!(
            r#","members":{{{}}}"#,
            many(3000, &|n| format!(r#""å{n}":{}"#, n % 2 == 0))
        ),
        format!(
            r#","empty":[{}]"#,
            many(6000, &|n| ["{}", "[]", "null", "\"\""][n % 4].to_owned())
        ),
        format!(
            r#","sensors":{{{}}}"#,
            many(500, &|n| format!(
                r#""s{n}":{{"value":{n}.25,"unit":"°C","timestamp":17000000{n:05}}}"#
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
        reported: new(document(&json), 0),
        desired,
        zone: Some(Zone::new("Europe/Stockholm").unwrap()),
        client_token: Some(ClientToken::new("token").unwrap()),
        ..write(lamp)
    }
}

async fn the_limit_is_where_we_reckon(layout: Layout, states: &[State]) {
    let store = Store::fresh(layout).await;
    let lamps = [shadow("a"), named("My House#Basement", "Ö")];
    for (shape, lamp) in shapes().iter().zip(lamps.iter().cycle()) {
        let room = ITEM_BYTES - item_bytes(&padded(lamp, layout, shape, 0), states);
        let largest = padded(lamp, layout, shape, room);
        write_one(&store.shadows, largest).await.unwrap();

        // The same item with one byte more, past all that would keep us from sending it.
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
        let refused = put("x").await.unwrap_err();
        assert_eq!(refused.code(), Some("ValidationException"));
        let message = refused.message().unwrap();
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
async fn the_limit_of_one_document() {
    the_limit_is_where_we_reckon(Layout::Separate, &[State::Reported]).await;
}

#[tokio::test]
async fn the_limit_of_both_together() {
    let both = [State::Reported, State::Desired];
    the_limit_is_where_we_reckon(Layout::Combined, &both).await;
}
