//! The page of failed messages.

use aws_sdk_sqs::types::MessageAttributeValue;

use crate::support::{TestConsole, TestOptions, text};

pub(crate) async fn quarantine(console: &TestConsole, reason: &str, body: &str) {
    let failed = &console.services.failed_messages;
    let attribute = |value: &str| {
        let attribute = MessageAttributeValue::builder().data_type("String");
        attribute.string_value(value).build().unwrap()
    };
    let source = "arn:aws:sqs:us-east-1:000000000000:antumbra-inbound";
    let send = failed.sqs.send_message().queue_url(&failed.urls.quarantine);
    let send = send.message_attributes("reason", attribute(reason));
    let send = send.message_attributes("source", attribute(source));
    send.message_body(body).send().await.unwrap();
}

pub(crate) async fn count(console: &TestConsole, url: &str) -> usize {
    let sqs = &console.services.failed_messages.sqs;
    let received = sqs.receive_message().queue_url(url).visibility_timeout(0);
    let received = received.max_number_of_messages(10).send().await.unwrap();
    received.messages.unwrap_or_default().len()
}

#[tokio::test]
async fn messages_are_counted_and_read_on_request_only() {
    let console = TestConsole::start().await;
    let page = text(&console.html("/queues").await);
    assert!(
        page.contains("Undeliverable 0 empty antumbra-undeliverable"),
        "{page}"
    );
    assert!(page.contains("The queue is empty"), "{page}");
    quarantine(&console, "NotJson", "{").await;
    quarantine(&console, "NotJson", "[").await;
    quarantine(&console, "<script>", "</pre><script>alert(1)</script>").await;
    let html = console.html("/queues?queue=quarantine").await;
    let page = text(&html);
    assert!(
        page.contains("Quarantine 3 waiting for a decision"),
        "{page}"
    );
    assert!(
        page.contains("The messages were not read") && !page.contains("NotJson"),
        "{page}"
    );
    assert!(page.contains("messages that need attention: 3"), "{page}");
    let html = console.html("/queues?queue=quarantine&read=1").await;
    let page = text(&html);
    assert!(page.contains("2 NotJson to antumbra-inbound"), "{page}");
    assert!(page.contains("read again"), "{page}");
    assert!(!html.contains("<script>"), "{html}");
    // SQS does not say how old the oldest message is: the tile says it after a read.
    assert!(page.contains("Quarantine 3 oldest "), "{page}");
    let page = text(&console.html("/queues").await);
    assert!(page.contains("Quarantine 3 oldest "), "{page}");
    // Reading leaves the messages there, and visible.
    assert_eq!(
        count(&console, &console.services.failed_messages.urls.quarantine).await,
        3
    );
}

#[tokio::test]
async fn a_redrive_shows_a_dry_run_and_moves_the_messages_of_a_reason() {
    let mut console = TestConsole::start().await;
    let urls = console.services.failed_messages.urls.clone();
    quarantine(&console, "NotJson", "{").await;
    quarantine(&console, "NotJson", "[").await;
    quarantine(&console, "TooLarge", "{}").await;
    let plan = "/queues?queue=quarantine&read=1&reason=NotJson&plan=1";
    let page = text(&console.html(plan).await);
    assert!(
        page.contains("Redrive 2 messages dry run Nothing has been moved yet."),
        "{page}"
    );
    assert!(page.contains("2 moved to antumbra-inbound"), "{page}");
    assert!(page.contains("Oldest message, 1 B {"), "{page}");
    assert_eq!(count(&console, &urls.inbound).await, 0);
    let fields = [("queue", "quarantine"), ("reason", "NotJson")];
    let done = console.post("/queues/redrive", &fields).await;
    assert_eq!(done.status, 303, "{}", done.text);
    assert_eq!(count(&console, &urls.inbound).await, 2);
    assert_eq!(count(&console, &urls.quarantine).await, 1);
    let page = text(&console.html(done.header("location").unwrap()).await);
    assert!(page.contains("Redriven: 2 messages moved"), "{page}");
    assert!(
        page.contains("TooLarge") && !page.contains("NotJson"),
        "{page}"
    );
}

#[tokio::test]
async fn one_message_is_shown_and_redriven() {
    let mut console = TestConsole::start().await;
    quarantine(&console, "NotJson", r#"{"key":"DS#a","deep":{"n":1.50}}"#).await;
    let html = console.html("/queues?queue=quarantine&read=1").await;
    let (_, link) = html.split_once("message=").unwrap();
    let id = link.split(['"', '&']).next().unwrap().to_owned();
    let page = text(
        &console
            .html(&format!("/queues?queue=quarantine&read=1&message={id}"))
            .await,
    );
    assert!(
        page.contains("Redrive this message") && page.contains("1.50"),
        "{page}"
    );
    let fields = [("queue", "quarantine"), ("message", id.as_str())];
    assert_eq!(console.post("/queues/redrive", &fields).await.status, 303);
    let again = console.post("/queues/redrive", &fields).await;
    assert!(
        text(&again.text).contains("no such message could be received"),
        "{}",
        again.text
    );
}

#[tokio::test]
async fn messages_that_have_no_route_are_left() {
    let mut console = TestConsole::start().await;
    let failed = &console.services.failed_messages;
    let send = failed
        .sqs
        .send_message()
        .queue_url(&failed.urls.undeliverable);
    let rule = r#"{"ruleName":"r","topic":"request/x","failures":[{"errorMessage":"denied"}]}"#;
    send.message_body(rule).send().await.unwrap();
    let page = text(
        &console
            .html("/queues?queue=undeliverable&read=1&plan=1")
            .await,
    );
    assert!(
        page.contains("1 left: failed MQTT request") && page.contains("Nothing to redrive"),
        "{page}"
    );
    let page = text(&console.html("/queues?read=1&plan=1&drop=1").await);
    assert!(page.contains("1 deleted: failed MQTT request"), "{page}");
    let done = console
        .post(
            "/queues/redrive",
            &[("queue", "undeliverable"), ("drop", "1")],
        )
        .await;
    assert_eq!(done.status, 303, "{}", done.text);
    let page = text(&console.html("/queues").await);
    assert!(
        page.contains("0 messages moved, 1 message deleted"),
        "{page}"
    );
}

#[tokio::test]
async fn a_read_only_console_moves_nothing() {
    let mut console = TestConsole::start_with(TestOptions {
        write: false,
        ..TestOptions::default()
    })
    .await;
    quarantine(&console, "NotJson", "{").await;
    let html = console.html("/queues?queue=quarantine&read=1&plan=1").await;
    assert!(html.contains("start with --write"), "{html}");
    let refused = console
        .post("/queues/redrive", &[("queue", "quarantine")])
        .await;
    assert_eq!(refused.status, 403);
}
