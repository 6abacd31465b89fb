//! The broker: it keeps all published messages.

use percent_encoding::percent_decode_str;

use super::{Call, Cloud, lock};

#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) topic: String,
    pub(crate) payload: String,
    /// In milliseconds.
    pub(crate) at: u64,
    /// Position among all calls, in the order in which they were made.
    pub(crate) call: u64,
}

impl Cloud {
    pub(super) fn publish(&self, call: &Call) -> (u16, String) {
        lock(&self.0.published).push(Published {
            topic: call.topic.clone(),
            payload: call.body.clone(),
            at: self.0.clock.milliseconds(),
            call: call.number,
        });
        (200, String::new())
    }
}

/// The topic in the path of a publish.
pub(super) fn topic(uri: &str) -> String {
    let path = uri.split_once("/topics/").map_or("", |(_, topic)| topic);
    let path = path.split('?').next().unwrap_or_default();
    percent_decode_str(path).decode_utf8_lossy().into_owned()
}
