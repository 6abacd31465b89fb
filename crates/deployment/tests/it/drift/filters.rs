//! Filters of the streams: each lets through one kind of records, as the keys of the items say, and together they let through
//! what the shipped registrations match.

use antumbra_notify::files;
use antumbra_wire::items::{ItemKind, StreamKind, StreamKinds};
use serde_json::{Value, json};

use crate::functions::{Source, functions};
use crate::template::{Stack, text};

/// Quotas of Lambda for an event source.
const FILTERS: usize = 5;
const PATTERN_BYTES: usize = 4096;

/// Listener's event sources of the main table and of the messages table, with the given kinds or the default ones.
fn streams(kinds: Option<&str>) -> [Source; 2] {
    let given = kinds.map(|kinds| ("StreamKinds", kinds));
    let mut listener = functions(&Stack::deploy(given.as_slice()))
        .remove("stream-listener")
        .unwrap();
    listener.sources.retain(|source| source.kind == "DynamoDB");
    listener.sources.sort_by_key(|source| source.arn());
    let [messages, main] = listener.sources.try_into().unwrap();
    assert!(messages.arn().unwrap().contains("-messages/"));
    [main, messages]
}

fn patterns(source: &Source) -> Option<Vec<Value>> {
    let filters = source.properties.get("FilterCriteria")?["Filters"].as_array()?;
    assert!((1..=FILTERS).contains(&filters.len()), "{filters:?}");
    let pattern = |filter: &Value| {
        let pattern = text(&filter["Pattern"]);
        assert!(pattern.len() <= PATTERN_BYTES);
        serde_json::from_str(&pattern).unwrap()
    };
    Some(filters.iter().map(pattern).collect())
}

/// The filter of a kind: the keys of its items, of which those that end with an id are prefixes.
fn filter(kind: StreamKind) -> Value {
    let test = |key: &str| match key.ends_with('#') {
        true => json!({ "prefix": key }),
        false => json!(key),
    };
    let (mut partitions, mut sorts) = (Vec::new(), Vec::new());
    for item in kind.items() {
        for (tests, key) in [
            (&mut partitions, item.partition_prefix()),
            (&mut sorts, item.sort_prefix()),
        ] {
            if !tests.contains(&test(key)) {
                tests.push(test(key));
            }
        }
    }
    json!({ "dynamodb": { "Keys": { "PK": { "S": partitions }, "SK": { "S": sorts } } } })
}

fn holds(test: &Value, actual: &str) -> bool {
    match (test.as_str(), test.get("prefix"), test.get("anything-but")) {
        (Some(whole), None, None) => whole == actual,
        (None, Some(prefix), None) => actual.starts_with(prefix.as_str().unwrap()),
        (None, None, Some(others)) => !others.as_array().unwrap().contains(&json!(actual)),
        _ => panic!("{test}"),
    }
}

/// Returns whether Lambda passes on a record of an item of this kind, in whatever shard it is.
fn passes(sources: &[Source; 2], item: ItemKind) -> bool {
    let with_id = |key: String| match key.is_empty() || key.ends_with('#') {
        true => key + "id",
        false => key,
    };
    let sort = with_id(item.sort(""));
    if item != ItemKind::InboxSource {
        return passes_key(sources, item, [with_id(item.partition("")), sort]);
    }
    let shards = (0..antumbra_dynamodb::SOURCE_SHARDS).map(|shard| shard.to_string());
    let passed =
        shards.map(|shard| passes_key(sources, item, [item.partition(&shard), sort.clone()]));
    let passed: Vec<bool> = passed.collect();
    assert!(passed.iter().all(|one| *one == passed[0]), "{passed:?}");
    passed[0]
}

fn passes_key(sources: &[Source; 2], item: ItemKind, keys: [String; 2]) -> bool {
    let in_messages = item.is_in_messages_table();
    let source = &sources[usize::from(in_messages)];
    if source.properties["Enabled"] == json!(false) {
        return false;
    }
    let Some(patterns) = patterns(source) else {
        return true;
    };
    let names = match in_messages {
        true => ["uuid", "messageId"],
        false => ["PK", "SK"],
    };
    patterns.iter().any(|pattern| {
        let mut tested = pattern["dynamodb"]["Keys"].as_object().unwrap().iter();
        tested.all(|(name, tests)| {
            let at = names.iter().position(|known| known == name).unwrap();
            let mut tests = tests["S"].as_array().unwrap().iter();
            tests.any(|test| holds(test, &keys[at]))
        })
    })
}

#[test]
fn a_filter_is_made_of_the_keys_of_its_items() {
    for kind in StreamKind::ALL {
        let [main, messages] = streams(Some(kind.as_str()));
        let is_messages = kind == StreamKind::Messages;
        assert_eq!(main.properties["Enabled"], !is_messages, "{kind:?}");
        assert_eq!(messages.properties["Enabled"], is_messages, "{kind:?}");
        if !is_messages {
            assert_eq!(patterns(&main).unwrap(), [filter(kind)], "{kind:?}");
        }
    }
}

#[test]
fn records_that_nobody_wants_invoke_nobody() {
    let every = StreamKind::ALL.map(StreamKind::as_str).join(",");
    for kinds in [
        None,
        Some("readings,registry"),
        Some("deliveries"),
        Some(every.as_str()),
    ] {
        let sources = streams(kinds);
        let listened: StreamKinds = kinds.unwrap_or("shadows,states,messages").parse().unwrap();
        for &item in ItemKind::ALL {
            let wanted = item
                .stream_kind()
                .is_some_and(|kind| listened.contains(kind));
            assert_eq!(passes(&sources, item), wanted, "{kinds:?} {item:?}");
        }
    }
    let all = streams(Some("all"));
    assert!(all.iter().all(|source| patterns(source).is_none()));
    assert!(
        all.iter()
            .all(|source| source.properties["Enabled"] == json!(true))
    );
}

#[test]
fn the_filters_let_through_what_the_shipped_registrations_match() {
    let registrations = files::load(&super::workspace().join("registrations"), &|_| None).unwrap();
    let functions = functions(&Stack::deploy(&[]));
    let deployed = &functions["stream-listener"].environment["STREAM_KINDS"];
    assert_eq!(
        *deployed,
        StreamKinds::needed_by(&registrations).to_string()
    );
}
