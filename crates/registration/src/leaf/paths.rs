//! Paths with wildcards, matched against the leaves of a diff.
//!
//! The paths of many registrations are one automaton: a tree of segments, of which several can be reached at once. It
//! walks down the containers of a diff, each once, so that the work does not grow with the length of pointers; paths
//! that share their start share the steps, and a path that the diff does not touch costs nothing.

use std::collections::HashMap;

use antumbra_shadow::pointer::unescape;
use antumbra_shadow::{Diff, Leaf, Part, Token};

use crate::glob::Glob;
use crate::limits::LEAF_PATH_BYTES;
use crate::pattern::parse::wildcard;

/// A path such as `/circuits/*/sensors/indoor-*`.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    text: Box<str>,
    segments: Box<[Segment]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Segment {
    Name(Box<str>),
    Glob(Glob),
    /// Any number of segments, written `**`.
    Any,
}

impl Path {
    pub(crate) fn parse(text: &str) -> Result<Path, String> {
        if text.len() > LEAF_PATH_BYTES {
            return Err(format!(
                "has {} bytes, the limit is {LEAF_PATH_BYTES}",
                text.len()
            ));
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err("must start with /, such as \"/circuits/*/temp\"".to_owned());
        };
        let segments: Vec<Segment> = rest.split('/').map(segment).collect::<Result<_, _>>()?;
        if segments
            .windows(2)
            .any(|pair| pair == [Segment::Any, Segment::Any])
        {
            return Err("must not have ** twice in a row".to_owned());
        }
        Ok(Path {
            text: text.into(),
            segments: segments.into(),
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

fn segment(token: &str) -> Result<Segment, String> {
    if token == "**" {
        return Ok(Segment::Any);
    }
    let mut escapes = token.split('~').skip(1);
    if !escapes.all(|after| after.starts_with(['0', '1'])) {
        return Err("~ must be written ~0, and / in a name ~1".to_owned());
    }
    let glob = wildcard(&unescape(token)).map_err(|_| {
        "a segment is **, or a name in which * stands for any characters; write \\* and \\\\ for the characters themselves"
            .to_owned()
    })?;
    Ok(match glob.parts() {
        [name] => Segment::Name(name.clone()),
        _ => Segment::Glob(glob),
    })
}

/// The paths of registrations as one automaton. Paths are identified by their position.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathSet {
    nodes: Box<[Node]>,
}

#[derive(Debug, Clone, Default)]
struct Node {
    names: HashMap<Box<str>, u32>,
    globs: Vec<(Glob, u32)>,
    /// The node of a `**` that follows, which is reached together with this one.
    any: Option<u32>,
    /// This is the node of a `**`: every further segment leads here again.
    is_any: bool,
    /// Paths that end here.
    ends: Vec<u32>,
}

/// Buffers for matching, reused from diff to diff.
#[derive(Debug, Default)]
pub(crate) struct PathScratch {
    /// The nodes reached by each container, one after the other.
    reached: Vec<u32>,
    /// The nodes of each container, by its old and by its new pointer.
    containers: Vec<[Reached; 2]>,
    step: Vec<u32>,
}

/// A stretch of [`PathScratch::reached`].
type Reached = (u32, u32);

impl PathSet {
    pub(crate) fn new<'p>(paths: impl IntoIterator<Item = &'p Path>) -> PathSet {
        let mut nodes = vec![Node::default()];
        let mut known: HashMap<(u32, &Segment), u32> = HashMap::new();
        for (number, path) in (0u32..).zip(paths) {
            let mut at = 0u32;
            for segment in &path.segments {
                let next = nodes.len() as u32;
                let reached = *known.entry((at, segment)).or_insert(next);
                if reached == next {
                    nodes.push(Node {
                        is_any: *segment == Segment::Any,
                        ..Node::default()
                    });
                    let node = &mut nodes[at as usize];
                    match segment {
                        Segment::Name(name) => drop(node.names.insert(name.clone(), next)),
                        Segment::Glob(glob) => node.globs.push((glob.clone(), next)),
                        Segment::Any => node.any = Some(next),
                    }
                }
                at = reached;
            }
            nodes[at as usize].ends.push(number);
        }
        PathSet {
            nodes: nodes.into(),
        }
    }

    /// Calls `visit` with every path that matches a leaf, once per leaf.
    pub(crate) fn each_match<'d, 'a>(
        &self,
        diff: &'d Diff<'a>,
        scratch: &mut PathScratch,
        visit: &mut dyn FnMut(u32, Leaf<'d, 'a>),
    ) {
        let PathScratch {
            reached,
            containers,
            step,
        } = scratch;
        reached.clear();
        containers.clear();
        for container in diff.containers() {
            let [old, new] = match containers.get(container.parent) {
                Some([old, new]) => {
                    let [old, new] = [*old, *new];
                    let next = self.advance(new, container.new, reached, step);
                    match old == new && container.old == container.new {
                        true => [next, next],
                        false => [self.advance(old, container.old, reached, step), next],
                    }
                }
                // The root.
                None => {
                    self.enter(0, reached);
                    let start = (0, reached.len() as u32);
                    [start, start]
                }
            };
            containers.push([old, new]);
        }
        for leaf in diff.leaves() {
            let Some([old, new]) = containers.get(leaf.container()) else {
                continue;
            };
            let from = if leaf.part == Part::Removed { old } else { new };
            self.step(&reached[range(*from)], leaf.token(), step);
            for node in step.drain(..) {
                for path in &self.nodes[node as usize].ends {
                    visit(*path, leaf);
                }
            }
        }
    }

    fn advance(
        &self,
        from: Reached,
        token: Token<'_>,
        reached: &mut Vec<u32>,
        step: &mut Vec<u32>,
    ) -> Reached {
        self.step(&reached[range(from)], token, step);
        let start = reached.len() as u32;
        reached.append(step);
        (start, reached.len() as u32)
    }

    /// Writes the nodes that a token leads to, each once.
    fn step(&self, from: &[u32], token: Token<'_>, to: &mut Vec<u32>) {
        to.clear();
        if from.is_empty() {
            return;
        }
        let token = token.text();
        for at in from {
            let node = &self.nodes[*at as usize];
            if node.is_any {
                to.push(*at);
            }
            if let Some(next) = node.names.get(&*token) {
                self.enter(*next, to);
            }
            for (glob, next) in &node.globs {
                if glob.is_match(&token) {
                    self.enter(*next, to);
                }
            }
        }
        to.sort_unstable();
        to.dedup();
    }

    fn enter(&self, at: u32, to: &mut Vec<u32>) {
        to.push(at);
        if let Some(Node { any: Some(any), .. }) = self.nodes.get(at as usize) {
            to.push(*any);
        }
    }
}

fn range((start, end): Reached) -> std::ops::Range<usize> {
    start as usize..end as usize
}
