//! Messages in any order, and repeated, end as they would in the order of their times.

use antumbra_shadow::{Arrays, Document, LeafTimes, Mode, Model, Timestamp, merge, merge_in_order};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::strategies::document_of;
use crate::config;

/// Plain values with nulls, at a few nested pointers. Empty objects have no time of their own once
/// they have members.
fn message() -> impl Strategy<Value = Value> {
    let scalar = select(vec![
        json!(null),
        json!(null),
        json!(1),
        json!(2),
        json!([]),
        json!([1]),
    ]);
    let value = scalar.prop_recursive(3, 8, 2, |inner| {
        let name = select(vec!["a", "b"]).prop_map(str::to_owned);
        btree_map(name, inner, 1..3).prop_map(|members| json!(members))
    });
    let name = select(vec!["a", "b"]).prop_map(str::to_owned);
    btree_map(name, value, 0..3).prop_map(|members| json!(members))
}

/// Messages by their times, with how each is sent, and the order in which they arrive.
fn messages() -> impl Strategy<Value = (Vec<(Value, Mode)>, Vec<usize>)> {
    let mode = select(vec![
        Mode::Patch,
        Mode::Patch,
        Mode::Patch,
        Mode::ClientIsMaster,
    ]);
    vec((message(), mode), 1..6).prop_flat_map(|messages| {
        let count = messages.len();
        let arrivals: Vec<usize> = (0..count).chain(0..count).collect();
        (Just(messages), Just(arrivals).prop_shuffle())
    })
}

fn at(second: usize) -> Timestamp {
    Timestamp::from_nanoseconds((1_700_000_000 + second as i128) * 1_000_000_000)
}

proptest! {
    #![proptest_config(config(4000))]

    #[test]
    fn the_order_of_arrival_does_not_matter((messages, arrivals) in messages()) {
        let model = Model { arrays: Arrays::Whole, ..Model::default() };
        let mut expected = Document::default();
        for (message, mode) in &messages {
            expected = merge(&expected, &document_of(message), *mode, &model, at(0)).document;
        }
        let (mut stored, mut times) = (Document::default(), LeafTimes::default());
        for second in arrivals {
            let (message, mode) = &messages[second];
            let (sent, now) = (document_of(message), at(60));
            let merged = merge_in_order(&stored, &times, &sent, Some(at(second)), *mode, &model, now);
            prop_assert_eq!(merged.changed(), merged.document != stored);
            let text = merged.times.map(|times| times.encode()).unwrap_or_default();
            stored = merged.document;
            let decoded = LeafTimes::decode(&text, &stored);
            prop_assert!(decoded.is_some(), "{} of {}", text, stored);
            times = decoded.unwrap_or_default();
            let again = merge_in_order(&stored, &times, &sent, Some(at(second)), *mode, &model, now);
            prop_assert!(!again.changed() && !again.times_changed(), "{} into {}", sent, stored);
        }
        prop_assert_eq!(stored.as_str(), expected.as_str());
    }

    #[test]
    fn without_a_time_the_message_wins((messages, _) in messages()) {
        let model = Model { arrays: Arrays::Whole, ..Model::default() };
        let (mut stored, mut times) = (Document::default(), LeafTimes::all(&Document::default(), at(0)));
        for (second, (message, mode)) in messages.iter().enumerate() {
            let sent = document_of(message);
            // The clock does not advance, or runs backwards.
            let now = at(30 - second);
            let plain = merge(&stored, &sent, *mode, &model, now).document;
            let merged = merge_in_order(&stored, &times, &sent, None, *mode, &model, now);
            prop_assert_eq!(&merged.document, &plain);
            (stored, times) = (merged.document, merged.times.unwrap_or_default());
            prop_assert_eq!(LeafTimes::decode(&times.encode(), &stored), Some(times.clone()));
        }
    }
}
