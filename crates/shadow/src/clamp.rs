//! The clock-skew guard: times too far in the future become now.

use crate::build::Builder;
use crate::document::Document;
use crate::model::{Arrays, Model};
use crate::tape::{Kind, View};
use crate::timestamp::Timestamp;

/// The document with its future times set to now, and the nodes that were. The tape keeps its shape,
/// so that nodes stand where they stood. `None` when nothing had to change.
pub(crate) fn clamp(
    sent: &Document,
    model: &Model,
    now: Timestamp,
) -> Option<(Document, Vec<u32>)> {
    let latest = now.after(model.max_future?);
    let mut clamp = Clamp {
        model,
        now,
        latest,
        out: Builder::with_capacity(sent.as_str().len(), 0),
        clamped: Vec::new(),
    };
    clamp.children(None, sent.view());
    (!clamp.clamped.is_empty()).then(|| (clamp.out.finish(), clamp.clamped))
}

struct Clamp<'a> {
    model: &'a Model,
    now: Timestamp,
    latest: Timestamp,
    out: Builder,
    clamped: Vec<u32>,
}

impl Clamp<'_> {
    fn value(&mut self, key: Option<&str>, view: View<'_>) {
        match self.model.timestamp(view) {
            Some((time, form)) if time > self.latest => {
                self.clamped.push(view.index());
                let opened = self.out.open(key, Kind::Object);
                for member in view.children() {
                    if member.key() == self.model.timestamp_field {
                        let (kind, text) = self.now.write(form);
                        self.out.scalar(Some(member.raw_key()), kind, &text);
                    } else {
                        self.out.copy(Some(member.raw_key()), member);
                    }
                }
                self.out.close(opened);
            }
            // An array that is one value is taken as it was sent: no time in it is ever compared.
            None if view.kind() == Kind::Array && self.model.arrays == Arrays::Whole => {
                self.out.copy(key, view);
            }
            None if view.is_container() => self.children(key, view),
            _ => self.out.copy(key, view),
        }
    }

    fn children(&mut self, key: Option<&str>, view: View<'_>) {
        let opened = self.out.open(key, view.kind());
        let named = view.kind() == Kind::Object;
        for child in view.children() {
            self.value(named.then(|| child.raw_key()), child);
        }
        self.out.close(opened);
    }
}
