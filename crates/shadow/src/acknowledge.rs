//! Desired against reported: what has come true, and what has not yet.

use std::collections::HashMap;

use crate::build::Builder;
use crate::document::Document;
use crate::model::{Arrays, Model};
use crate::pointer;
use crate::tape::{Kind, View};

/// A desired value that the device reports by now.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Acknowledgement {
    /// Its place in the desired document as it was.
    pub pointer: String,
    /// The desired value, as JSON text.
    pub value: String,
}

/// Result of [`acknowledge`](acknowledge()).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged {
    /// The desired document without the acknowledged values.
    pub desired: Document,
    /// The acknowledged values, in document order.
    pub acknowledged: Vec<Acknowledgement>,
}

/// Takes out of `desired` each value that `reported` has already.
///
/// Timestamped values are compared without their time, numbers by value.
///
/// ```
/// use antumbra_shadow::{acknowledge, Document, Model};
///
/// let reported = Document::parse(r#"{"led":{"timestamp":1700000000,"value":"on"},"fan":1}"#)?;
/// let desired = Document::parse(r#"{"led":{"value":"on"},"fan":2}"#)?;
/// let done = acknowledge(&reported, &desired, &Model::default());
/// assert_eq!(done.desired.as_str(), r#"{"fan":2}"#);
/// assert_eq!(done.acknowledged[0].pointer, "/led/value");
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn acknowledge(reported: &Document, desired: &Document, model: &Model) -> Acknowledged {
    let mut walk = Walk {
        model,
        out: Builder::with_capacity(desired.as_str().len(), desired.as_str().len() / 12 + 1),
        acknowledged: Vec::new(),
        pointer: String::new(),
    };
    let opened = walk.out.open(None, Kind::Object);
    walk.members(desired.view(), reported.view(), None);
    walk.out.close(opened);
    Acknowledged {
        desired: walk.out.finish(),
        acknowledged: walk.acknowledged,
    }
}

/// Returns the desired values that are not reported yet.
///
/// ```
/// use antumbra_shadow::{delta, Document, Model};
///
/// let desired = Document::parse(r#"{"led":"on","fan":2}"#)?;
/// let reported = Document::parse(r#"{"led":"on","fan":1,"door":"shut"}"#)?;
/// assert_eq!(delta(&desired, &reported, &Model::default()).as_str(), r#"{"fan":2}"#);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn delta(desired: &Document, reported: &Document, model: &Model) -> Document {
    acknowledge(reported, desired, model).desired
}

struct Walk<'m> {
    model: &'m Model,
    out: Builder,
    acknowledged: Vec<Acknowledgement>,
    pointer: String,
}

impl Walk<'_> {
    /// Writes the members that are still desired; all but the one named `id` can be acknowledged.
    fn members(&mut self, desired: View<'_>, reported: View<'_>, id: Option<&str>) {
        // Both are in rising order, so that one step over the reported members serves all desired ones.
        let mut others = reported.children().peekable();
        for member in desired.children() {
            while others
                .next_if(|other| other.raw_key() < member.raw_key())
                .is_some()
            {}
            let other = others.next_if(|other| other.raw_key() == member.raw_key());
            let parent = self.pointer.len();
            pointer::push_key(&mut self.pointer, &member.key());
            if id.is_some_and(|id| member.key() == id) {
                self.out.copy(Some(member.raw_key()), member);
            } else {
                self.value(Some(member.raw_key()), member, other);
            }
            self.pointer.truncate(parent);
        }
    }

    /// Writes what is still desired of a value, or nothing when it is all there.
    fn value(&mut self, key: Option<&str>, desired: View<'_>, reported: Option<View<'_>>) {
        let Some(reported) = reported else {
            return self.out.copy(key, desired);
        };
        match (desired.kind(), reported.kind()) {
            (Kind::Object, Kind::Object) if self.is_open(desired) => {
                self.object(key, desired, reported)
            }
            (Kind::Array, Kind::Array)
                if !desired.is_empty_container() && self.model.arrays == Arrays::Matched =>
            {
                self.array(key, desired, reported)
            }
            _ if self.equal(desired, reported) => self.acknowledge(desired),
            _ => self.out.copy(key, desired),
        }
    }

    /// Returns `true` if the members of an object are compared one by one.
    fn is_open(&self, view: View<'_>) -> bool {
        !view.is_empty_container() && self.model.time(view).is_none()
    }

    fn acknowledge(&mut self, desired: View<'_>) {
        self.acknowledged.push(Acknowledgement {
            pointer: self.pointer.clone(),
            value: desired.to_json(),
        });
    }

    fn object(&mut self, key: Option<&str>, desired: View<'_>, reported: View<'_>) {
        let mark = self.out.mark();
        let opened = self.out.open(key, Kind::Object);
        let inside = self.out.mark();
        self.members(desired, reported, None);
        if self.out.mark() == inside {
            self.out.rewind(mark);
        } else {
            self.out.close(opened);
        }
    }

    fn array(&mut self, key: Option<&str>, desired: View<'_>, reported: View<'_>) {
        let (Some(desired_ids), Some(reported_ids)) =
            (self.model.ids(desired), self.model.ids(reported))
        else {
            return if self.equal(desired, reported) {
                self.acknowledge(desired);
            } else {
                self.out.copy(key, desired);
            };
        };
        let others: HashMap<_, _> = reported_ids.into_iter().zip(reported.children()).collect();
        let mark = self.out.mark();
        let opened = self.out.open(key, Kind::Array);
        let inside = self.out.mark();
        for (index, (id, element)) in desired_ids.iter().zip(desired.children()).enumerate() {
            let parent = self.pointer.len();
            pointer::push_index(&mut self.pointer, index);
            self.element(element, others.get(id).copied());
            self.pointer.truncate(parent);
        }
        if self.out.mark() == inside {
            self.out.rewind(mark);
        } else {
            self.out.close(opened);
        }
    }

    /// An element keeps its id for as long as anything else of it is desired.
    fn element(&mut self, desired: View<'_>, reported: Option<View<'_>>) {
        let Some(reported) = reported else {
            return self.out.copy(None, desired);
        };
        let only_id = desired.children().count() == 1;
        if only_id || !self.is_open(desired) {
            return if only_id || self.equal(desired, reported) {
                self.acknowledge(desired);
            } else {
                self.out.copy(None, desired);
            };
        }
        let mark = self.out.mark();
        let opened = self.out.open(None, Kind::Object);
        let nodes = self.out.mark().1;
        self.members(desired, reported, Some(&self.model.id_field));
        if self.out.mark().1 == nodes + 1 {
            self.out.rewind(mark);
        } else {
            self.out.close(opened);
        }
    }

    /// Returns `true` if a desired value equals the reported one, apart from timestamps.
    fn equal(&self, desired: View<'_>, reported: View<'_>) -> bool {
        match (desired.kind(), reported.kind()) {
            (Kind::Object, Kind::Object) if self.model.time(desired).is_some() => {
                self.model.same_but_time(desired, reported)
            }
            (Kind::Object, Kind::Object) => {
                // Who desires a value need not name a time for it.
                let untimed = !desired.is_empty_container()
                    && self.model.time(reported).is_some()
                    && desired.get(&self.model.timestamp_field).is_none();
                let members = reported.children().count() - usize::from(untimed);
                desired.children().count() == members
                    && desired.children().all(|member| {
                        reported
                            .get(&member.key())
                            .is_some_and(|other| self.equal(member, other))
                    })
            }
            (Kind::Array, Kind::Array) => {
                desired.children().count() == reported.children().count()
                    && desired
                        .children()
                        .zip(reported.children())
                        .all(|(a, b)| self.equal(a, b))
            }
            _ => desired.same(reported),
        }
    }
}
