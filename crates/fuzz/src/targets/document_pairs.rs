//! Merge, diff, apply, acknowledge and leaf times of two documents, checked by their laws and against the
//! naive reference.
//!
//! The input is one document per line, and then the text of leaf times.

use std::time::Duration;

use antumbra_shadow::{
    Arrays, Document, LeafTimes, Mode, Model, Timestamp, acknowledge, apply, delta, diff, merge,
    merge_in_order,
};

use crate::json::{Decimal, numbers};
use crate::reference::value::parse;
use crate::reference::{
    acknowledge as naive_acknowledge, diff as naive_diff, merge as naive_merge,
};

/// 2024-05-01T10:00:01Z.
const NOW_SECONDS: i64 = 1_714_557_601;
/// The reference uses doubles, which keep this many digits.
const DIGITS: usize = 15;
/// The reference cannot read times in the last two days of the year 9999.
const LAST_DAYS: &str = "9999-12-3";
/// The reference is slow for large documents.
const BYTES: usize = 4 * 1024;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut lines = text.split('\n');
    let mut document = || Document::parse(lines.next()?).ok();
    let (Some(one), Some(other)) = (document(), document()) else {
        return;
    };
    let pair = Pair {
        referable: referable(&one) && referable(&other),
        one,
        other,
    };
    for arrays in [Arrays::Matched, Arrays::Whole] {
        let max_future = (text.len() % 2 == 0).then_some(Duration::from_secs(1));
        let model = Model {
            arrays,
            max_future,
            ..Model::default()
        };
        pair.differ(&model);
        pair.acknowledge(&model);
        for mode in [Mode::ServerIsMaster, Mode::ClientIsMaster, Mode::Patch] {
            pair.merge(mode, &model);
        }
        pair.leaf_times(&model, lines.clone().next().unwrap_or_default());
    }
}

/// Returns whether the reference reads all numbers exactly.
fn referable(document: &Document) -> bool {
    let exact = |token: &str| {
        let whole = token.parse::<i64>().is_ok();
        whole || Decimal::of(token).is_some_and(|number| number.significant() <= DIGITS)
    };
    let text = document.as_str();
    text.len() <= BYTES && !text.contains(LAST_DAYS) && numbers(text).into_iter().all(exact)
}

struct Pair {
    one: Document,
    other: Document,
    referable: bool,
}

impl Pair {
    fn differ(&self, model: &Model) {
        let Pair { one, other, .. } = self;
        let found = diff(one.view(), other.view(), model);
        assert_eq!(found.is_empty(), one == other);
        assert_eq!(apply(one, &found).as_ref(), Ok(other), "from {one}");
        assert!(diff(one.view(), one.view(), model).is_empty());
        if self.referable && model.arrays == Arrays::Matched {
            let ours = naive_diff::Lines::of(&found).to_string();
            let theirs = naive_diff::diff(&parse(one.as_str()), &parse(other.as_str()), model);
            assert_eq!(ours, theirs.to_string(), "{one} to {other}");
        }
    }

    fn acknowledge(&self, model: &Model) {
        let (reported, desired) = (&self.one, &self.other);
        let found = acknowledge(reported, desired, model);
        assert_eq!(delta(desired, reported, model), found.desired);
        let again = acknowledge(reported, &found.desired, model);
        assert_eq!(again.desired, found.desired);
        assert!(again.acknowledged.is_empty(), "{desired} of {reported}");
        assert!(acknowledge(desired, desired, model).desired.is_empty());
        if self.referable {
            let (report, wanted) = (parse(reported.as_str()), parse(desired.as_str()));
            let theirs = naive_acknowledge::acknowledge(&report, &wanted, model);
            let remaining = Document::from_value(&theirs.remaining).unwrap();
            assert_eq!(found.desired, remaining, "{desired} of {reported}");
            let pointers = found.acknowledged.pointers(usize::MAX).unwrap();
            assert_eq!(pointers, theirs.acknowledged, "{desired} of {reported}");
        }
    }

    fn merge(&self, mode: Mode, model: &Model) {
        let (stored, sent) = (&self.one, &self.other);
        let now = Timestamp::from_nanoseconds(i128::from(NOW_SECONDS) * 1_000_000_000);
        let once = merge(stored, sent, mode, model, now);
        assert_eq!(
            once.changed(),
            once.document != *stored,
            "{sent} into {stored}"
        );
        let mut listed = false;
        let mut lines = Vec::new();
        once.changes.for_each(|change| {
            listed |= change.verdict.is_change();
            lines.push(naive_merge::Line {
                pointer: change.pointer.to_owned(),
                verdict: change.verdict.as_str(),
                note: change.note.map_or("", |note| note.as_str()),
            });
        });
        assert_eq!(once.changed(), listed, "{sent} into {stored}");
        let form = once.document.as_str();
        assert_eq!(
            Document::parse(form).as_ref().map(Document::as_str),
            Ok(form)
        );
        let twice = merge(&once.document, sent, mode, model, now);
        assert_eq!(twice.document, once.document, "{sent} into {stored}");
        assert!(!twice.changed());
        if self.referable {
            let (was, update) = (parse(stored.as_str()), parse(sent.as_str()));
            let theirs = naive_merge::merge(&was, &update, mode, model, now.nanoseconds());
            let document = Document::from_value(&theirs.document).unwrap();
            assert_eq!(once.document, document, "{sent} into {stored}, {mode}");
            assert_eq!(lines, theirs.verdicts, "{sent} into {stored}, {mode}");
        }
    }

    fn leaf_times(&self, model: &Model, text: &str) {
        let at = |seconds: i128| Timestamp::from_nanoseconds(seconds * 1_000_000_000);
        let first = LeafTimes::all(&self.one, at(1));
        let times = first.after(&self.one, &self.other, model, at(2));
        let encoded = times.encode();
        let decoded = LeafTimes::decode(&encoded, &self.other);
        assert_eq!(decoded.as_ref(), Some(&times), "{encoded}");
        for json in [
            times.metadata(&self.other),
            times.metadata_of(self.one.view(), &self.other, 3),
        ] {
            serde_json::from_str::<serde::de::IgnoredAny>(&json).unwrap();
        }
        if let Some(foreign) = LeafTimes::decode(text, &self.other) {
            let again = foreign.encode();
            let decoded = LeafTimes::decode(&again, &self.other);
            assert_eq!(decoded.as_ref(), Some(&foreign), "{text}");
            let _ = foreign.metadata(&self.other);
            for mode in [Mode::ServerIsMaster, Mode::ClientIsMaster, Mode::Patch] {
                let (stored, sent) = (&self.other, &self.one);
                let merged =
                    merge_in_order(stored, &foreign, sent, Some(at(1)), mode, model, at(2));
                let times = merged.times.unwrap().encode();
                assert!(
                    LeafTimes::decode(&times, &merged.document).is_some(),
                    "{times}"
                );
            }
        }
    }
}
