//! Live updates.

use std::time::Duration;

use antumbra_console::ShadowChange;
use antumbra_service::clock::Clock as _;
use antumbra_service::history::{ChangedDocument, DocumentChange, Operation};
use antumbra_service::shadows::{ShadowId, Version};
use antumbra_shadow::{Document, PatchedLeaf, State};
use antumbra_testkit::dynamodb::Reply;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::device::change;
use crate::support::{RequestBuilder, TestConsole, TestOptions, text};

/// An open event stream.
pub(crate) struct Events {
    body: Incoming,
    text: String,
}

impl Events {
    pub(crate) async fn open(console: &TestConsole, path: &str) -> Events {
        Events::of(console.request("GET", path)).await
    }

    /// Opens a stream with the cookie of another session.
    pub(crate) async fn open_as(console: &TestConsole, path: &str, cookie: &str) -> Events {
        Events::of(console.request("GET", path).header("cookie", cookie)).await
    }

    async fn of(request: RequestBuilder) -> Events {
        let request = request.header("sec-fetch-site", "same-origin");
        let response = request.open().await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let mut events = Events {
            body: response.into_body(),
            text: String::new(),
        };
        events.until("event: ready").await;
        events
    }

    /// Reads until a text has arrived, and returns everything since the last call.
    pub(crate) async fn until(&mut self, wanted: &str) -> String {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while !self.text.contains(wanted) {
            let frame = tokio::time::timeout_at(deadline, self.body.frame()).await;
            let frame = frame.unwrap_or_else(|_| panic!("no {wanted:?} in {:?}", self.text));
            let bytes = frame.unwrap().unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&bytes).unwrap());
        }
        std::mem::take(&mut self.text)
    }
}

pub(crate) fn led(console: &TestConsole, id: &str, version: i64, value: &str) -> ShadowChange {
    let mut change = change(console, version);
    let leaf = PatchedLeaf {
        pointer: "/led".to_owned(),
        old: Some("\"off\"".to_owned()),
        new: Some(value.to_owned()),
    };
    change.documents = vec![ChangedDocument {
        state: State::Reported,
        values: Some(vec![leaf]),
    }];
    ShadowChange {
        id: format!("{id}-{version}"),
        shadow: ShadowId::new(id).unwrap(),
        change,
        documents: Vec::new(),
    }
}

/// Sends a change as soon as the console follows changes.
pub(crate) async fn send(console: &TestConsole, change: ShadowChange) {
    while console.changes.receiver_count() == 0 {
        tokio::task::yield_now().await;
    }
    console.changes.send(change).unwrap();
}

#[tokio::test]
async fn a_changed_row_is_sent_to_pages_that_show_it() {
    let console = TestConsole::start().await;
    console.report("House A#lamp", r#"{"led":"on"}"#).await;
    console.report("House B#lamp", r#"{"led":"on"}"#).await;
    let mut all = Events::open(&console, "/events?page=fleet").await;
    let mut some = Events::open(&console, "/events?page=fleet&prefix=House+B%23").await;
    send(&console, led(&console, "House A#lamp", 1, "\"on\"")).await;
    let row = all.until("</tr>").await;
    assert!(
        row.contains("event: fragment") && row.contains("<tr id=\"r"),
        "{row}"
    );
    assert!(row.contains("/device?id=House+A%23lamp"), "{row}");
    send(&console, led(&console, "House B#lamp", 1, "\"on\"")).await;
    assert!(!some.until("</tr>").await.contains("House A"));
}

/// In the embedded database, a read of changes that is not polled may have the turn that the read of a shadow waits for.
#[tokio::test]
async fn changes_are_received_while_a_shadow_is_read() {
    let console = TestConsole::start().await;
    let _events = Events::open(&console, "/events?page=fleet").await;
    console
        .endpoint
        .script(|call| match call.operation.as_str() {
            "BatchGetItem" => Reply::Hang,
            _ => Reply::Pass,
        });
    send(&console, led(&console, "lamp", 1, "1")).await;
    let until = async |condition: &dyn Fn() -> bool| {
        let wait = async {
            while !condition() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await
    };
    let is_read = || {
        let operations = console.endpoint.take_operations();
        operations.iter().any(|name| name == "BatchGetItem")
    };
    until(&is_read).await.expect("the shadow is not read");
    send(&console, led(&console, "lamp", 2, "1")).await;
    let is_received = || console.changes.is_empty();
    until(&is_received).await.expect("the change waits");
}

/// The event stream that a page opens.
pub(crate) fn events_of(page: &str) -> String {
    let (_, rest) = page.split_once("data-events=\"").unwrap();
    rest.split('"').next().unwrap().replace("&amp;", "&")
}

#[tokio::test]
async fn a_page_of_the_list_gets_no_rows_of_other_pages() {
    let console = TestConsole::start().await;
    for n in 0..60 {
        let id = format!("lamp-{n:03}");
        console.report(&id, r#"{"led":"on"}"#).await;
    }
    let first = console.html("/").await;
    let (_, rest) = first.split_once("rel=\"next\" href=\"").unwrap();
    let next = rest.split('"').next().unwrap().replace("&amp;", "&");
    let second = console.html(&next).await;
    let mut first = Events::open(&console, &events_of(&first)).await;
    let mut second = Events::open(&console, &events_of(&second)).await;
    // The last row of the first page, and the last one of the second page.
    for id in ["lamp-055", "lamp-049"] {
        send(&console, led(&console, id, 1, "\"on\"")).await;
        let stream = if id == "lamp-055" {
            &mut second
        } else {
            &mut first
        };
        let row = stream.until("</tr>").await;
        assert_eq!(row.matches("<tr").count(), 1, "{row}");
        assert!(row.contains(&format!("/device?id={id}\"")), "{row}");
    }
    // A new shadow between those of the first page, and one behind the second page.
    console.report("lamp-020b", "{}").await;
    send(&console, led(&console, "lamp-020b", 1, "1")).await;
    assert!(first.until("</tr>").await.contains("lamp-020b"));
    console.report("lamp-100", "{}").await;
    send(&console, led(&console, "lamp-100", 1, "1")).await;
    let rows = second.until("lamp-100").await;
    assert!(!rows.contains("lamp-020b"), "{rows}");
}

#[tokio::test]
async fn rows_that_the_filter_leaves_out_are_marked() {
    let console = TestConsole::start().await;
    console.report("lamp-1", r#"{"led":"on"}"#).await;
    console.report("lamp-2", r#"{"led":"on"}"#).await;
    console.desire("lamp-2", r#"{"led":"off"}"#).await;
    let page = console.html("/?open=1").await;
    assert!(!page.contains("data-left-out"), "{page}");
    let mut events = Events::open(&console, &events_of(&page)).await;
    send(&console, led(&console, "lamp-1", 1, "1")).await;
    let row = events.until("</tr>").await;
    assert!(row.contains("data-left-out"), "{row}");
    send(&console, led(&console, "lamp-2", 1, "1")).await;
    let row = events.until("</tr>").await;
    assert!(!row.contains("data-left-out"), "{row}");
}

#[tokio::test]
async fn the_live_state_of_a_device_is_what_its_url_shows() {
    let console = TestConsole::start().await;
    let fields: Vec<String> = (0..500).map(|n| format!("\"f{n:03}\":{n}")).collect();
    let report = format!("{{{}}}", fields.join(","));
    console.report("many", &report).await;
    let path = "/device?id=many&row=200&range=24h&chart=%2Ff001&path=%2Fled";
    let page = console.html(path).await;
    let mut events = Events::open(&console, &events_of(&page)).await;
    let mut other = led(&console, "many", 1, "1");
    let values = other.change.documents[0].values.as_mut().unwrap();
    values[0].pointer = "/f001".to_owned();
    send(&console, other).await;
    send(&console, led(&console, "many", 2, "1")).await;
    let sent = events.until("</li>\n\n").await;
    let shown = text(&sent);
    assert!(shown.contains("Rows 201 to 400 of 500."), "{shown}");
    assert!(
        sent.contains("/device?id=many&amp;range=24h&amp;chart=%2Ff001&amp;path=%2Fled&amp;row=0"),
        "{sent}"
    );
    // Only changes of the path are in the timeline.
    assert!(sent.contains("/led") && !sent.contains("v1 "), "{shown}");
}

#[tokio::test]
async fn every_change_of_a_busy_device_is_sent_at_once() {
    let console = TestConsole::start().await;
    console.report("lamp", r#"{"led":"on"}"#).await;
    let mut events = Events::open(&console, "/events?page=device&id=lamp").await;
    let start = tokio::time::Instant::now();
    for version in 1..=100 {
        send(&console, led(&console, "lamp", version, "1")).await;
    }
    // In less time than a state for each of them would take.
    let mut sent = events.until(" v100 ").await;
    // The state is rendered again after the last change.
    console.report("lamp", r#"{"led":"last"}"#).await;
    send(&console, led(&console, "lamp", 101, "1")).await;
    sent += &events.until("&quot;last&quot;").await;
    let states = sent.matches("id=\"state\"").count();
    let rendered_at_most = 4 * start.elapsed().as_secs() as usize + 5;
    assert!((2..=rendered_at_most).contains(&states), "{states}");
}

#[tokio::test]
async fn a_deleted_device_has_no_live_state() {
    let console = TestConsole::start().await;
    let mut events = Events::open(&console, "/events?page=device&id=lamp").await;
    send(&console, led(&console, "lamp", 1, "1")).await;
    let sent = events.until("</li>\n\n").await;
    assert!(
        sent.contains("<section class=\"panel\" id=\"state\" hidden>"),
        "{sent}"
    );
}

#[tokio::test]
async fn a_device_shows_its_state_and_the_change() {
    let console = TestConsole::start().await;
    console.report("lamp", r#"{"led":"on"}"#).await;
    let mut events = Events::open(&console, "/events?page=device&id=lamp&name=main").await;
    send(&console, led(&console, "other", 1, "\"on\"")).await;
    send(&console, led(&console, "lamp", 1, "\"on\"")).await;
    let text = events.until("</li>\n\n").await;
    assert!(
        text.contains("id=\"state\"") && text.contains("event: fragment"),
        "{text}"
    );
    assert!(text.contains("<li data-into=\"timeline\""), "{text}");
    assert!(
        text.contains("href=\"/device?id=lamp&amp;name=main&amp;at="),
        "{text}"
    );
}

#[tokio::test]
async fn live_shows_changes_that_pass_the_filter_and_keeps_them() {
    let console = TestConsole::start().await;
    let mut events = Events::open(
        &console,
        "/events?page=live&path=/led&state=reported&prefix=lamp",
    )
    .await;
    let mut other = led(&console, "lamp-1", 1, "1");
    other.change.documents[0].state = State::Desired;
    send(&console, other).await;
    send(&console, led(&console, "fan", 1, "1")).await;
    send(&console, led(&console, "lamp-2", 1, "\"<b>\\r\"")).await;
    let text = events.until("</li>\n\n").await;
    assert!(
        text.contains("lamp-2") && !text.contains("fan") && !text.contains("lamp-1"),
        "{text}"
    );
    assert!(text.contains("&lt;b&gt;"), "{text}");
    let page = console.html("/live?prefix=lamp").await;
    assert!(
        page.contains("lamp-1") && page.contains("lamp-2") && !page.contains("fan<"),
        "{page}"
    );
    let page = console.html("/live?change=lamp-2-1").await;
    assert!(page.contains("Selected change"), "{page}");
}

#[tokio::test]
async fn event_streams_need_a_session_and_the_own_origin() {
    let console = TestConsole::start().await;
    let own = format!("http://{}", console.address);
    for (site, origin, status) in [
        ("", "", 403),
        ("cross-site", "", 403),
        ("same-site", "", 403),
        ("none", "", 403),
        ("", "http://evil.example", 403),
        ("", own.as_str(), 200),
        ("same-origin", "", 200),
    ] {
        let request = console
            .request("GET", "/events")
            .header("sec-fetch-site", site);
        let response = request.header("origin", origin).open().await;
        assert_eq!(response.status(), status, "{site:?} {origin:?}");
    }
    let request = console
        .anonymous("GET", "/events")
        .header("sec-fetch-site", "same-origin");
    assert_eq!(request.open().await.status(), 401);
}

#[tokio::test]
async fn pages_read_again_what_they_missed_while_changes_could_not_be_followed() {
    let console = TestConsole::start().await;
    let mut events = Events::open(&console, "/events").await;
    let change = led(&console, "lamp", 1, "\"on\"");
    send(&console, change.clone()).await;
    // More at once than the stream of changes holds.
    for _ in 0..2000 {
        console.changes.send(change.clone()).unwrap();
    }
    events.until("event: lagged").await;
}

#[tokio::test]
async fn streams_end_when_the_console_stops() {
    let console = TestConsole::start().await;
    let mut events = Events::open(&console, "/events").await;
    console.console.stop();
    let end = tokio::time::timeout(Duration::from_secs(20), events.body.frame()).await;
    assert!(end.unwrap().is_none());
}

#[tokio::test]
async fn live_filters_by_a_pattern_of_registrations() {
    let console = TestConsole::start().await;
    let pattern = "%7B%22new%22%3A%7B%22led%22%3A%5B%22on%22%5D%7D%7D";
    let path = format!("/events?page=live&pattern={pattern}");
    let mut events = Events::open(&console, &path).await;
    send(&console, led(&console, "lamp-1", 1, "\"dim\"")).await;
    send(&console, led(&console, "lamp-2", 1, "\"on\"")).await;
    let text = events.until("</li>\n\n").await;
    assert!(
        text.contains("lamp-2") && !text.contains("lamp-1"),
        "{text}"
    );
    let page = console.html("/live?pattern=%7B").await;
    assert!(page.contains("The pattern cannot be used."), "{page}");
}

const ON: &str = r#"{"name":"led-on","on":{"state":"reported","pattern":{"new":{"led":["on"]}}},
    "to":{"sns":{"topic":"${env:ALARMS}"}}}"#;
const HOSTILE: &str =
    r#"{"name":"other","on":{"pattern":{"old":{"<script>":["<b>"]}}},"to":{"sqs":{"queue":"q"}}}"#;

async fn with_registrations() -> TestConsole {
    let file = |name: &str, text: &str| (format!("{name}.json"), text.to_owned());
    TestConsole::start_with(TestOptions {
        registrations: vec![file("on", ON), file("other", HOSTILE)],
        ..TestOptions::default()
    })
    .await
}

#[tokio::test]
async fn live_changes_name_the_registrations_that_match() {
    let console = with_registrations().await;
    console.report("lamp", r#"{"led":"on"}"#).await;
    let mut live = Events::open(&console, "/events?page=live").await;
    let mut device = Events::open(&console, "/events?page=device&id=lamp&name=main").await;
    let mut change = led(&console, "lamp", 1, "\"on\"");
    change.documents = vec![DocumentChange {
        key: "DS#lamp#DSR#main".to_owned(),
        state: State::Reported,
        time: console.clock.now(),
        version: Version(1),
        operation: Operation::Modify,
        client_token: None,
        old: Some(Document::parse(r#"{"led":"off"}"#).unwrap()),
        new: Some(Document::parse(r#"{"led":"on"}"#).unwrap()),
    }];
    send(&console, change).await;
    let link = "/registrations?name=led-on&amp;shadow=lamp&amp;sname=main&amp;change=reported%402026-01-31T12%3A00%3A00Z#bench";
    for events in [&mut live, &mut device] {
        let html = events.until("</li>\n\n").await;
        let is_named = html.contains("1 match") || html.contains("matches <a");
        assert!(is_named, "{html}");
        assert!(html.contains(link), "{html}");
        assert!(!html.contains("other"), "{html}");
    }
    // A page that is opened later shows it too.
    assert!(console.html("/live").await.contains(link));
}

#[tokio::test]
async fn live_opens_with_the_newest_recorded_changes() {
    let console = with_registrations().await;
    let reports = [r#"{"led":"off"}"#, r#"{"led":"on"}"#].map(str::to_owned);
    console
        .recorded_reports("lamp", &reports, Duration::from_secs(60))
        .await;
    let reports: Vec<String> = (0..300).map(|n| format!("{{\"rpm\":{n}}}")).collect();
    console
        .recorded_reports("fan", &reports, Duration::from_millis(10))
        .await;
    let page = console.html("/live").await;
    let shown = text(&page);
    assert_eq!(page.matches("data-into=\"stream\"").count(), 200);
    assert!(!shown.contains("No changes yet"), "{shown}");
    let newest = shown.find("v300").unwrap();
    assert!(newest < shown.find("v299").unwrap(), "newest first");
    assert!(
        shown.contains("200 changes, the newest; the feed is kept for 7 days Older"),
        "{shown}"
    );
    let page = console.html("/live?prefix=lamp").await;
    assert!(text(&page).contains("None of 200 changes passes."));
}

/// Ids of the changes in the list.
fn listed(page: &str) -> Vec<String> {
    let entries = page.split("<li id=\"c").skip(1);
    let ids = entries.map(|rest| rest.split('"').next().unwrap().to_owned());
    ids.collect()
}

/// The target of a link with an id.
fn href(page: &str, id: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("id=\"{id}\" href=\""))?;
    Some(rest.split('"').next()?.replace("&amp;", "&"))
}

#[tokio::test]
async fn older_changes_follow_page_by_page_without_a_gap() {
    let console = TestConsole::start().await;
    for device in ["fan", "lamp", "door"] {
        let reports: Vec<String> = (0..150).map(|n| format!("{{\"n\":{n}}}")).collect();
        console
            .recorded_reports(device, &reports, Duration::from_millis(10))
            .await;
    }
    let mut path = "/live".to_owned();
    let mut seen = Vec::new();
    let mut pages = 0;
    loop {
        let page = console.html(&path).await;
        assert_eq!(
            page.contains("data-events"),
            pages == 0,
            "only the first is live"
        );
        assert_eq!(page.contains("Newest changes"), pages > 0);
        let some = listed(&page);
        assert!(!some.is_empty() && some.len() <= 200, "{}", some.len());
        seen.extend(some);
        pages += 1;
        match href(&page, "older") {
            Some(older) => path = older,
            None => break,
        }
    }
    assert!(pages > 2, "{pages}");
    let unique: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!((unique.len(), seen.len()), (450, 450));
    // The filter stays, and a selected change opens on its page.
    let page = console
        .html(&path.replace("/live?", "/live?prefix=fan&"))
        .await;
    let some = listed(&page);
    assert!(
        !some.is_empty() && some.iter().all(|id| id.starts_with("fan-")),
        "{some:?}"
    );
    let page = console.html(&format!("{path}&change=fan-1")).await;
    assert!(text(&page).contains("reported , v1, insert"), "{page}");
    let shown = text(&console.html("/live?before=forged").await);
    assert!(shown.contains("The change feed cannot be read."), "{shown}");
}

#[tokio::test]
async fn a_selected_change_shows_its_documents_and_why_registrations_match() {
    let console = with_registrations().await;
    let reports = [r#"{"led":"off","n":1}"#, r#"{"led":"on","n":1}"#].map(str::to_owned);
    console
        .recorded_reports("lamp", &reports, Duration::from_secs(60))
        .await;
    let page = console.html("/live").await;
    let (_, rest) = page.split_once("class=\"soft\" href=\"").unwrap();
    let path = rest.split('"').next().unwrap().replace("&amp;", "&");
    let page = console.html(&path).await;
    let shown = text(&page);
    assert!(shown.contains("matches led-on sns"), "{shown}");
    assert!(shown.contains("no other on.pattern"), "{shown}");
    assert!(shown.contains("\"led\": \"on\""), "{shown}");
    assert!(shown.contains("reported , v1 to v2, modify"), "{shown}");
    assert!(page.contains("name=led-on&amp;shadow=lamp"), "{page}");
    let notification = text(&console.html(&format!("{path}&doc=notification")).await);
    assert!(
        notification.contains("\"operation\" : \"modify\"") && notification.contains("\"diff\""),
        "{notification}"
    );
    let shown = text(&console.html(&format!("{path}&doc=old")).await);
    assert!(shown.contains("\"led\": \"off\""), "{shown}");
    let shown = text(&console.html("/live?change=gone").await);
    assert!(shown.contains("not among these any more"), "{shown}");
}

#[tokio::test]
async fn a_selected_change_says_when_the_device_measured_it() {
    let console = TestConsole::start().await;
    let report = r#"{"temp":{"value":1,"timestamp":"2026-01-31T11:59:58.500Z"}}"#;
    console
        .recorded_reports("freezer", &[report.to_owned()], Duration::from_secs(1))
        .await;
    let shown = text(&console.html("/live?change=freezer-1").await);
    assert!(
        shown.contains("Measured 11:59:58.500 by the device, 1.5 s before"),
        "{shown}"
    );
}
