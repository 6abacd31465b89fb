//! The page of a device.

use std::time::Duration;

use antumbra_service::clock::Clock as _;
use antumbra_service::history::RecordedChange;
use antumbra_service::shadows::{DocumentSet, ShadowId};
use antumbra_shadow::Document;

use crate::support::{TestConsole, text};

#[tokio::test]
async fn the_tree_has_values_deltas_and_ages_by_both_clocks() {
    let console = TestConsole::start().await;
    console
        .report("freezer", r#"{"door":"closed","net":{"ip":"10.0.0.1"}}"#)
        .await;
    console.clock.advance(Duration::from_secs(3600));
    console
        .report(
            "freezer",
            r#"{"temp":{"value":-18.2,"unit":"°C","timestamp":"2026-01-31T12:30:00Z"}}"#,
        )
        .await;
    console
        .desire("freezer", r#"{"temp":{"value":-20},"mode":"eco"}"#)
        .await;
    console.clock.advance(Duration::from_secs(180));
    let shown = text(&console.html("/device?id=freezer").await);
    assert!(shown.contains("door \"closed\" 1 h ago server"), "{shown}");
    assert!(
        shown.contains("mode absent desired \"eco\" , open 3 min \"eco\" open 3 min"),
        "{shown}"
    );
    assert!(shown.contains("net ip \"10.0.0.1\""), "{shown}");
    assert!(shown.contains("temp -18.2 °C 30 min late"), "{shown}");
    assert!(shown.contains("33 min ago device"), "{shown}");
    assert!(shown.contains("4 values, 2 not yet as desired."), "{shown}");
    let shown = text(&console.html("/device?id=freezer&fields=open").await);
    assert!(
        !shown.contains("\"closed\"") && shown.contains("\"eco\""),
        "{shown}"
    );
}

#[tokio::test]
async fn desired_is_previewed_written_and_guarded_by_its_version() {
    let mut console = TestConsole::start().await;
    console.report("lamp", r#"{"led":"on"}"#).await;
    let page = console.html("/device?id=lamp&edit=1").await;
    assert!(page.contains("name=\"if-version\" value=\"0\""), "{page}");
    let path = "/device?id=lamp&edit=1";
    let preview = console
        .post(path, &[("patch", r#"{"led":"off"}"#), ("do", "preview")])
        .await;
    assert_eq!(preview.status, 200);
    assert!(
        text(&preview.text).contains("Preview , not written + added /led \"off\""),
        "{}",
        text(&preview.text)
    );
    let written = console
        .post(path, &[("patch", r#"{"led":"off"}"#), ("if-version", "0")])
        .await;
    assert_eq!(
        (written.status, written.header("location")),
        (303, Some("/device?id=lamp"))
    );
    let shown = text(&console.html("/device?id=lamp").await);
    assert!(
        shown.contains("1 open") && shown.contains("Written: desired v1"),
        "{shown}"
    );
    assert!(
        !text(&console.html("/device?id=lamp").await).contains("Written:"),
        "shown once"
    );
    let conflict = console
        .post(path, &[("patch", r#"{"led":"dim"}"#), ("if-version", "0")])
        .await;
    assert_eq!(conflict.status, 422);
    assert!(
        conflict.text.contains("{&quot;led&quot;:&quot;dim&quot;}"),
        "the text is kept"
    );
    let invalid = console.post(path, &[("patch", "{")]).await;
    assert_eq!(invalid.status, 422);
    assert!(text(&invalid.text).contains("Desired was not written."));
    let shadow = ShadowId::new("lamp").unwrap();
    let read = console
        .services
        .shadows
        .read(&shadow, DocumentSet::Both)
        .await
        .unwrap();
    assert_eq!(
        read.desired.unwrap().document,
        Document::parse(r#"{"led":"off"}"#).unwrap()
    );
}

#[tokio::test]
async fn a_shadow_that_does_not_exist_can_be_created() {
    let mut console = TestConsole::start().await;
    let shown = text(&console.html("/device?id=new").await);
    assert!(
        shown.contains("This shadow does not exist.") && shown.contains("Edit desired"),
        "{shown}"
    );
    let written = console
        .post("/device?id=new", &[("patch", r#"{"a":1}"#)])
        .await;
    assert_eq!(written.status, 303);
    assert_eq!(console.get("/device?id=").await.status, 400);
    assert_eq!(console.get("/device?id=new&as=json").await.status, 200);
    assert_eq!(console.get("/device?id=other&as=json").await.status, 404);
}

#[tokio::test]
async fn times_that_cannot_be_read_are_an_error_on_the_page() {
    let console = TestConsole::start().await;
    console.report("lamp", r#"{"led":"on"}"#).await;
    let shown = text(&console.html("/device?id=lamp&at=soon").await);
    assert!(shown.contains("\"soon\" is not a time"), "{shown}");
    let shown = text(&console.html("/device?id=lamp&at=11:00").await);
    assert!(
        shown.contains("is not recorded") || shown.contains("did not exist"),
        "{shown}"
    );
    let shown = text(&console.html("/device?id=lamp&from=x").await);
    assert!(shown.contains("The moments cannot be compared."), "{shown}");
}

/// Also used where a change is needed.
pub(crate) fn change(console: &TestConsole, version: i64) -> RecordedChange {
    RecordedChange {
        time: console.clock.now(),
        version: antumbra_service::shadows::Version(version),
        operation: antumbra_service::history::Operation::Modify,
        client_token: None,
        documents: Vec::new(),
    }
}

/// Temperatures that rise, and a door that opens once.
fn documents(count: usize) -> Vec<String> {
    let document = |n: usize| {
        let door = if n == 2 { "open" } else { "closed" };
        format!("{{\"door\":\"{door}\",\"temp\":{{\"value\":{n}}}}}")
    };
    (0..count).map(document).collect()
}

#[tokio::test]
async fn the_past_has_a_state_a_timeline_a_chart_and_differences() {
    let console = TestConsole::start().await;
    console
        .recorded_reports("freezer", &documents(14), Duration::from_secs(60))
        .await;
    let page = console.html("/device?id=freezer").await;
    let shown = text(&page);
    assert!(shown.contains("14 changes in this range"), "{shown}");
    assert!(shown.contains("reported v14 1 min ago"), "{shown}");
    // Five are shown, then similar ones fold.
    assert!(shown.contains("5 changes of /temp"), "{shown}");
    assert!(
        page.contains("class=\"series\" d=\"M") && page.contains("/temp/value"),
        "{page}"
    );
    let shown = text(
        &console
            .html("/device?id=freezer&at=2026-01-31T12:02:30Z")
            .await,
    );
    assert!(
        shown.contains("State at 12:02:30") && shown.contains("reported v3, desired none"),
        "{shown}"
    );
    assert!(
        shown.contains("door \"open\" \"closed\""),
        "the value then and now: {shown}"
    );
    assert!(shown.contains("Back to now"), "{shown}");
    let (_, previous) = page.split_once("rel=\"prev\" href=\"").unwrap();
    let previous = previous.split('"').next().unwrap().replace("&amp;", "&");
    let shown = text(&console.html(&previous).await);
    assert!(shown.contains("reported v13"), "{shown}");
    let shown = text(
        &console
            .html("/device?id=freezer&from=12:01:30&to=now")
            .await,
    );
    assert!(
        shown.contains("~ updated /temp /value 1 13 reported"),
        "{shown}"
    );
    assert!(shown.contains("0 added, 1 updated, 0 removed"), "{shown}");
    let shown = text(&console.html("/device?id=freezer&path=/door").await);
    assert!(shown.contains("\"closed\" → to \"open\""), "{shown}");
    let shown = text(&console.html("/device?id=freezer&at=11:00").await);
    assert!(shown.contains("did not exist"), "{shown}");
}

#[tokio::test]
async fn the_page_of_a_busy_device_stays_small() {
    let console = TestConsole::start().await;
    let document = |n: usize| {
        let fields = (0..500).map(|field| {
            format!(
                "\"field-{field}\":{}",
                if field == n % 500 { n } else { field }
            )
        });
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    let documents: Vec<String> = (0..150).map(document).collect();
    console
        .recorded_reports("busy", &documents, Duration::from_secs(10))
        .await;
    let request = console
        .request("GET", "/device?id=busy")
        .header("accept-encoding", "gzip, br, zstd");
    let response = request.send().await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-encoding"), Some("zstd"));
    assert!(response.bytes < 60 * 1024, "{} bytes", response.bytes);
}
