//! The page of clients and deliveries.

use antumbra_service::clients::{ClientId, Mode, NewClient};
use antumbra_service::deliveries::{HistoryQuery, Subject};

use crate::support::{TestConsole, TestOptions, text};

pub(crate) async fn create(console: &TestConsole, id: &str, name: &str) -> ClientId {
    let client = NewClient {
        id: Some(ClientId::new(id).unwrap()),
        name: name.to_owned(),
        url: "http://127.0.0.1:9/hook".to_owned(),
        mode: Mode::Every,
        requested: None,
    };
    console.services.clients.create(client).await.unwrap();
    ClientId::new(id).unwrap()
}

async fn deliveries(console: &TestConsole, client: &ClientId) -> usize {
    let query = HistoryQuery::of(Subject::Client(client.clone()));
    let page = console
        .services
        .deliveries
        .list(&query, None)
        .await
        .unwrap();
    page.rows.len()
}

#[tokio::test]
async fn clients_are_listed_and_a_test_is_queued() {
    let mut console = TestConsole::start().await;
    assert!(text(&console.html("/deliveries").await).contains("No clients yet"));
    let watch = create(&console, "night-watch", "Night watch").await;
    let page = text(&console.html("/deliveries").await);
    assert!(
        page.contains(
            "Night watch night-watch http://127.0.0.1:9/hook every none closed none Send test"
        ),
        "{page}"
    );
    assert!(page.contains("No deliveries"), "{page}");
    let sent = console
        .post("/deliveries/test", &[("client", "night-watch")])
        .await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    assert_eq!(deliveries(&console, &watch).await, 1);
    let page = console.html(sent.header("location").unwrap()).await;
    let page = text(&page);
    assert!(
        page.contains("Queued: test delivery to night-watch"),
        "{page}"
    );
    assert!(
        page.contains("client.test") && page.contains("No attempt was made yet."),
        "{page}"
    );
    assert!(page.contains("\"type\" : \"client.test\""), "{page}");
}

#[tokio::test]
async fn a_delivery_is_redelivered_and_many_after_a_dry_run() {
    let mut console = TestConsole::start().await;
    let watch = create(&console, "night-watch", "Night watch").await;
    let id = console.services.deliveries.test(&watch).await.unwrap();
    console.services.deliveries.test(&watch).await.unwrap();
    let before = console.queues[0].accepted().len();
    let done = console
        .post("/deliveries/redeliver", &[("delivery", &id.to_string())])
        .await;
    assert_eq!(done.status, 303, "{}", done.text);
    assert_eq!(console.queues[0].accepted().len(), before + 1);
    let plan = text(
        &console
            .html("/deliveries?client=night-watch&since=-1h")
            .await,
    );
    assert!(
        plan.contains("dry run") && plan.contains("2 pending, queued again"),
        "{plan}"
    );
    assert_eq!(console.queues[0].accepted().len(), before + 1);
    let since = [("client", "night-watch"), ("since", "2026-01-31T11:00:00Z")];
    let done = console.post("/deliveries/redeliver-since", &since).await;
    assert_eq!(done.status, 303, "{}", done.text);
    assert_eq!(console.queues[0].accepted().len(), before + 3);
    let unknown = text(
        &console
            .html("/deliveries?client=night-watch&since=soon")
            .await,
    );
    assert!(unknown.contains("Write the time as 16:00"), "{unknown}");
    let failed = console
        .post("/deliveries/redeliver", &[("delivery", "<script>")])
        .await;
    assert!(
        text(&failed.text).contains("This is not the id of a delivery."),
        "{}",
        failed.text
    );
}

#[tokio::test]
async fn a_disabled_client_is_enabled_after_a_question() {
    let mut console = TestConsole::start().await;
    let watch = create(&console, "night-watch", "Night watch").await;
    let reason = "410 <b>Gone</b>";
    console
        .services
        .clients
        .disable(&watch, reason)
        .await
        .unwrap();
    let page = text(&console.html("/deliveries").await);
    assert!(
        page.contains("disabled 410 <b>Gone</b>") && page.contains("Enable…"),
        "{page}"
    );
    assert!(
        page.contains("Deliveries 1") || page.contains("clients with an open circuit: 1"),
        "{page}"
    );
    let page = text(
        &console
            .html("/deliveries?client=night-watch&enable=1")
            .await,
    );
    assert!(page.contains("0 held deliveries would be queued"), "{page}");
    let done = console
        .post("/deliveries/enable", &[("client", "night-watch")])
        .await;
    assert_eq!(done.status, 303, "{}", done.text);
    assert!(text(&console.html("/deliveries").await).contains("closed"));
    let unknown = console
        .post("/deliveries/enable", &[("client", "nobody")])
        .await;
    assert!(
        text(&unknown.text).contains("The client was not enabled."),
        "{}",
        unknown.text
    );
}

#[tokio::test]
async fn a_read_only_console_offers_no_write_and_accepts_none() {
    let mut console = TestConsole::start_with(TestOptions {
        write: false,
        ..TestOptions::default()
    })
    .await;
    let watch = create(&console, "night-watch", "Night watch").await;
    let html = console.html("/deliveries").await;
    assert!(
        html.contains(
            r#"<button class="btn" disabled title="start with --write">Send test</button>"#
        ),
        "{html}"
    );
    let refused = console
        .post("/deliveries/test", &[("client", "night-watch")])
        .await;
    assert_eq!(refused.status, 403);
    assert_eq!(deliveries(&console, &watch).await, 0);
}

#[tokio::test]
async fn hostile_names_are_text() {
    let console = TestConsole::start().await;
    create(&console, "c1", "<script>alert(1)</script>\u{202e}").await;
    for path in [
        "/deliveries",
        "/deliveries?client=%22%3E%3Cscript%3E&status=%3Cscript%3E&sensor=%3Cscript%3E",
        "/deliveries?client=c1&delivery=%3Cscript%3E&since=%3Cscript%3E&cursor=x",
    ] {
        let html = console.html(path).await;
        assert!(!html.contains("<script>"), "{path}: {html}");
    }
}

/// The value of a hidden field.
fn hidden<'a>(page: &'a str, name: &str) -> &'a str {
    let field = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&field).unwrap();
    rest.split('"').next().unwrap()
}

#[tokio::test]
async fn a_new_client_is_created_and_its_secret_shown_once() {
    let mut console = TestConsole::start().await;
    let page = console.html("/deliveries").await;
    assert!(page.contains("href=\"/deliveries?new=1#new\""), "{page}");
    let page = console.html("/deliveries?new=1").await;
    let (chosen, key) = (hidden(&page, "chosen"), hidden(&page, "key"));
    let fields = [
        ("name", "Night <b>watch"),
        ("url", "http://127.0.0.1:9/hook"),
        ("mode", "every"),
        ("id", ""),
        ("chosen", chosen),
        ("key", key),
    ];
    let created = console.post("/deliveries/create", &fields).await;
    assert_eq!(created.status, 200);
    assert_eq!(created.header("cache-control"), Some("no-store"));
    let shown = text(&created.text);
    assert!(shown.contains("Created: Night <b>watch"), "{shown}");
    assert!(!created.text.contains("<b>watch"), "escaped");
    let (_, secret) = shown.split_once("whsec_").unwrap();
    let secret = format!("whsec_{}", secret.split(' ').next().unwrap());
    let id = ClientId::new(chosen).unwrap();
    let client = console.services.clients.get(&id).await.unwrap();
    assert_eq!(
        (client.name.as_str(), client.mode),
        ("Night <b>watch", Mode::Every)
    );
    // The same form is the same client, so that a double click loses no secret.
    let again = console.post("/deliveries/create", &fields).await;
    assert!(text(&again.text).contains(&secret), "{}", again.text);
    // No page has the secret.
    let list = console.html("/deliveries").await;
    assert!(
        list.contains("Night &lt;b&gt;watch") && !list.contains("whsec_"),
        "{list}"
    );
    console.clock.advance(std::time::Duration::from_secs(61));
    let late = text(&console.post("/deliveries/create", &fields).await.text);
    assert!(
        late.contains("The client was not created.") && !late.contains("whsec_"),
        "{late}"
    );
    // Another form with the id of this client does not get its secret.
    let mut other = fields;
    (other[3].1, other[5].1) = (chosen, "other");
    let other = text(&console.post("/deliveries/create", &other).await.text);
    assert!(
        other.contains("the client exists already") && !other.contains("whsec_"),
        "{other}"
    );
}

#[tokio::test]
async fn a_client_that_cannot_be_created_keeps_the_typed_text() {
    let mut console = TestConsole::start().await;
    for (name, url, id, reason) in [
        ("", "http://127.0.0.1:9/hook", "", "name has 1 to"),
        ("Watch", "ftp://127.0.0.1/hook", "", "the url is refused"),
        ("Watch", "http://127.0.0.1:9/hook", "no spaces", "client id"),
    ] {
        let page = console.html("/deliveries?new=1").await;
        let fields = [
            ("name", name),
            ("url", url),
            ("id", id),
            ("chosen", hidden(&page, "chosen")),
            ("key", hidden(&page, "key")),
        ];
        let refused = console.post("/deliveries/create", &fields).await;
        let shown = text(&refused.text);
        assert!(shown.contains("The client was not created."), "{shown}");
        assert!(
            refused
                .text
                .contains(&format!("name=\"url\" value=\"{url}\""))
        );
        assert!(shown.to_lowercase().contains(reason), "{reason}: {shown}");
    }
    assert!(console.html("/deliveries").await.contains("No clients yet"));
    let read_only = TestOptions {
        write: false,
        ..TestOptions::default()
    };
    let mut console = TestConsole::start_with(read_only).await;
    let page = console.html("/deliveries").await;
    assert!(
        page.contains("disabled title=\"start with --write\">New client"),
        "{page}"
    );
    let refused = console.post("/deliveries/create", &[("name", "x")]).await;
    assert_eq!(refused.status, 403);
}
