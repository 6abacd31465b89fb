//! The page of registrations and its test bench.

use antumbra_registration::Operation;
use antumbra_shadow::{Document, Timestamp};
use antumbra_wire::history::{Entry, EntryDocument, HistoryKey};
use antumbra_wire::items::ShadowItem;

use crate::support::{TestConsole, TestOptions, text};

const FREEZER: &str = r#"{
  "name": "freezer-too-warm",
  "on": {
    "key": "^DS#House A#Freezer#DSR#",
    "state": "reported",
    "pattern": {
      "old": { "temp": [{ "numeric": ["<=", -15] }] },
      "new": { "temp": [{ "numeric": [">", -15] }] }
    }
  },
  "to": { "sns": { "topic": "${env:ALARMS}" } }
}"#;
const ALL: &str = r#"{"name":"all","to":{"sqs":{"queue":"everything"}}}"#;
const HOSTILE: &str = r#"{"name":"hostile","enabled":false,"description":"<script>alert(1)</script>",
    "on":{"key":"^<img src=x>","pattern":{"new":{"</textarea><b>":["\u202e</li>"]}}},"to":{"sqs":{"queue":"q"}}}"#;

async fn start() -> TestConsole {
    let file = |name: &str, text: &str| (format!("{name}.json"), text.to_owned());
    let registrations = vec![
        file("freezer", FREEZER),
        file("all", ALL),
        file("hostile", HOSTILE),
    ];
    TestConsole::start_with(TestOptions {
        registrations,
        ..TestOptions::default()
    })
    .await
}

/// Records versions of the reported document of `House A#Freezer`, one per minute before noon.
async fn record(console: &TestConsole, documents: &[&str]) -> Vec<Timestamp> {
    let noon = Timestamp::parse("2026-01-31T12:00:00Z")
        .unwrap()
        .nanoseconds();
    let minute = 60_000_000_000;
    let first = noon - minute * documents.len() as i128;
    let times: Vec<u64> = (0..documents.len() as i128)
        .map(|at| u64::try_from(first + minute * at).unwrap())
        .collect();
    let entry = |(at, document): (usize, &&str)| Entry {
        key: HistoryKey {
            id: "House A#Freezer".to_owned(),
            name: "main".to_owned(),
            item: ShadowItem::Reported,
            time: times[at],
            version: at as u64 + 1,
        },
        operation: if at == 0 {
            Operation::Insert
        } else {
            Operation::Modify
        },
        previous_time: at.checked_sub(1).map(|before| times[before]),
        client_token: None,
        reported: Some(EntryDocument {
            diff: None,
            document: Some(Document::parse(document).unwrap()),
        }),
        desired: None,
    };
    let entries: Vec<Entry> = documents.iter().enumerate().map(entry).collect();
    let deadline = console.clock_after(60);
    let written = console
        .history
        .write(&entries, deadline, &*console.clock)
        .await;
    assert!(written.written.iter().all(|one| *one), "{written:?}");
    let times = times.iter();
    times
        .map(|time| Timestamp::from_nanoseconds((*time).into()))
        .collect()
}

#[tokio::test]
async fn registrations_are_listed_with_target_and_state() {
    let console = start().await;
    let page = text(&console.html("/registrations").await);
    assert!(page.contains("3 files"), "{page}");
    assert!(
        page.contains("all every shadow any sqs everything on"),
        "{page}"
    );
    assert!(
        page.contains("reported; pattern on old, new sns ${env:ALARMS} on"),
        "{page}"
    );
    assert!(page.contains("sqs q off"), "{page}");
    assert!(page.contains("Give the id of a shadow"), "{page}");
}

#[tokio::test]
async fn the_newest_recorded_change_is_explained_and_the_deciding_line_marked() {
    let console = start().await;
    let times = record(
        &console,
        &[r#"{"temp":-18}"#, r#"{"temp":-14.8}"#, r#"{"temp":-14.1}"#],
    )
    .await;
    let path = "/registrations?name=freezer-too-warm&shadow=House+A%23Freezer";
    let html = console.html(path).await;
    let page = text(&html);
    assert!(page.contains("1 of 3 match"), "{page}");
    assert!(page.contains("freezer-too-warm no: on.pattern"), "{page}");
    assert!(page.contains("does not match"), "{page}");
    assert!(
        page.contains("/old/temp must be [{\"numeric\":[\"<=\",-15]}], but is -14.8"),
        "{page}"
    );
    // The lines before the deciding one hold; `new` is evaluated before `old`.
    assert!(
        html.contains(r#"<li class="y" data-mark="✓">    <bdi>&quot;key&quot;"#),
        "{html}"
    );
    let (_, decided) = html.split_once(r#"class="n" data-mark="✕">"#).unwrap();
    let decided = decided.split("</li>").next().unwrap();
    assert!(
        decided.contains("&quot;temp&quot;") && decided.contains("&lt;="),
        "{decided}"
    );
    // An earlier change matches.
    let earlier = format!("{path}&change=reported@{}", times[1]);
    let page = text(&console.html(&earlier).await);
    assert!(page.contains("2 of 3 match"), "{page}");
    assert!(page.contains("freezer.json matches"), "{page}");
    // A link from another page.
    let link = format!(
        "/registrations?id=House+A%23Freezer&name=main&state=reported&at={}",
        times[1]
    );
    let page = text(&console.html(&link).await);
    assert!(page.contains("2 of 3 match"), "{page}");
}

#[tokio::test]
async fn a_draft_is_tried_on_the_change_and_on_the_day() {
    let console = start().await;
    record(
        &console,
        &[
            r#"{"temp":-18}"#,
            r#"{"temp":-14.8}"#,
            r#"{"temp":-14.1}"#,
            r#"{"temp":-18}"#,
        ],
    )
    .await;
    let path = "/registrations?name=freezer-too-warm&shadow=House+A%23Freezer";
    let draft = "&draft=%7B%22new%22%3A%7B%22temp%22%3A%5B-18%5D%7D%7D";
    let page = text(&console.html(&format!("{path}{draft}")).await);
    assert!(
        page.contains("Matches. In the last 24 h: 2 of 4 changes of this shadow."),
        "{page}"
    );
    let wrong = "&draft=%7B%22new%22%3A%7B%22temp%22%3A-18%7D%7D";
    let page = text(&console.html(&format!("{path}{wrong}")).await);
    assert!(
        page.contains("Not a pattern. freezer.json: /on/pattern/new/temp: must be a list"),
        "{page}"
    );
    let page = text(&console.html(&format!("{path}&draft=%7B")).await);
    assert!(page.contains("The draft is not JSON."), "{page}");
}

#[tokio::test]
async fn typed_changes_of_shadows_and_other_items_are_explained() {
    let mut console = start().await;
    let typed = "/registrations?name=freezer-too-warm&shadow=House+A%23Freezer&old=%7B%22temp%22%3A-20%7D&new=%7B%22temp%22%3A1%7D";
    let page = text(&console.html(typed).await);
    assert!(
        page.contains("2 of 3 match") && page.contains("modify, reported"),
        "{page}"
    );
    let page = text(
        &console
            .html("/registrations?name=all&key=SENSOR%23d%23STATE&new=%7B%7D")
            .await,
    );
    assert!(page.contains("without a key only shadows match"), "{page}");
    let page = text(&console.html("/registrations?shadow=a&new=%7B").await);
    assert!(page.contains("New is not a document"), "{page}");
    // A document that no URL holds.
    let large = format!(r#"{{"a":"{}","temp":1}}"#, "x".repeat(300_000));
    let fields = [
        ("name", "freezer-too-warm"),
        ("shadow", "House A#Freezer"),
        ("old", r#"{"temp":-20}"#),
        ("new", large.as_str()),
    ];
    let page = console.post("/registrations/try", &fields).await;
    assert_eq!(page.status, 200);
    assert!(text(&page.text).contains("2 of 3 match"), "{}", page.text);
}

#[tokio::test]
async fn hostile_registrations_and_documents_are_text() {
    let console = start().await;
    let path = "/registrations?name=hostile&shadow=%3Cscript%3Ealert(1)%3C%2Fscript%3E&new=%7B%22%3C%2Ftextarea%3E%3Cscript%3E%22%3A1%7D";
    let html = console.html(path).await;
    for tag in ["<script>", "<img", "</textarea><", "<b>&", "javascript:"] {
        assert!(!html.contains(tag) || tag == "</textarea><", "{tag}");
    }
    assert_eq!(
        html.matches("<textarea").count(),
        html.matches("</textarea>").count()
    );
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    let page = text(&html);
    assert!(page.contains("the registration is disabled"), "{page}");
}

#[tokio::test]
async fn problems_of_registrations_are_shown() {
    let broken = vec![(
        "broken.json".to_owned(),
        r#"{"name":"b","on":{"key":"("}}"#.to_owned(),
    )];
    let console = TestConsole::start_with(TestOptions {
        registrations: broken,
        ..TestOptions::default()
    })
    .await;
    let page = text(
        &console
            .html("/registrations?name=b&shadow=a&new=%7B%7D")
            .await,
    );
    assert!(
        page.contains("The registrations have problems") && page.contains("broken.json: has no to"),
        "{page}"
    );
    let none = TestConsole::start().await;
    assert!(text(&none.html("/registrations").await).contains("No registrations"));
}
