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
