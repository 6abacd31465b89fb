//! Chapter: a caller with few grants.

use serde_json::{Value, json};

use super::report::{DemoFailure, DemoReport, DemoResult};
use super::stack::{DemoStack, GRANT};

pub(super) async fn run(stack: &DemoStack, report: &mut DemoReport) -> DemoResult {
    report.chapter(
        "Who may do what",
        "Each caller can do only what it was granted.",
    );
    report.action(&format!(
        "a dashboard with the grant {GRANT} reads the fleet"
    ));
    let token = stack.stack.limited_token();
    let token = token.ok_or_else(|| DemoFailure("the stack has no second token".to_owned()))?;
    for id in ["acme:lamp", "other:lamp"] {
        let body = json!({ "reported": { "led": "on" } });
        let path = format!("/v1/shadows/{id}");
        let (status, _) = stack.api("PATCH", &path, body).await?;
        report.check(format!("{id} is written"), status, 200)?;
    }
    let read = async |path| stack.http("GET", path, Some(token), &Value::Null).await;
    let (_, listed) = read("/v1/shadows").await?;
    let listed = listed["shadows"].as_array();
    let ids: Vec<&str> = listed.map_or_else(Vec::new, |shadows| {
        let ids = shadows.iter().filter_map(|shadow| shadow["id"].as_str());
        ids.collect()
    });
    report.check("its list holds acme's shadow only", ids, vec!["acme:lamp"])?;
    let (status, problem) = read("/v1/shadows/other:lamp").await?;
    report.check(
        "another one is refused, and the missing grant is named",
        (status, problem["detail"].as_str()),
        (403, Some("the grant shadows:read:other:lamp is missing")),
    )
}
