//! The page Fleet.

use crate::support::{TestConsole, text};

#[tokio::test]
async fn shadows_are_listed() {
    let console = TestConsole::start().await;
    console
        .report("House A#Kitchen#Freezer", r#"{"temp":-18}"#)
        .await;
    let page = console.html("/").await;
    assert!(
        text(&page).contains("House A # Kitchen # Freezer"),
        "{page}"
    );
}
