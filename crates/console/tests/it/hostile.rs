//! Content that tries to break out of the pages.

use antumbra_service::shadows::{ShadowId, Update};
use antumbra_shadow::Document;

use crate::support::TestConsole;

const HOSTILE: [&str; 6] = [
    "<script>alert(1)</script>#<img src=x onerror=alert(2)>",
    "\u{202e}gnp.exe#\u{2066}x",
    "\" onmouseover=\"alert(3)",
    "'><svg onload=alert(4)>",
    "مستودع#ثلاجة",
    "a&amp;b#%3Cscript%3E/../..",
];

/// Opens all pages that show a shadow, and checks what no page may have.
async fn check(console: &TestConsole, id: &str) {
    let query: String = id.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for path in [
        "/".to_owned(),
        format!("/?prefix={query}"),
        format!("/device?id={query}"),
        format!("/device?id={query}&chart={query}&path=/{query}&at=-1m&from=-1m&fields={query}"),
        format!("/device?id={query}&as={query}&view=table&edit=1&range={query}"),
        format!("/live?prefix={query}&path={query}&change={query}"),
    ] {
        let page = console.html(&path).await;
        for forbidden in [
            "<script>",
            "<img",
            "<svg onload",
            "\" onmouseover=\"",
            " style=",
        ] {
            assert!(!page.contains(forbidden), "{path}: {forbidden}");
        }
        assert_eq!(
            page.matches("<script").count(),
            1,
            "{path}: only the console's own script"
        );
        assert_eq!(page.matches("<bdi").count(), page.matches("</bdi>").count());
        assert!(page.len() < 400_000, "{path}: {} bytes", page.len());
    }
}

#[tokio::test]
async fn ids_names_and_values_are_text() {
    let console = TestConsole::start().await;
    for id in HOSTILE {
        let value = serde_json::json!({ id: { "value": id, "unit": id }, "list": [id, { "id": id, "v": 1 }], "n": 1 });
        let shadow = ShadowId::new(id).unwrap();
        let update = Update::report(shadow.clone(), Document::from_value(&value).unwrap());
        console.services.shadows.update(update).await.unwrap();
        let named = ShadowId::named(id, "<b>name</b>").unwrap();
        let update = Update::desire(named, Document::from_value(&value).unwrap());
        console.services.shadows.update(update).await.unwrap();
        check(&console, id).await;
    }
}

#[tokio::test]
async fn large_values_are_cut_and_many_fields_are_folded() {
    let console = TestConsole::start().await;
    console
        .report(
            "large",
            &format!("{{\"file\":\"{}\"}}", "x".repeat(380_000)),
        )
        .await;
    let page = console.html("/device?id=large").await;
    assert!(
        page.len() < 40_000 && page.contains("371 KB"),
        "{}",
        page.len()
    );
    check(&console, "large").await;
    let fields: Vec<String> = (0..10_000).map(|n| format!("\"field-{n}\":{n}")).collect();
    console
        .report("many", &format!("{{{}}}", fields.join(",")))
        .await;
    let page = console.html("/device?id=many").await;
    assert!(page.contains("Rows 1 to 200 of 10,000."), "{page}");
    check(&console, "many").await;
    let page = console.html("/device?id=many&row=9800").await;
    assert!(page.contains("Rows 9,801 to 10,000 of 10,000."), "{page}");
    assert_eq!(
        console
            .get("/device?id=many&row=99999999999999999999")
            .await
            .status,
        200
    );
    assert_eq!(
        console
            .get("/device?id=many&row=18446744073709551615")
            .await
            .status,
        200
    );
}
