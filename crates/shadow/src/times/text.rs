//! The times of a document as the text that is stored with it.

use std::fmt::Write;
use std::sync::Arc;

use super::removed::{Removed, before};
use super::{LeafTimes, SECOND, Times, leaves, microseconds};
use crate::document::Document;

impl LeafTimes {
    /// As text.
    ///
    /// ```
    /// # use antumbra_shadow::{Document, LeafTimes, Timestamp};
    /// let document = Document::parse(r#"{"a":1,"b":[2,3]}"#)?;
    /// let times = LeafTimes::all(&document, Timestamp::from_nanoseconds(1_700_000_000_000_000_000));
    /// assert_eq!(times.encode(), "1700000000000000:0*3");
    /// assert_eq!(LeafTimes::decode("1700000000000000:0*3", &document), Some(times));
    /// # Ok::<(), antumbra_shadow::DocumentError>(())
    /// ```
    pub fn encode(&self) -> String {
        let Times { runs, removed } = &*self.0;
        let base = self.newest().map_or(0, microseconds);
        // Writing to a String cannot fail.
        let mut text = format!("{base}:");
        for (position, (time, count)) in runs.iter().enumerate() {
            if position > 0 {
                text.push(',');
            }
            let _ = match time % SECOND == 0 && *time != base {
                true => write!(text, "{}s", base.div_euclid(SECOND) - time / SECOND),
                false => write!(text, "{}", i128::from(base) - i128::from(*time)),
            };
            if *count > 1 {
                let _ = write!(text, "*{count}");
            }
        }
        if *removed != Removed::default() {
            text.push(';');
            removed.write(base, &mut text);
        }
        text
    }

    /// From text; `None` where it is not the text of this document's times.
    pub fn decode(text: &str, document: &Document) -> Option<LeafTimes> {
        let (base, rest) = text.split_once(':')?;
        let base: i64 = base.parse().ok()?;
        let (runs, removed) = match rest.split_once(';') {
            Some((runs, removed)) => (runs, Some(removed)),
            None => (rest, None),
        };
        let mut times = Times::default();
        let mut counted: u32 = 0;
        for run in runs.split(',').filter(|_| !runs.is_empty()) {
            let (offset, count) = run.split_once('*').unwrap_or((run, "1"));
            let time = match offset.strip_suffix('s') {
                Some(seconds) => {
                    let second = before(base.div_euclid(SECOND), seconds)?;
                    second.checked_mul(SECOND)?
                }
                None => before(base, offset)?,
            };
            let count: u32 = count.parse().ok()?;
            counted = counted.checked_add(count)?;
            times.push(time, count);
        }
        if let Some(removed) = removed {
            // A single time stands for the whole document.
            let json = format!("{{\"r\":{removed}}}");
            let json = Document::parse(&json).ok()?;
            times.removed = Removed::read(json.view().get("r")?, base)?;
        }
        (counted == leaves(document.view())).then(|| LeafTimes(Arc::new(times)))
    }
}
