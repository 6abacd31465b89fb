//! Under ServerIsMaster, timestamped values converge in any order and grouping.

use antumbra_shadow::{Document, Mode, Model, merge};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::strategies::{document_of, now, written};
use crate::config;
use crate::reference::value::parse;

/// Pointers of the values; none contains another.
const PLACES: [&str; 7] = [
    "/a", "/b/c", "/b/d/e", "/b/d/f", "/~0~1", "/list/1", "/list/x",
];

/// Reports, each with some places measured. All times differ.
fn reports() -> impl Strategy<Value = Vec<Value>> {
    let reading = (0..PLACES.len(), 0..1000_i64, 0..8_u8);
    vec(vec(reading, 0..5), 1..6).prop_map(|reports| {
        let mut count = 0;
        let mut one = |readings: Vec<(usize, i64, u8)>| {
            let mut report = json!({});
            for (place, order, form) in readings {
                count += 1;
                // Whole seconds, so that every form denotes the same instant; the count makes them differ.
                let quarters = (order * 1000 + count) * 4;
                put(
                    &mut report,
                    PLACES[place],
                    json!({ "timestamp": written(quarters, form), "value": count }),
                );
            }
            report
        };
        reports.into_iter().map(&mut one).collect()
    })
}

fn put(report: &mut Value, place: &str, mut value: Value) {
    if let Some(id) = place.strip_prefix("/list/") {
        value["id"] = id.into();
        let list = &mut report["list"];
        if list.is_null() {
            *list = json!([]);
        }
        let items = list.as_array_mut().expect("a list");
        match items.iter_mut().find(|item| item["id"] == id) {
            Some(item) => *item = value,
            None => items.push(value),
        }
        return;
    }
    let mut at = report;
    for part in place[1..].split('/') {
        at = &mut at[part.replace("~1", "/").replace("~0", "~")];
    }
    *at = value;
}

fn take(stored: &Document, sent: &Document) -> Document {
    merge(stored, sent, Mode::ServerIsMaster, &Model::default(), now()).document
}

/// Elements matched by id are in order of arrival; the law does not cover their order.
fn in_one_order(document: &Document) -> Value {
    let mut value = parse(document.as_str());
    if let Some(items) = value.get_mut("list").and_then(Value::as_array_mut) {
        items.sort_by_key(|item| item["id"].to_string());
    }
    value
}

/// Merges the reports of each group into one, and the groups into each other; the cuts determine the groups.
fn grouped(reports: &[Document], cuts: &[bool]) -> Document {
    let mut groups: Vec<Document> = Vec::new();
    for (report, cut) in reports.iter().zip(cuts.iter().cycle()) {
        match groups.last_mut() {
            Some(group) if !cut => *group = take(group, report),
            _ => groups.push(report.clone()),
        }
    }
    // The last groups first, so that the grouping is no mere fold from the left.
    groups
        .into_iter()
        .rev()
        .reduce(|later, earlier| take(&earlier, &later))
        .unwrap_or_default()
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn order_and_grouping_do_not_matter(
        (reports, shuffled) in reports().prop_flat_map(|reports| (Just(reports.clone()), Just(reports).prop_shuffle())),
        cuts in vec(any::<bool>(), 1..6),
    ) {
        let documents = |reports: &[Value]| reports.iter().map(document_of).collect::<Vec<_>>();
        let straight = documents(&reports).iter().fold(Document::default(), |stored, sent| take(&stored, sent));
        let other = grouped(&documents(&shuffled), &cuts);
        prop_assert_eq!(in_one_order(&straight), in_one_order(&other));
        for place in PLACES {
            let newest = reports.iter().filter_map(|report| reading(report, place)).max_by_key(instant);
            prop_assert_eq!(reading(&parse(straight.as_str()), place), newest, "{}", place);
        }
    }
}

fn reading(report: &Value, place: &str) -> Option<Value> {
    match place.strip_prefix("/list/") {
        Some(id) => report
            .get("list")?
            .as_array()?
            .iter()
            .find(|item| item["id"] == id)
            .cloned(),
        None => report.pointer(place).cloned(),
    }
}

fn instant(reading: &Value) -> Option<i128> {
    crate::reference::value::instant(&reading["timestamp"])
}
