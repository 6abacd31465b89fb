//! Regression: the DynamoDB store of a predecessor could not be passed to its manager. (`faults::writes`
//! covers its other fault, that every cancelled transaction counted as a conflict.)

use antumbra_service::shadows::{DocumentSet, Layout, ShadowId, Shadows};
use serde_json::json;

use crate::contract::fresh;

#[tokio::test]
async fn the_service_accepts_the_dynamodb_store() {
    for layout in [Layout::Separate, Layout::Combined] {
        let shadows = Shadows::new(fresh(layout).await);
        let lamp = ShadowId::new("lamp").unwrap();
        for led in ["on", "off"] {
            shadows.report(&lamp, &json!({"led": led})).await.unwrap();
        }
        let held = shadows
            .read(&lamp, DocumentSet::Reported)
            .await
            .unwrap()
            .reported
            .unwrap();
        assert_eq!(held.document.as_str(), r#"{"led":"off"}"#);
    }
}
