//! Failures of the table, the permissions and the network.

use std::time::Duration;

use antumbra_dynamodb::{DynamoDbShadows, ShadowTableConfig};
use antumbra_service::shadows::Read;
use antumbra_service::shadows::{
    DocumentSet, ExpectedVersion, Layout, ReadConsistency, ShadowStore, StoreError,
};
use antumbra_testkit::dynamodb::Reply;
use antumbra_testkit::sample::{
    delete, delete_one, document, new, only, shadow, whole, write, write_one,
};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use serde_json::json;

use super::{fails, unavailable};
use crate::store::shadows;

/// Results of every operation of the store.
async fn all_operations(shadows: &DynamoDbShadows) -> Vec<Result<(), StoreError>> {
    let lamp = shadow("lamp");
    let read = async |consistency| {
        let read = Read {
            shadow: lamp.clone(),
            parts: DocumentSet::Both,
        };
        only(shadows.read_many(&[read], consistency).await).map(drop)
    };
    let alone = antumbra_service::shadows::Write {
        reported: new(document("{}"), 0),
        ..write(&lamp)
    };
    vec![
        read(ReadConsistency::Strong).await,
        read(ReadConsistency::Snapshot).await,
        write_one(shadows, alone).await.map(drop),
        write_one(shadows, whole(&lamp, 1, 0)).await.map(drop),
        delete_one(shadows, delete(&lamp, ExpectedVersion::Any)).await,
        shadows.list("lamp", 10, None).await.map(drop),
    ]
}

#[tokio::test]
async fn errors_for_the_operator_are_unavailable() {
    let store = shadows(Layout::Separate).await;
    let absent = DynamoDbShadows::new(
        store.client.clone(),
        ShadowTableConfig::new("no-such-table"),
    );
    for result in all_operations(&absent).await {
        let text = unavailable(result);
        assert!(text.ends_with(": ResourceNotFoundException"), "{text}");
    }
    for (status, code) in [
        (400, "AccessDeniedException"),
        (400, "UnrecognizedClientException"),
        (400, "ExpiredTokenException"),
        (500, "InternalServerError"),
        (503, "ServiceUnavailable"),
    ] {
        store.endpoint.script(move |_| fails(status, code));
        for result in all_operations(&store).await {
            let text = unavailable(result);
            assert!(text.ends_with(code), "{text}");
        }
    }
}

#[tokio::test]
async fn no_response_and_no_connection_are_unavailable() {
    let store = shadows(Layout::Separate).await;
    let config = store.client.config().to_builder();
    let hasty = TimeoutConfig::builder()
        .operation_timeout(Duration::from_millis(40))
        .build();
    let hasty = Client::from_conf(config.timeout_config(hasty).build());
    store.endpoint.script(|_| Reply::Hang);
    let shadows = DynamoDbShadows::new(hasty, ShadowTableConfig::new(&store.table));
    for result in all_operations(&shadows).await {
        let text = unavailable(result);
        assert!(text.ends_with(": no response in time"), "{text}");
    }

    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let config = store.client.config().to_builder();
    let config = config.endpoint_url(format!("http://{address}"));
    let nobody = Client::from_conf(config.build());
    let shadows = DynamoDbShadows::new(nobody, ShadowTableConfig::new(&store.table));
    for result in all_operations(&shadows).await {
        let text = unavailable(result);
        assert!(text.ends_with(": no connection"), "{text}");
    }
}

/// DynamoDB repeats values in its messages; callers must not see them.
#[tokio::test]
async fn no_error_repeats_stored_values() {
    let store = shadows(Layout::Separate).await;
    for code in ["ValidationException", "AccessDeniedException", "Odd"] {
        store.endpoint.script(move |_| {
            let kind = format!("com.amazonaws.dynamodb.v20120810#{code}");
            let message = "Value 'secret' at 'item' failed to satisfy constraint";
            Reply::Respond(400, json!({"__type": kind, "message": message}))
        });
        for result in all_operations(&store).await {
            let error = result.unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
            assert!(error.to_string().contains(code), "{error}");
        }
    }
}
