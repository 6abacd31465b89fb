//! The page Fleet.

use std::time::Duration;

use crate::support::{TestConsole, text};

#[tokio::test]
async fn rows_show_newest_value_delta_versions_and_age() {
    let console = TestConsole::start().await;
    console
        .report(
            "House A#Kitchen#Freezer",
            r#"{"door":"closed","temp":{"value":-18.2,"unit":"°C"}}"#,
        )
        .await;
    console.clock.advance(Duration::from_secs(180));
    console
        .report("House A#Kitchen#Freezer", r#"{"temp":{"value":-18.1}}"#)
        .await;
    console
        .desire("House A#Kitchen#Freezer", r#"{"mode":"eco","door":"open"}"#)
        .await;
    console.clock.advance(Duration::from_millis(13_500));
    let page = console.html("/").await;
    let shown = text(&page);
    assert!(shown.contains("House A # Kitchen # Freezer"), "{shown}");
    assert!(shown.contains("-18.1 °C /temp 2 open"), "{shown}");
    assert!(
        shown.contains("2 open /door /mode v2 v1 13 s ago"),
        "{shown}"
    );
    assert!(
        page.contains("href=\"/device?id=House+A%23Kitchen%23Freezer\""),
        "{page}"
    );
}

#[tokio::test]
async fn an_empty_fleet_says_what_to_do() {
    let console = TestConsole::start().await;
    let shown = text(&console.html("/").await);
    assert!(shown.contains("No shadows yet"), "{shown}");
    assert!(shown.contains("antumbra --local shadow report"), "{shown}");
}

#[tokio::test]
async fn pages_read_the_index_and_one_batch() {
    let console = TestConsole::start().await;
    for n in 0..60 {
        console
            .report(&format!("House A#{n:03}"), r#"{"led":"on"}"#)
            .await;
    }
    console.report("House B#1", r#"{"led":"on"}"#).await;
    console.endpoint.take_calls();
    let page = console.html("/?prefix=House+A%23").await;
    let calls = console.endpoint.take_calls();
    let batches = calls
        .iter()
        .filter(|call| call.operation == "BatchGetItem")
        .count();
    assert_eq!(
        batches,
        1,
        "{:?}",
        calls.iter().map(|call| &call.operation).collect::<Vec<_>>()
    );
    assert!(
        calls
            .iter()
            .all(|call| ["Query", "BatchGetItem"].contains(&&*call.operation))
    );
    assert_eq!(page.matches("<tr id=").count(), 50);
    let (_, rest) = page.split_once("rel=\"next\" href=\"").unwrap();
    let next = rest.split('"').next().unwrap().replace("&amp;", "&");
    let page = console.html(&next).await;
    assert_eq!(page.matches("<tr id=").count(), 10, "{page}");
    assert!(!page.contains("House B") && page.contains("First page"));
}

#[tokio::test]
async fn filters_say_where_they_stopped() {
    let console = TestConsole::start().await;
    for n in 0..70 {
        console
            .report(&format!("lamp-{n:03}"), r#"{"led":"on"}"#)
            .await;
    }
    console.desire("lamp-069", r#"{"led":"off"}"#).await;
    let shown = text(&console.html("/?open=1").await);
    assert!(
        shown.contains("lamp-069") && shown.contains("1 open /led"),
        "{shown}"
    );
    assert!(
        shown.contains("1 shadow from lamp-069 ; 70 shadows were read"),
        "{shown}"
    );
    let shown = text(&console.html("/?open=1&prefix=lamp-00").await);
    assert!(
        shown.contains("No shadow here passes the filter")
            && shown.contains("10 shadows were read."),
        "{shown}"
    );
    console.clock.advance(Duration::from_secs(7200));
    console.report("lamp-001", r#"{"led":"off"}"#).await;
    let page = console.html("/?since=hour").await;
    assert_eq!(page.matches("<tr id=").count(), 1, "{page}");
}

#[tokio::test]
async fn foreign_cursors_are_an_error_on_the_page() {
    let console = TestConsole::start().await;
    let shown = text(&console.html("/?cursor=nonsense").await);
    assert!(shown.contains("The shadows cannot be read."), "{shown}");
}

#[tokio::test]
async fn a_value_that_came_late_is_marked() {
    let console = TestConsole::start().await;
    console
        .report(
            "lamp",
            r#"{"led":{"value":1,"timestamp":"2026-01-31T11:52:00Z"}}"#,
        )
        .await;
    console
        .report(
            "fan",
            r#"{"rpm":{"value":1,"timestamp":"2026-01-31T11:59:30Z"}}"#,
        )
        .await;
    let shown = text(&console.html("/").await);
    assert_eq!(shown.matches(" late").count(), 1, "{shown}");
    assert!(shown.contains("now 8 min late"), "{shown}");
}
