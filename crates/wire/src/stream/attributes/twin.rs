//! Copies nodes from the other image of a record where both have the same text.
//!
//! Most of two images is equal, and equal text at the same place has the same nodes. The decoder reads what differs,
//! and this module finds the place in the other image from where both may be equal again. A place that is not found
//! costs time only.

use antumbra_shadow::common_prefix;
use antumbra_shadow::tape::{Kind, Node, move_nodes};

use super::Decoder;
use crate::limits;

/// Members of the other image that are compared by name before a member counts as new.
const NAMES: usize = 4;
/// Places in a row from where nothing was equal, until the images count as different, or as in another order. It also
/// bounds how often the same text is compared.
const MISSES: u32 = 32;

/// A place in the other image of a record, which was decoded before.
pub(super) struct Twin {
    /// Nodes of the containers around the place, outermost first, in step with the decoder's own.
    open: [u32; limits::IMAGE_DEPTH],
    /// Number of these containers. If the decoder is deeper, it reads a container that the other image does not have.
    depth: usize,
    /// Node of the next value.
    node: u32,
    /// Position in the text: behind a bracket, or behind a value with its type.
    at: usize,
    /// Position of the other image's end.
    end: usize,
    /// Places in a row from where nothing was equal.
    misses: u32,
}

impl Twin {
    /// At the start of an image.
    pub(super) fn new(nodes: &[Node], root: u32) -> Twin {
        let value = nodes[root as usize].value;
        let (start, end) = (value.start as usize, value.end as usize);
        let mut open = [0; limits::IMAGE_DEPTH];
        open[0] = root;
        Twin {
            open,
            depth: 1,
            node: root + 1,
            at: start + 1,
            end,
            misses: 0,
        }
    }
}

impl Decoder<'_, '_> {
    /// Copies the values from here on that the other image has too. Returns the position behind the last of them;
    /// nothing if there are none.
    #[inline(never)]
    pub(super) fn copy_common(&mut self, at: usize) -> Option<usize> {
        let twin = self.twin.as_mut().filter(|twin| twin.depth == self.depth)?;
        let length = common_prefix(&self.bytes[twin.at..twin.end], &self.bytes[at..]);
        let end = twin.at + length;
        let first = twin.node as usize;
        let is_common = |node: &&Node| (node.value.start as usize) < end;
        let last = self.nodes[twin.open[0] as usize].next as usize;
        let common = self.nodes[first..last].iter().take_while(is_common).count();
        // Of the values that start there, the last one may be different, or contain a difference.
        let complete = (first..first + common).rev().find_map(|node| {
            let behind = behind(self.bytes, &self.nodes[node])?;
            let scalar = !matches!(self.nodes[node].kind, Kind::Object | Kind::Array);
            (scalar && behind <= end).then_some((node, behind))
        });
        let Some((last, behind)) = complete else {
            twin.misses += 1;
            if twin.misses == MISSES {
                self.twin = None;
            }
            return None;
        };
        twin.misses = 0;

        let shift = (at as u32).wrapping_sub(twin.at as u32);
        let node_shift = (self.nodes.len() as u32).wrapping_sub(twin.node);
        // Containers that end before the last value.
        while self.nodes[twin.open[self.depth - 1] as usize].next as usize <= last {
            self.depth -= 1;
            let theirs = self.nodes[twin.open[self.depth] as usize];
            let ours = &mut self.nodes[self.open[self.depth] as usize];
            ours.next = theirs.next.wrapping_add(node_shift);
            ours.value.end = theirs.value.end.wrapping_add(shift);
        }
        // Containers around the last value.
        let mut node = first;
        while node < last {
            let next = self.nodes[node].next as usize;
            if next > last {
                self.open[self.depth] = (node as u32).wrapping_add(node_shift);
                twin.open[self.depth] = node as u32;
                self.depth += 1;
                node += 1;
            } else {
                node = next;
            }
        }
        let copies = self.nodes.len();
        self.nodes.extend_from_within(first..=last);
        move_nodes(&mut self.nodes[copies..], shift, node_shift);
        let position = at + (behind - twin.at);
        twin.depth = self.depth;
        twin.node = last as u32 + 1;
        twin.at = behind;
        Some(position)
    }

    /// Goes on in the other image, behind the value of the same name as the one that was read, or into it.
    #[inline(never)]
    pub(super) fn follow(&mut self, node: usize, opened: bool) {
        let Some(twin) = &mut self.twin else { return };
        if twin.depth + usize::from(opened) != self.depth {
            return;
        }
        let ours = self.nodes[node];
        let name = |node: &Node| &self.bytes[node.key.start as usize..node.key.end as usize];
        let end = self.nodes[twin.open[twin.depth - 1] as usize].next;
        let mut at = twin.node;
        for _ in 0..NAMES {
            if at >= end {
                return;
            }
            let theirs = self.nodes[at as usize];
            if name(&theirs) != name(&ours) {
                at = theirs.next;
                continue;
            }
            let first_byte = |node: Node| self.bytes[node.value.start as usize];
            if !opened {
                match behind(self.bytes, &theirs) {
                    Some(behind) => (twin.node, twin.at) = (theirs.next, behind),
                    None => self.twin = None,
                }
            } else if theirs.kind == ours.kind && first_byte(theirs) == first_byte(ours) {
                twin.open[twin.depth] = at;
                twin.depth += 1;
                twin.node = at + 1;
                twin.at = theirs.value.start as usize + 1;
            }
            return;
        }
    }

    /// Leaves a container of the other image with the one that was closed.
    #[inline(never)]
    pub(super) fn leave(&mut self) {
        let Some(twin) = &mut self.twin else { return };
        if self.depth >= twin.depth {
            return;
        }
        twin.depth = self.depth;
        let container = self.nodes[twin.open[self.depth] as usize];
        match behind(self.bytes, &container) {
            Some(behind) => (twin.node, twin.at) = (container.next, behind),
            None => self.twin = None,
        }
    }
}

/// Position behind a value with its type, if it is written as AWS writes it.
fn behind(bytes: &[u8], node: &Node) -> Option<usize> {
    let (start, end) = (node.value.start as usize, node.value.end as usize);
    let (from, rest): (usize, &[u8]) = match node.kind {
        Kind::String | Kind::Number => (end, b"\"}"),
        Kind::Null => (start, b"true}"),
        Kind::Bool | Kind::Array | Kind::Object => (end, b"}"),
    };
    bytes[from..].starts_with(rest).then_some(from + rest.len())
}
