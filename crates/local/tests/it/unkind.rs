//! The stack with the faults that AWS allows.

use std::time::Duration;

use antumbra_local::stack::Options;
use antumbra_local::unkind::Unkind;
use serde_json::json;

use crate::support::Home;

/// Requests overtake each other and come twice, and writes meet conflicts: the newest value by its own time stays.
#[tokio::test]
async fn the_newest_timestamped_value_stays_however_invocations_run() {
    let home = Home::with_api(Options {
        unkind: Unkind::with_seed(7),
        ..Options::default()
    })
    .await;
    let mut device = home.device("lamp").await;
    for n in 1..=20 {
        let value = json!({"value": n, "timestamp": 1_700_000_000_000_i64 + n});
        let update = json!({"state": {"reported": {"level": value}}});
        device
            .publish("shadow/lamp/update", false, &update.to_string())
            .await;
    }
    let newest = async {
        loop {
            let shadow = home.get("/v1/shadows/lamp").await;
            if shadow["reported"]["document"]["level"]["value"] == 20 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // Longer than a retry of an invocation takes.
    let newest = tokio::time::timeout(Duration::from_secs(150), newest).await;
    newest.expect("the newest value is stored");
    device.leave().await;
    home.stop().await;
}
