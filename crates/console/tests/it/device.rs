//! The page of a device.

use std::io::Read as _;
use std::time::Duration;

use antumbra_service::clock::Clock as _;
use antumbra_service::history::RecordedChange;
use antumbra_service::shadows::{DocumentSet, ShadowId};
use antumbra_shadow::{Document, Patch};
use antumbra_wire::history::{Entry, EntryDocument, HistoryKey, Operation};
use antumbra_wire::items::ShadowItem;
use http_body_util::BodyExt as _;

use crate::support::{TestConsole, TestOptions, text};

/// Calls for the page of a device with 10,000 changes: the shadow, its names, its newest changes, all changes in pages
/// of 1 MB, and the documents of those in the timeline.
const CALLS: usize = 20;

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
    let shown = text(&conflict.text);
    assert!(
        shown.contains(
            "You edited v0; it is now v1, written now by client token console . Your text is kept."
        ),
        "{shown}"
    );
    // The form has the new version, and the button sends it.
    assert!(conflict.text.contains("name=\"if-version\" value=\"1\""));
    assert!(
        conflict
            .text
            .contains("form=\"edit-form\">Apply to v1</button>")
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
async fn the_time_bar_has_the_shortest_range_that_holds_all_changes() {
    let console = TestConsole::start().await;
    console
        .recorded_reports("freezer", &documents(14), Duration::from_secs(60))
        .await;
    let shown = async |path: &str| {
        let page = console.html(path).await;
        let (_, ranges) = page.split_once("aria-label=\"Range\"").unwrap();
        let (_, range) = ranges.split_once("aria-current=\"true\">").unwrap();
        range.split('<').next().unwrap().to_owned()
    };
    assert_eq!(shown("/device?id=freezer").await, "15 min");
    assert_eq!(shown("/device?id=freezer&at=-5m").await, "15 min");
    assert_eq!(shown("/device?id=freezer&range=7d").await, "7 d");
    assert_eq!(shown("/device?id=unknown").await, "6 h");
    for (minutes, range) in [(30, "1 h"), (60, "6 h"), (6 * 60, "6 h")] {
        console.clock.advance(Duration::from_secs(60 * minutes));
        assert_eq!(shown("/device?id=freezer").await, range);
    }
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
    // The shortest range that holds all changes.
    assert!(page.contains("aria-current=\"true\">15 min</a>"), "{page}");
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
    assert!(shown.contains("2 values differ from now."), "{shown}");
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
        shown.contains("Field 12:01:30 v2 12:14:00 v14 Document Changes between Last client token"),
        "{shown}"
    );
    assert!(
        shown.contains("~ updated /temp /value 1 13 reported 12 "),
        "{shown}"
    );
    assert!(
        shown.contains("0 added, 1 updated, 0 removed, 1 the same Show fields that are the same"),
        "{shown}"
    );
    let shown = text(
        &console
            .html("/device?id=freezer&from=12:01:30&to=now&same=1")
            .await,
    );
    assert!(
        shown.contains("= the same /door \"closed\" same reported"),
        "{shown}"
    );
    let shown = text(&console.html("/device?id=freezer&path=/door").await);
    assert!(shown.contains("\"closed\" → to \"open\""), "{shown}");
    let page = console.html("/device?id=freezer&at=11:59&range=1h").await;
    let shown = text(&page);
    assert!(
        shown.contains("The shadow did not exist at 11:59:00 . Its next change is of 12:00:00"),
        "{shown}"
    );
    assert!(
        page.contains("at=2026-01-31T12%3A00%3A00Z\">Show that change"),
        "{page}"
    );
}

#[tokio::test]
async fn a_past_state_has_rows_for_values_that_exist_only_now() {
    let console = TestConsole::start().await;
    let reports = [
        r#"{"net":{"ip":"a"},"temp":{"value":1,"unit":"°C"}}"#,
        r#"{"net":{"ip":"a","rssi":-61},"temp":{"value":1,"unit":"°C"},"fan":2}"#,
    ];
    console
        .recorded_reports(
            "freezer",
            &reports.map(str::to_owned),
            Duration::from_secs(60),
        )
        .await;
    let at = "/device?id=freezer&at=2026-01-31T12:00:30Z";
    let shown = text(&console.html(at).await);
    assert!(shown.contains("2 values differ from now."), "{shown}");
    assert!(shown.contains("fan absent 2 net ip"), "{shown}");
    assert!(shown.contains("rssi absent -61"), "{shown}");
    let shown = text(&console.html(&format!("{at}&fields=changed")).await);
    assert!(
        shown.contains("fan absent 2 net/rssi absent -61") && !shown.contains("net/ip"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_chart_names_units_and_takes_a_second_field() {
    let console = TestConsole::start().await;
    let report = |n: usize| format!(r#"{{"rpm":{n},"temp":{{"value":{},"unit":"°C"}}}}"#, 2 * n);
    let reports: Vec<String> = (0..4).map(report).collect();
    console
        .recorded_reports("fan", &reports, Duration::from_secs(60))
        .await;
    let page = console.html("/device?id=fan&chart=/temp/value").await;
    assert!(
        page.contains("name=\"chart\" value=\"/temp/value\">Add field</button>"),
        "{page}"
    );
    assert!(text(&page).contains("/temp/value , °C"), "{}", text(&page));
    assert!(!page.contains("class=\"series-set\""), "{page}");
    let page = console
        .html("/device?id=fan&chart=/rpm&chart=/temp/value")
        .await;
    assert!(page.contains("class=\"series-set\" d=\"M"), "{page}");
}

#[tokio::test]
async fn a_value_that_is_older_than_the_stored_one_is_named_as_stale() {
    let mut console = TestConsole::start().await;
    console
        .desire(
            "lamp",
            r#"{"led":{"value":"on","timestamp":"2026-01-31T12:00:00Z"}}"#,
        )
        .await;
    let older = r#"{"led":{"value":"off","timestamp":"2026-01-31T11:00:00Z"},"mode":"eco"}"#;
    let path = "/device?id=lamp&edit=1";
    let preview = console
        .post(path, &[("patch", older), ("do", "preview")])
        .await;
    let shown = text(&preview.text);
    assert!(
        shown.contains("= /led kept: stale , what is stored is newer"),
        "{shown}"
    );
    assert_eq!(console.post(path, &[("patch", older)]).await.status, 303);
    let shown = text(&console.html("/device?id=lamp").await);
    assert!(
        shown.contains("Written: desired v2; kept: stale /led"),
        "{shown}"
    );
}

const WARM: &str = r#"{"name":"warm","on":{"state":"reported","pattern":{"old":{"temp":{"value":[{"numeric":["<",5]}]}},
    "new":{"temp":{"value":[{"numeric":[">=",5]}]}}}},"to":{"sqs":{"queue":"alerts"}}}"#;

#[tokio::test]
async fn the_timeline_names_the_registrations_that_match() {
    for (registrations, is_selected_only) in [(None, false), (Some("rules".to_owned()), true)] {
        let console = TestConsole::start_with(TestOptions {
            registrations: vec![("warm.json".to_owned(), WARM.to_owned())],
            place_registrations: registrations,
            ..TestOptions::default()
        })
        .await;
        console
            .recorded_reports("freezer", &documents(8), Duration::from_secs(60))
            .await;
        let link = "/registrations?name=warm&amp;shadow=freezer&amp;sname=main&amp;change=reported%402026-01-31T12%3A05%3A00Z#bench";
        let page = console.html("/device?id=freezer").await;
        let expected = usize::from(!is_selected_only);
        assert_eq!(page.matches(link).count(), expected, "{page}");
        assert_eq!(text(&page).matches("matches warm sqs").count(), expected);
        // The change from 4 to 5 is selected.
        let path = "/device?id=freezer&at=2026-01-31T12:05:00Z";
        let page = console.html(path).await;
        assert_eq!(page.matches(link).count(), 1, "{page}");
        assert!(text(&page).contains("1 min later"), "{page}");
        assert!(text(&page).contains("5 min earlier"), "{page}");
    }
}

/// Records changes of a device with 500 fields, each of one field.
async fn busy(console: &TestConsole, changes: u64, apart: Duration) {
    let document = |version: u64| {
        let value = |field: u64| version - (version + 500 - field) % 500;
        let fields = (0..500).map(|field| format!("\"field-{field}\":{}", value(field) as i64));
        format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
    };
    let start = console.clock.now();
    let time = |version: u64| {
        let at = start.after(apart * u32::try_from(version).unwrap());
        u64::try_from(at.nanoseconds()).unwrap()
    };
    let entry = |version: u64| Entry {
        key: HistoryKey {
            id: "busy".to_owned(),
            name: "main".to_owned(),
            item: ShadowItem::Reported,
            time: time(version),
            version,
        },
        operation: Operation::Modify,
        previous_time: Some(time(version - 1)),
        client_token: None,
        reported: Some(EntryDocument {
            diff: Some(Patch::parse(&diff(version)).unwrap()),
            document: version
                .is_multiple_of(32)
                .then(|| Document::parse(&document(version)).unwrap()),
        }),
        desired: None,
    };
    let entries: Vec<Entry> = (1001..=1000 + changes).map(entry).collect();
    console
        .clock
        .advance(apart * u32::try_from(1000 + changes).unwrap());
    console.report("busy", &document(1000 + changes)).await;
    let deadline = console.clock_after(600);
    let written = console
        .history
        .write(&entries, deadline, &*console.clock)
        .await;
    assert!(written.written.iter().all(|written| *written));
}

/// The change that a version of the busy device made: its field takes the number of the version.
fn diff(version: u64) -> String {
    format!(
        "[[\"/field-{}\",[{}],[{version}]]]",
        version % 500,
        version - 500
    )
}

#[tokio::test]
async fn a_device_with_10_000_changes_and_500_fields_is_one_small_page() {
    let console = TestConsole::start().await;
    busy(&console, 10_000, Duration::from_secs(1)).await;
    console.endpoint.take_calls();
    let request = console
        .request("GET", "/device?id=busy")
        .header("accept-encoding", "gzip, br, zstd");
    let response = request.send().await;
    let calls = console.endpoint.take_calls();
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-encoding"), Some("zstd"));
    assert!(response.bytes < 60 * 1024, "{} bytes", response.bytes);
    let calls: Vec<&str> = calls.iter().map(|call| &*call.operation).collect();
    assert!(calls.len() <= CALLS, "{} calls: {calls:?}", calls.len());
    let page = String::from_utf8(unpacked(&response.body)).unwrap();
    let shown = text(&page);
    assert!(shown.contains("10,000 changes in this range"), "{shown}");
    assert!(!shown.contains("read back to"), "{shown}");
    assert!(page.contains("aria-label=\"10,000 changes from"), "{page}");
    assert!(shown.contains("Rows 1 to 200 of 500."), "{shown}");
    // All changes of the field are in its chart, not only those of the timeline.
    assert!(
        shown.contains("/field-0: 21 values, 1000 to 11000"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_page_says_where_it_stopped_reading() {
    let console = TestConsole::start_with(TestOptions {
        device_changes: 250,
        ..TestOptions::default()
    })
    .await;
    busy(&console, 300, Duration::from_secs(1)).await;
    let shown = text(&console.html("/device?id=busy").await);
    let read = "The newest 250 changes of this range were read, back to 12:17:31 .";
    assert!(shown.contains(read), "{shown}");
    assert!(
        shown.contains("Pause read back to 12:17:31 changes"),
        "{shown}"
    );
    // A time before what was read has a timeline, and its own changes around it.
    let shown = text(&console.html("/device?id=busy&at=12:17:00&range=1h").await);
    assert!(
        shown.contains("Timeline around 12:17:00 Path Filter 12:17:00 reported v1,020 shown"),
        "{shown}"
    );
    // A path is searched beyond the timeline.
    let shown = text(&console.html("/device?id=busy&path=/field-7").await);
    assert!(shown.contains("507 → to 1007"), "{shown}");
    assert!(!shown.contains("508 → to 1008"), "{shown}");
}

#[tokio::test]
async fn the_head_of_a_device_is_sent_before_its_changes_are_read() {
    let console = TestConsole::start().await;
    console
        .recorded_reports("freezer", &documents(3), Duration::from_secs(60))
        .await;
    for encoding in ["identity", "zstd"] {
        let request = console.request("GET", "/device?id=freezer");
        let response = request.header("accept-encoding", encoding).open().await;
        let mut body = response.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        let rest = body.collect().await.unwrap().to_bytes();
        let (first, whole) = match encoding {
            "zstd" => (unpacked(&first), unpacked(&[first, rest].concat())),
            _ => (first.to_vec(), [first, rest].concat()),
        };
        let (first, whole) = (
            String::from_utf8(first).unwrap(),
            String::from_utf8(whole).unwrap(),
        );
        assert!(
            first.contains("<h1>") && !first.contains("timebar"),
            "{first}"
        );
        assert!(whole.starts_with(&first) && whole.ends_with("</body></html>"));
        assert!(whole.contains("timebar") && !whole.contains("<!--rest-->"));
    }
}

fn unpacked(mut frames: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    while !frames.is_empty() {
        let mut decoder = ruzstd::decoding::StreamingDecoder::new(&mut frames).unwrap();
        decoder.read_to_end(&mut bytes).unwrap();
    }
    bytes
}
