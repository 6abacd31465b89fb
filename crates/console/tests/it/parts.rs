//! Live updates of registrations, sensors, deliveries, the inbox and queues.

use antumbra_console::ChangedItem;
use antumbra_service::notifications::suspension::{
    FAILED_INVOCATIONS, Suspension, Suspensions as _,
};
use antumbra_service::sensors::SensorId;
use antumbra_wire::items::ItemKind;

use crate::deliveries::create;
use crate::inbox::store;
use crate::live::{Events, events_of, led, send};
use crate::queues::{count, quarantine};
use crate::sensors::{read, register};
use crate::support::{TestConsole, TestOptions, csrf_of};

/// Says that an item changed, as soon as the console follows changes.
async fn changed(console: &TestConsole, kind: ItemKind, owner: &str) {
    while console.items.receiver_count() == 0 {
        tokio::task::yield_now().await;
    }
    let owner = owner.to_owned();
    console.items.send(ChangedItem { kind, owner }).unwrap();
}

async fn signal(console: &TestConsole, id: &SensorId, value: &str) {
    read(console, id, &[value]).await;
    changed(console, ItemKind::SensorState, id.as_str()).await;
}

#[tokio::test]
async fn a_signal_changes_the_place_the_row_and_the_open_sensor() {
    let console = TestConsole::start().await;
    let id = register(&console, "door-213", Some(["Poznań", "A", "2", "213"])).await;
    read(&console, &id, &["3"]).await;
    let path = "/events?page=sensors&city=Pozna%C5%84&building=A&id=door-213";
    let mut events = Events::open(&console, path).await;
    events.until("id=\"sensor\"").await;
    signal(&console, &id, "77").await;
    let text = events.until("Readings, 24 h").await;
    assert!(
        text.contains("<section class=\"panel\" id=\"places\" data-part"),
        "{text}"
    );
    assert!(text.contains("<tr id=\"s-door-213\" data-row"), "{text}");
    assert!(
        text.contains("<aside class=\"panel\" id=\"sensor\" data-part"),
        "{text}"
    );
    assert_eq!(text.matches("event: part").count(), 3, "{text}");
    assert!(text.matches(">77<").count() >= 3, "{text}");
    // Links lead to the page, not to its event stream.
    assert!(
        text.contains("href=\"/sensors?") && !text.contains("href=\"/events"),
        "{text}"
    );
}

/// The parts in events of a stream.
fn parts_of(events: &str) -> Vec<String> {
    let parts = events
        .split("\n\n")
        .filter(|event| event.starts_with("event: part"));
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.collect::<Vec<_>>().join("\n")
    };
    parts.map(data).collect()
}

#[tokio::test]
async fn a_new_stream_sends_the_parts_as_the_page_has_them() {
    const ANY: &str = r#"{"name":"any","on":{"state":"reported"},"to":{"sqs":{"queue":"q"}}}"#;
    let console = TestConsole::start_with(TestOptions {
        registrations: vec![("any.json".to_owned(), ANY.to_owned())],
        ..TestOptions::default()
    })
    .await;
    let reports = [r#"{"led":"off"}"#, r#"{"led":"on"}"#].map(str::to_owned);
    console
        .recorded_reports("lamp", &reports, std::time::Duration::from_secs(60))
        .await;
    let id = register(&console, "door-213", Some(["Poznań", "A", "2", "213"])).await;
    read(&console, &id, &["3"]).await;
    let watch = create(&console, "night-watch", "Night watch").await;
    console.services.deliveries.test(&watch).await.unwrap();
    store(&console, "meter", "1", r#"{"n":1}"#).await;
    for path in [
        "/registrations",
        "/registrations?name=any&shadow=lamp",
        "/registrations?name=any&old=%7B%7D&new=%7B%7D",
        "/sensors",
        "/sensors?city=Pozna%C5%84&building=A&id=door-213",
        "/deliveries",
        "/deliveries?client=night-watch&time=exact",
        "/inbox",
        "/inbox?source=meter",
        "/queues",
        "/queues?queue=quarantine",
    ] {
        let page = console.html(path).await;
        let wanted = page.matches(" data-part").count();
        let mut events = Events::open(&console, &events_of(&page)).await;
        let mut sent = String::new();
        while parts_of(&sent).len() < wanted || !sent.ends_with("\n\n") {
            sent += &events.until("\n\n").await;
        }
        for part in parts_of(&sent) {
            assert!(page.contains(&part), "{path}\n{part}\n{page}");
        }
    }
}

#[tokio::test]
async fn only_parts_that_changed_are_sent() {
    let console = TestConsole::start().await;
    let watch = create(&console, "night-watch", "Night watch").await;
    let mut events = Events::open(&console, "/events?page=deliveries").await;
    let first = events.until("No deliveries").await;
    assert!(first.contains("id=\"clients\""), "{first}");
    console.services.deliveries.test(&watch).await.unwrap();
    // A change that the page does not show, one that changes nothing of it, and the delivery.
    changed(&console, ItemKind::SensorState, "door-1").await;
    changed(&console, ItemKind::ClientInfo, "night-watch").await;
    changed(&console, ItemKind::Delivery, "night-watch").await;
    let text = events.until("client.test").await;
    assert!(text.contains("<tr id=\"d-night-watch_"), "{text}");
    assert!(!text.contains("id=\"clients\""), "{text}");
    assert_eq!(text.matches("event: part").count(), 1, "{text}");
}

#[tokio::test]
async fn tabs_with_the_same_page_share_one_reader() {
    let console = TestConsole::start().await;
    let watch = create(&console, "night-watch", "Night watch").await;
    let path = "/events?page=deliveries&client=night-watch";
    let mut tabs = vec![Events::open(&console, path).await];
    tabs[0].until("No deliveries").await;
    let calls = async |tabs: &mut [Events]| {
        console.services.deliveries.test(&watch).await.unwrap();
        console.endpoint.take_calls();
        changed(&console, ItemKind::Delivery, "night-watch").await;
        for tab in tabs {
            tab.until("client.test").await;
        }
        console.endpoint.take_calls().len()
    };
    let one = calls(&mut tabs).await;
    for _ in 0..7 {
        let mut tab = Events::open(&console, path).await;
        tab.until("client.test").await;
        tabs.push(tab);
    }
    let eight = calls(&mut tabs).await;
    assert!(
        one > 0 && eight <= one,
        "{one} calls for a tab, {eight} for eight"
    );
    // Another query is another page.
    let mut other = Events::open(&console, "/events?page=deliveries&status=dead").await;
    let text = other.until("id=\"deliveries\"").await;
    assert!(!text.contains("client.test"), "{text}");
}

#[tokio::test]
async fn forms_in_parts_carry_the_token_of_their_own_session() {
    let console = TestConsole::start().await;
    create(&console, "night-watch", "Night watch").await;
    let path = "/events?page=deliveries";
    let mut own = Events::open(&console, path).await;
    let own = own.until("id=\"deliveries\"").await;
    let cookie = console.new_session().await;
    let mut other = Events::open_as(&console, path, &cookie).await;
    let other = other.until("id=\"deliveries\"").await;
    assert_eq!(csrf_of(&own), console.csrf_token().await);
    assert_ne!(csrf_of(&own), csrf_of(&other));
}

#[tokio::test]
async fn pages_are_read_again_where_items_cannot_be_followed() {
    let console = TestConsole::start_with(TestOptions {
        follows_items: false,
        ..TestOptions::default()
    })
    .await;
    let watch = create(&console, "night-watch", "Night watch").await;
    let page = console.html("/deliveries").await;
    assert!(page.contains("data-live=\"Live, every 5 s\""), "{page}");
    let mut events = Events::open(&console, "/events?page=deliveries").await;
    console.services.deliveries.test(&watch).await.unwrap();
    events.until("client.test").await;
}

#[tokio::test]
async fn queues_are_counted_and_their_messages_never_read() {
    let console = TestConsole::start().await;
    quarantine(&console, "NotJson", "{").await;
    let path = "/events?page=queues&queue=quarantine&read=1&plan=1";
    let mut read = Events::open(&console, path).await;
    let text = read.until("</nav>").await;
    assert!(text.contains("id=\"counts\""), "{text}");
    assert!(
        !text.contains("NotJson") && !text.contains("id=\"contents\""),
        "{text}"
    );
    let mut unread = Events::open(&console, "/events?page=queues&queue=quarantine").await;
    let text = unread.until("id=\"contents\"").await;
    assert!(text.contains("waiting for a decision"), "{text}");
    // A message that was read would be hidden.
    assert_eq!(
        count(&console, &console.services.failed_messages.urls.quarantine).await,
        1
    );
}

#[tokio::test]
async fn a_message_appears_and_the_open_one_stays() {
    let console = TestConsole::start().await;
    store(&console, "testThing", "1", r#"{"n":1}"#).await;
    let page = console.html("/inbox").await;
    let events = "data-events=\"/events?page=inbox&amp;source=testThing&amp;message=1\"";
    assert!(page.contains(events), "{page}");
    let mut events = Events::open(&console, "/events?page=inbox&source=testThing&message=1").await;
    events.until("id=\"outbound\"").await;
    store(&console, "testThing", "2", r#"{"n":"<b>"}"#).await;
    changed(&console, ItemKind::InboxMessage, "testThing").await;
    let text = events.until("2 messages").await;
    assert!(
        text.contains("&lt;b&gt;") && text.contains("message=2"),
        "{text}"
    );
    assert_eq!(text.matches("aria-current=\"true\"").count(), 2, "{text}");
}

#[tokio::test]
async fn a_failing_target_changes_the_state_of_its_registration() {
    let console = TestConsole::start_with(TestOptions {
        registrations: vec![(
            "lamp.json".to_owned(),
            r#"{"name":"lamp","on":{"key":"^DS#lamp#"},"to":{"sqs":{"queue":"q"}}}"#.to_owned(),
        )],
        ..TestOptions::default()
    })
    .await;
    console
        .recorded_reports(
            "lamp",
            &[r#"{"led":"on"}"#.to_owned()],
            std::time::Duration::ZERO,
        )
        .await;
    let mut events = Events::open(&console, "/events?page=registrations&shadow=lamp").await;
    let text = events.until("id=\"recorded\"").await;
    assert!(
        text.contains(">on</span>") && text.contains("reported insert v1"),
        "{text}"
    );
    let mut record: Option<Suspension> = None;
    for _ in 0..FAILED_INVOCATIONS {
        let now = console.services.clock.now();
        record = Some(Suspension::after_failure(record.as_ref(), "lamp", now));
    }
    console
        .services
        .suspensions
        .save(&record.unwrap())
        .await
        .unwrap();
    changed(&console, ItemKind::Suspension, "").await;
    let text = events.until("suspended").await;
    assert!(
        text.contains("<tr id=\"n") && !text.contains("id=\"recorded\""),
        "{text}"
    );
    assert!(
        console
            .html("/registrations")
            .await
            .contains("<span class=\"dot bad\"")
    );
    // A change of the shadow is one more to choose from.
    console.clock.advance(std::time::Duration::from_secs(1));
    console
        .recorded_reports(
            "lamp",
            &[r#"{"led":"off"}"#.to_owned()],
            std::time::Duration::ZERO,
        )
        .await;
    send(&console, led(&console, "lamp", 2, "\"off\"")).await;
    let text = events.until("id=\"recorded\"").await;
    assert!(text.matches("<option").count() >= 2, "{text}");
}

#[tokio::test]
async fn the_last_attempts_of_a_client_are_read_once_in_five_seconds() {
    let console = TestConsole::start().await;
    create(&console, "night-watch", "Night watch").await;
    let calls = async || {
        console.endpoint.take_calls();
        console.html("/deliveries?client=night-watch").await;
        console.endpoint.take_calls().len()
    };
    let first = calls().await;
    assert_eq!(calls().await, first - 1);
    console.clock.advance(std::time::Duration::from_secs(4));
    assert_eq!(calls().await, first - 1);
    console.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(calls().await, first);
}

#[tokio::test]
async fn pages_name_their_event_stream_and_answers_to_forms_have_none() {
    let mut console = TestConsole::start().await;
    create(&console, "night-watch", "Night watch").await;
    for page in ["registrations", "sensors", "deliveries", "inbox", "queues"] {
        let html = console.html(&format!("/{page}?tz=utc")).await;
        let events = format!("data-events=\"/events?tz=utc&amp;page={page}");
        assert!(html.contains(&events), "{page}: {html}");
    }
    let failed = console
        .post("/deliveries/enable", &[("client", "nobody")])
        .await;
    assert!(!failed.text.contains("data-events"), "{}", failed.text);
}
