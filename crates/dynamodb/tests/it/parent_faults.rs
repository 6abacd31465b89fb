//! A fault of the library this grew from, kept out: its persistence could not be given to its manager.
//! (That every cancelled transaction was taken for a conflict is kept out in `faults::writes`.)

use antumbra_service::shadows::{DocumentSet, Layout, ShadowId, Shadows};
use serde_json::json;

use crate::contract::fresh;

#[tokio::test]
async fn the_dynamodb_persistence_fits_the_manager() {
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
