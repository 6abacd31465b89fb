//! The inputs of peers, so that all measure the same.

use std::path::Path;

use crate::documents;
use crate::listeners::rules;
use crate::patterns;
use crate::variants::{RECORDS, SEED};
use antumbra_testkit::stream::{self, Order, Shape};

/// Writes all inputs.
pub(crate) fn write(directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    let put = |name: String, text: &[u8]| std::fs::write(directory.join(name), text).unwrap();
    for (name, shape) in Shape::ALL {
        let event = stream::event(RECORDS, shape, Order::Same, SEED);
        put(format!("event-{name}.json"), &event);
        // One document per line, old and new alternating, and the expected results.
        let pairs = documents::pairs(shape);
        let outcomes = documents::outcomes(&pairs, shape);
        for (kind, documents) in [
            ("documents", pairs.concat()),
            ("merged", outcomes.merged),
            ("merged-late", outcomes.merged_late),
            ("desired", outcomes.desired),
            ("still-desired", outcomes.still_desired),
        ] {
            put(format!("{kind}-{name}.jsonl"), lines(documents).as_bytes());
        }
    }
    put("rules.txt".to_owned(), lines(rules(10, true)).as_bytes());
    for count in patterns::COUNTS {
        let rules = patterns::patterns(count)
            .into_iter()
            .map(|rule| rule.to_string());
        put(format!("patterns-{count}.jsonl"), lines(rules).as_bytes());
        let documents = patterns::documents(count);
        put(
            format!("changes-{count}.jsonl"),
            lines(documents).as_bytes(),
        );
    }
}

fn lines(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().map(|text| text + "\n").collect()
}
