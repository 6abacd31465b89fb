//! Records the times of leaves and removals while documents are merged, if they are merged in order.

use super::{Merging, Mode};
use crate::changes::Verdict;
use crate::tape::{Kind, Node, View};
use crate::timestamp::Timestamp;

impl<'m> Merging<'m> {
    /// Notes the time of the leaves among the nodes that take the place of `old`.
    pub(super) fn stamp(&mut self, nodes: &[Node], old: Option<View<'m>>) {
        if let Some(order) = &mut self.order {
            order.stamp(leaves_among(nodes), old);
        }
    }

    /// The same for all nodes written since.
    pub(super) fn stamp_written(&mut self, first: usize, old: Option<View<'m>>) {
        if let Some(order) = &mut self.order {
            order.stamp(leaves_among(self.out.written(first)), old);
        }
    }

    /// Leaves the times of elements to their array.
    pub(super) fn pause(&mut self, pause: bool) {
        if let Some(order) = &mut self.order {
            order.pause(pause);
        }
    }

    /// Passes over the times of a stored value that goes.
    pub(super) fn drop(&mut self, old: View<'m>) {
        if let Some(order) = &mut self.order {
            order.skip(old);
        }
    }

    /// Notes that everything here was removed, apart from what is newer.
    pub(super) fn record_removal(&mut self) {
        if let Some(order) = &mut self.order
            && !matches!((self.latest, order.at()), (Some(latest), Some(at)) if at > latest)
        {
            order.record_removal();
        }
    }

    /// Notes that a stale plain value took the place of what was older.
    pub(super) fn record_stale(&mut self, verdict: Verdict, own_time: Option<Timestamp>) {
        if verdict == Verdict::Stale && own_time.is_none() {
            self.record_removal();
        }
    }

    /// Notes that a sent object takes the place of everything that was here.
    pub(super) fn record_replacement(&mut self, sent: View<'m>) {
        let replaces = self.mode == Mode::ClientIsMaster && sent.kind() == Kind::Object;
        if replaces && (self.depth == 0 || self.model.time(sent).is_none()) {
            self.record_removal();
        }
    }

    /// Notes the nulls of a value where they remove members.
    pub(super) fn record_nulls(&mut self, view: View<'m>) {
        if self.order.is_none() || self.mode == Mode::ServerIsMaster {
            return;
        }
        match view.kind() {
            Kind::Null => self.record_removal(),
            Kind::Object if self.model.time(view).is_none() => {
                for child in view.children() {
                    self.at_key(child.raw_key(), |merging| merging.record_nulls(child));
                }
            }
            _ => {}
        }
    }
}

/// Leaves in the sense of leaf times: scalars, and containers that are `{}` or `[]`.
fn leaves_among(nodes: &[Node]) -> u32 {
    let is_leaf = |node: &&Node| {
        let container = matches!(node.kind, Kind::Object | Kind::Array);
        !container || node.value.end - node.value.start == 2
    };
    nodes.iter().filter(is_leaf).count() as u32
}
