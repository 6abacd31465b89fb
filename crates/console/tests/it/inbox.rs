//! The page of the inbox.

use antumbra_service::inbox::{
    Body, InboxMessage, MessageId, MessageReader as _, MessageWriter as _, Source,
    SourceTracker as _,
};

use crate::support::{TestConsole, TestOptions, text};

pub(crate) async fn store(console: &TestConsole, source: &str, id: &str, body: &str) {
    let source = Source::new(source).unwrap();
    let now = console.services.clock.now();
    let message = InboxMessage {
        source: source.clone(),
        id: MessageId::new(id).unwrap(),
        body: Body::parse(body).unwrap(),
        received_at: now,
        expires_at: None,
    };
    console.services.messages.store(&message).await.unwrap();
    console.services.messages.touch(&source, now).await.unwrap();
}

#[tokio::test]
async fn messages_are_shown_by_source_with_their_digits() {
    let console = TestConsole::start().await;
    assert!(text(&console.html("/inbox").await).contains("No messages yet"));
    store(
        &console,
        "testThing",
        "1",
        r#"{"n":72.50,"big":9007199254740993}"#,
    )
    .await;
    store(&console, "testThing", "2", r#"{"n":1}"#).await;
    store(&console, "other thing", "9", r#"{"n":2}"#).await;
    let page = text(&console.html("/inbox?source=testThing").await);
    assert!(page.contains("last contact this hour"), "{page}");
    assert!(page.contains("other thing"), "{page}");
    assert!(page.contains("2 messages"), "{page}");
    let page = text(&console.html("/inbox?source=testThing&message=1").await);
    assert!(
        page.contains("72.50") && page.contains("9007199254740993"),
        "{page}"
    );
    let page = text(&console.html("/inbox?source=testThing&order=oldest").await);
    assert!(page.contains("Message id 1"), "{page}");
    let page = text(&console.html("/inbox?source=nobody").await);
    assert!(page.contains("No messages"), "{page}");
    let page = text(&console.html("/inbox?source=testThing&message=7").await);
    assert!(page.contains("No such message"), "{page}");
}

#[tokio::test]
async fn a_message_is_deleted_after_a_question() {
    let mut console = TestConsole::start().await;
    store(&console, "testThing", "1", r#"{"n":1}"#).await;
    let html = console
        .html("/inbox?source=testThing&message=1&confirm=delete")
        .await;
    assert!(text(&html).contains("Delete this message?"), "{html}");
    let fields = [("source", "testThing"), ("message", "1")];
    let deleted = console.post("/inbox/delete", &fields).await;
    assert_eq!(deleted.status, 303, "{}", deleted.text);
    let (source, id) = (
        Source::new("testThing").unwrap(),
        MessageId::new("1").unwrap(),
    );
    assert_eq!(
        console.services.messages.get(&source, &id).await.unwrap(),
        None
    );
    let page = text(&console.html("/inbox?source=testThing").await);
    assert!(page.contains("Deleted: message 1"), "{page}");
    let failed = console
        .post("/inbox/delete", &[("source", "a/b"), ("message", "1")])
        .await;
    assert!(
        text(&failed.text).contains("The message was not deleted."),
        "{}",
        failed.text
    );
}

#[tokio::test]
async fn a_read_only_console_deletes_nothing() {
    let mut console = TestConsole::start_with(TestOptions {
        write: false,
        ..TestOptions::default()
    })
    .await;
    store(&console, "testThing", "1", r#"{"n":1}"#).await;
    let html = console.html("/inbox?source=testThing&message=1").await;
    assert!(html.contains("start with --write"), "{html}");
    let refused = console
        .post(
            "/inbox/delete",
            &[("source", "testThing"), ("message", "1")],
        )
        .await;
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn hostile_messages_are_text_and_large_ones_are_cut() {
    let console = TestConsole::start().await;
    let source = "<script>alert(1)<script>\u{202e}";
    let fields: Vec<String> = (0..3000)
        .map(|n| format!("\"field{n}\":\"</pre><script>{n}\""))
        .collect();
    store(
        &console,
        source,
        "<img src=x>",
        &format!("{{{}}}", fields.join(",")),
    )
    .await;
    store(
        &console,
        source,
        "long",
        &format!("{{\"a\":\"{}\"}}", "x".repeat(200_000)),
    )
    .await;
    for path in [
        "/inbox",
        "/inbox?message=long",
        "/inbox?message=%3Cimg%20src%3Dx%3E",
    ] {
        let html = console.html(path).await;
        assert!(
            !html.contains("<script>") && !html.contains("<img"),
            "{path}"
        );
        assert!(html.len() < 100_000, "{path}: {}", html.len());
    }
}

#[tokio::test]
async fn a_message_is_sent_to_a_device() {
    let mut console = TestConsole::start().await;
    let html = console.html("/inbox").await;
    let page = text(&html);
    assert!(page.contains("The outbound queue is empty"), "{page}");
    assert!(
        page.contains("antumbra --local mqtt publish request/send/testThing"),
        "{page}"
    );
    let (_, rest) = html.split_once("name=\"key\" value=\"").unwrap();
    let key = rest.split('"').next().unwrap().to_owned();
    let message = r#"{ "n": 72.50, "big": 9007199254740993 }"#;
    let fields = [("device", "lamp 1"), ("text", message), ("key", &key)];
    let sent = console.post("/inbox/send", &fields).await;
    assert_eq!(sent.status, 303, "{}", sent.text);
    let queued = console.queues[2].accepted();
    assert_eq!(queued.len(), 1);
    let body = format!(r#"{{"idempotencyKey":"{key}","message":{message},"uuid":"lamp 1"}}"#);
    assert_eq!(queued[0].body, body);
    // The same form again is the same message for a FIFO queue.
    console.post("/inbox/send", &fields).await;
    assert_eq!(console.queues[2].accepted()[1].id, queued[0].id);
    let page = text(&console.html("/inbox").await);
    assert!(
        page.contains("Sent: a message for lamp 1 is in the outbound queue"),
        "{page}"
    );
    let other = console.html("/inbox").await;
    assert!(!other.contains(&key), "another form has another key");
}

#[tokio::test]
async fn messages_that_cannot_be_sent_stay_in_the_form() {
    let mut console = TestConsole::start().await;
    for (device, message, problem) in [
        (
            "lamp",
            "</textarea><script>alert(1)</script>",
            "The message is not JSON",
        ),
        ("", "{}", "The message was not sent."),
        ("a/b", "{}", "The message was not sent."),
        ("<script>", "{}{}", "The message is not JSON"),
    ] {
        let fields = [("device", device), ("text", message), ("key", "k1")];
        let failed = console.post("/inbox/send", &fields).await;
        assert_eq!(failed.status, 200, "{device}");
        assert!(failed.text.contains(problem), "{device}: {}", failed.text);
        assert!(!failed.text.contains("<script>"), "{device}");
        assert!(
            text(&failed.text).contains(message),
            "{device}: {}",
            failed.text
        );
        assert!(
            failed.text.contains("name=\"key\" value=\"k1\""),
            "{device}"
        );
    }
    let fields = [("device", "lamp"), ("text", "{}"), ("key", "no key")];
    let failed = console.post("/inbox/send", &fields).await;
    assert!(
        text(&failed.text).contains("idempotencyKey must have"),
        "{}",
        failed.text
    );
    assert!(console.queues[2].accepted().is_empty());
}

#[tokio::test]
async fn a_read_only_console_sends_nothing_to_devices() {
    let mut console = TestConsole::start_with(TestOptions {
        write: false,
        ..TestOptions::default()
    })
    .await;
    let html = console.html("/inbox").await;
    let button = r#"<button class="btn" disabled title="start with --write">Send</button>"#;
    assert!(html.contains(button), "{html}");
    let fields = [("device", "lamp"), ("text", "{}"), ("key", "k1")];
    assert_eq!(console.post("/inbox/send", &fields).await.status, 403);
    let own = console.form("/inbox/send", &fields).send().await;
    assert_eq!(own.status, 403);
    assert!(console.queues[2].accepted().is_empty());
}

#[tokio::test]
async fn waiting_messages_for_devices_are_counted() {
    let console = TestConsole::start().await;
    let outbound = &console.services.outbound_messages;
    let send = outbound.sqs.send_message().queue_url(&outbound.url);
    send.message_body("{}").send().await.unwrap();
    let page = text(&console.html("/inbox").await);
    assert!(page.contains("About 1 message waits"), "{page}");
    let counted = outbound.count().await.unwrap();
    assert_eq!(counted, (1, 0), "reading would hide it");
}
