//! Desired against reported: values that are reached, and those that are not.

use std::collections::HashMap;

use crate::build::Builder;
use crate::document::Document;
use crate::model::{Arrays, Model};
use crate::pointer;
use crate::tape::{Kind, View};

/// Result of [`acknowledge`](acknowledge()).
#[derive(Debug, Clone)]
pub struct Acknowledged {
    /// The desired document without the acknowledged values.
    pub desired: Document,
    /// The acknowledged values.
    pub acknowledged: Acknowledgements,
}

/// The desired values that are reported by now, in document order. Their pointers are written when they are asked for:
/// together, they can be far longer than the documents.
#[derive(Debug, Clone, Default)]
pub struct Acknowledgements {
    reported: Document,
    desired: Document,
    model: Model,
    count: usize,
}

impl Acknowledgements {
    /// Number of acknowledged values.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns `true` if nothing was acknowledged.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Calls `visit` with the JSON Pointer of each acknowledged value, in the desired document as it was, and the value.
    pub fn for_each(&self, mut visit: impl FnMut(&str, View<'_>)) {
        if !self.is_empty() {
            let report: Report<'_> = &mut visit;
            Walk::run(&self.reported, &self.desired, &self.model, Some(report));
        }
    }

    /// The JSON Pointers; `None` if together they have more than `limit` bytes.
    pub fn pointers(&self, limit: usize) -> Option<Vec<String>> {
        let (mut pointers, mut left) = (Vec::new(), Some(limit));
        self.for_each(|pointer, _| {
            left = left.and_then(|left| left.checked_sub(pointer.len()));
            if left.is_some() {
                pointers.push(pointer.to_owned());
            }
        });
        left.map(|_| pointers)
    }
}

/// Removes from `desired` each value that `reported` has already.
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
/// assert_eq!(done.acknowledged.pointers(1000).unwrap(), ["/led/value"]);
/// # Ok::<(), antumbra_shadow::DocumentError>(())
/// ```
pub fn acknowledge(reported: &Document, desired: &Document, model: &Model) -> Acknowledged {
    let (remaining, count) = Walk::run(reported, desired, model, None);
    Acknowledged {
        desired: remaining,
        acknowledged: Acknowledgements {
            reported: reported.clone(),
            desired: desired.clone(),
            model: model.clone(),
            count,
        },
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
    Walk::run(reported, desired, model, None).0
}

/// Receives the pointer and the value of what is acknowledged.
type Report<'r> = &'r mut dyn FnMut(&str, View<'_>);

struct Walk<'m> {
    model: &'m Model,
    out: Builder,
    report: Option<Report<'m>>,
    /// Place of the value; written only for the report.
    pointer: String,
    acknowledged: usize,
}

impl<'m> Walk<'m> {
    fn run(
        reported: &Document,
        desired: &Document,
        model: &'m Model,
        report: Option<Report<'m>>,
    ) -> (Document, usize) {
        let (text, nodes) = (desired.as_str().len(), desired.view().subtree().len());
        let mut walk = Walk {
            model,
            out: Builder::with_capacity(text, nodes),
            report,
            pointer: String::new(),
            acknowledged: 0,
        };
        let opened = walk.out.open(None, Kind::Object);
        walk.members(desired.view(), reported.view(), None);
        walk.out.close(opened);
        (walk.out.finish(), walk.acknowledged)
    }

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
            if self.report.is_some() {
                pointer::push_key(&mut self.pointer, &member.key());
            }
            if id.is_some_and(|id| member.key() == id) {
                self.out.copy(member);
            } else {
                self.value(Some(member.raw_key()), member, other);
            }
            self.pointer.truncate(parent);
        }
    }

    /// Writes the part of a value that is still desired, if any.
    fn value(&mut self, key: Option<&str>, desired: View<'_>, reported: Option<View<'_>>) {
        let Some(reported) = reported else {
            return self.out.copy(desired);
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
            _ => self.out.copy(desired),
        }
    }

    /// Returns `true` if the members of an object are compared one by one.
    fn is_open(&self, view: View<'_>) -> bool {
        !view.is_empty_container() && self.model.time(view).is_none()
    }

    fn acknowledge(&mut self, desired: View<'_>) {
        self.acknowledged += 1;
        if let Some(report) = &mut self.report {
            report(&self.pointer, desired);
        }
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
            return self.positions(key, desired, reported);
        };
        let nodes = reported.children().map(View::index);
        let others: HashMap<_, u32> = reported_ids.into_iter().zip(nodes).collect();
        let mark = self.out.mark();
        let opened = self.out.open(key, Kind::Array);
        let inside = self.out.mark();
        for (index, (id, element)) in desired_ids.iter().zip(desired.children()).enumerate() {
            let parent = self.pointer.len();
            if self.report.is_some() {
                pointer::push_index(&mut self.pointer, index);
            }
            self.element(element, others.get(id).map(|node| reported.at(*node)));
            self.pointer.truncate(parent);
        }
        if self.out.mark() == inside {
            self.out.rewind(mark);
        } else {
            self.out.close(opened);
        }
    }

    /// Elements without ids are matched by position, as merge does. Those at the end go when they are reached; one before
    /// another that is still desired stays, so that the others keep their positions.
    fn positions(&mut self, key: Option<&str>, desired: View<'_>, reported: View<'_>) {
        let mut others = reported.children();
        let (mut count, mut kept) = (0, 0);
        for element in desired.children() {
            count += 1;
            let other = others.next();
            if !other.is_some_and(|other| self.equal(element, other)) {
                kept = count;
            }
        }
        if kept == 0 {
            return self.acknowledge(desired);
        }
        if kept == count {
            return self.out.copy(desired);
        }
        let opened = self.out.open(key, Kind::Array);
        for (index, element) in desired.children().enumerate() {
            if index < kept {
                self.out.copy(element);
                continue;
            }
            let parent = self.pointer.len();
            if self.report.is_some() {
                pointer::push_index(&mut self.pointer, index);
            }
            self.acknowledge(element);
            self.pointer.truncate(parent);
        }
        self.out.close(opened);
    }

    /// An element keeps its id for as long as anything else of it is desired.
    fn element(&mut self, desired: View<'_>, reported: Option<View<'_>>) {
        let Some(reported) = reported else {
            return self.out.copy(desired);
        };
        let only_id = desired.children().count() == 1;
        if only_id || !self.is_open(desired) {
            return if only_id || self.equal(desired, reported) {
                self.acknowledge(desired);
            } else {
                self.out.copy(desired);
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
                // A desired value needs no time.
                let is_time = |member: &View<'_>| self.model.is_timestamp_field(&member.key());
                let untimed = !desired.is_empty_container()
                    && self.model.time(reported).is_some()
                    && !desired.children().any(|member| is_time(&member));
                let members = reported.children().count();
                let times = || reported.children().filter(is_time).count();
                let members = members - if untimed { times() } else { 0 };
                let mut others = reported.children().peekable();
                desired.children().count() == members
                    && desired.children().all(|member| {
                        let key = member.raw_key();
                        while others.next_if(|other| other.raw_key() < key).is_some() {}
                        let other = others.next_if(|other| other.raw_key() == key);
                        other.is_some_and(|other| self.equal(member, other))
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
