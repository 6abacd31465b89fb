//! The documents of a shadow as one tree: a row per value, with what is reported, what is desired, and since when.

use std::borrow::Cow;
use std::collections::HashMap;

use antumbra_shadow::{Document, Kind, LeafTimes, Model, Timestamp, View, pointer};

use crate::components::cut;

/// Levels that are shown by indentation; deeper names are joined.
const DEPTH: usize = 3;
/// Rows up to which a tree is shown whole.
const WHOLE_ROWS: usize = 200;
/// Values in a branch of a long tree that is shown open.
const OPEN_LEAVES: usize = 20;

/// A document and the times of its leaves, if they are known.
#[derive(Clone, Copy)]
pub(crate) struct Timed<'a> {
    pub(crate) document: &'a Document,
    pub(crate) times: Option<&'a LeafTimes>,
}

/// A value in one of the documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    /// JSON, cut.
    pub(crate) text: String,
    /// Size of the JSON, if it was cut.
    pub(crate) cut_bytes: Option<usize>,
    pub(crate) unit: Option<String>,
    /// Time by the device's clock.
    pub(crate) measured: Option<Timestamp>,
    /// Time of the write, by the server's clock.
    pub(crate) written: Option<Timestamp>,
    /// JSON Pointer of the number, if it is one.
    pub(crate) number: Option<String>,
}

/// A value that arrives so much later than it was measured is late.
const LATE_NANOSECONDS: i128 = 60 * 1_000_000_000;

impl Cell {
    /// Nanoseconds between measuring and writing, if the value came late.
    pub(crate) fn late(&self) -> Option<i128> {
        let late = self.written?.nanoseconds() - self.measured?.nanoseconds();
        (late > LATE_NANOSECONDS).then_some(late)
    }

    /// The time of the value, and whether it is the device's.
    pub(crate) fn time(&self) -> Option<(Timestamp, bool)> {
        let measured = self.measured.map(|time| (time, true));
        measured.or(self.written.map(|time| (time, false)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // Most rows are leaves.
pub(crate) enum Content {
    Branch {
        leaves: usize,
        is_shut: bool,
        /// Number of elements, if it is an array.
        elements: Option<usize>,
    },
    Leaf {
        reported: Option<Cell>,
        desired: Option<Cell>,
        /// The value is desired and not reported.
        is_open: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) depth: usize,
    pub(crate) name: String,
    pub(crate) pointer: String,
    pub(crate) content: Content,
}

/// A value of a document, or of both.
struct Node<'a> {
    name: Cow<'a, str>,
    pointer: String,
    is_array: bool,
    reported: Option<(View<'a>, Option<Timestamp>)>,
    desired: Option<(View<'a>, Option<Timestamp>)>,
    children: Vec<Node<'a>>,
}

pub(crate) struct Tree {
    /// All rows that are not inside a shut branch.
    pub(crate) rows: Vec<Row>,
    pub(crate) leaves: usize,
}

/// Puts the documents of a shadow together. `other` is a document whose values have rows too, without being shown.
/// `opened` are pointers of branches to show open, however long the tree is; without it, nothing is folded.
pub(crate) fn tree(
    reported: Option<Timed<'_>>,
    desired: Option<Timed<'_>>,
    other: Option<Timed<'_>>,
    delta: &Document,
    model: &Model,
    opened: Option<&[&str]>,
) -> Tree {
    let nodes = [
        (reported, Side::Reported),
        (desired, Side::Desired),
        (other, Side::Other),
    ]
    .into_iter()
    .map(|(timed, side)| nodes(timed, side, model))
    .fold(Vec::new(), |all, more| merged(all, more, false));
    let mut rows = Rows {
        delta,
        model,
        opened: opened.unwrap_or_default(),
        is_long: opened.is_some() && nodes.iter().map(count_rows).sum::<usize>() > WHOLE_ROWS,
        rows: Vec::new(),
    };
    let leaves = nodes.iter().map(count_leaves).sum();
    for node in &nodes {
        rows.add(node, 0, "");
    }
    Tree {
        rows: rows.rows,
        leaves,
    }
}

fn nodes<'a>(timed: Option<Timed<'a>>, side: Side, model: &Model) -> Vec<Node<'a>> {
    let Some(timed) = timed else {
        return Vec::new();
    };
    let times = timed.times.map(LeafTimes::iter);
    let mut walk = Walk {
        model,
        times: times.map(|times| Box::new(times) as Box<dyn Iterator<Item = Timestamp>>),
        side,
    };
    walk.children(timed.document.view(), "")
}

/// Reads a document with the times of its leaves.
struct Walk<'m> {
    model: &'m Model,
    times: Option<Box<dyn Iterator<Item = Timestamp> + 'm>>,
    side: Side,
}

/// The document that a node is of.
#[derive(Clone, Copy)]
enum Side {
    Reported,
    Desired,
    Other,
}

impl Walk<'_> {
    fn children<'a>(&mut self, parent: View<'a>, above: &str) -> Vec<Node<'a>> {
        let is_array = parent.kind() == Kind::Array;
        let mut nodes = Vec::new();
        for (index, view) in parent.children().enumerate() {
            let mut path = above.to_owned();
            let name = match is_array {
                true => {
                    pointer::push_index(&mut path, index);
                    let id = view.get(&self.model.id_field);
                    let id = id.and_then(|id| id.as_str().or(id.as_number().map(Cow::Borrowed)));
                    id.unwrap_or_else(|| Cow::Owned(index.to_string()))
                }
                false => {
                    let key = view.key();
                    pointer::push_key(&mut path, &key);
                    key
                }
            };
            nodes.push(self.node(view, name, path));
        }
        nodes
    }

    fn node<'a>(&mut self, view: View<'a>, name: Cow<'a, str>, path: String) -> Node<'a> {
        let is_value = is_leaf(view)
            || self.model.time(view).is_some()
            || is_plain_array(view)
            || is_value_object(view, self.model);
        let (children, written) = match is_value {
            true => (Vec::new(), self.newest(view)),
            false => (self.children(view, &path), None),
        };
        let held = Some((view, written));
        let (reported, desired) = match self.side {
            Side::Reported => (held, None),
            Side::Desired => (None, held),
            Side::Other => (None, None),
        };
        Node {
            name,
            pointer: path,
            is_array: view.kind() == Kind::Array,
            reported,
            desired,
            children,
        }
    }

    /// The newest time of a value's leaves.
    fn newest(&mut self, view: View<'_>) -> Option<Timestamp> {
        let times = self.times.as_mut()?;
        times.take(leaves(view)).max()
    }
}

fn is_leaf(view: View<'_>) -> bool {
    !view.is_container() || view.is_empty_container()
}

/// Leaves as times are counted.
fn leaves(view: View<'_>) -> usize {
    match is_leaf(view) {
        true => 1,
        false => view.children().map(leaves).sum(),
    }
}

/// An array of scalars is one value.
fn is_plain_array(view: View<'_>) -> bool {
    view.kind() == Kind::Array && view.children().all(|element| !element.is_container())
}

/// Such as `{"value":-18,"unit":"°C"}`: one value with its unit, with or without a time.
fn is_value_object(view: View<'_>, model: &Model) -> bool {
    let is_known = |name: &str| {
        ["value", "unit"].contains(&name)
            || model.timestamp_fields.iter().any(|field| field == name)
    };
    view.kind() == Kind::Object
        && view.get("value").is_some_and(|value| !value.is_container())
        && view.children().all(|child| is_known(&child.key()))
}

/// Puts the nodes of two documents together, by name.
fn merged<'a>(mut all: Vec<Node<'a>>, more: Vec<Node<'a>>, is_array: bool) -> Vec<Node<'a>> {
    if all.is_empty() || more.is_empty() {
        all.extend(more);
        return all;
    }
    let places: HashMap<String, usize> = all
        .iter()
        .enumerate()
        .map(|(place, node)| (node.name.to_string(), place))
        .collect();
    for node in more {
        match places.get(node.name.as_ref()) {
            Some(place) => {
                let held = &mut all[*place];
                held.desired = node.desired.or(held.desired);
                held.is_array |= node.is_array;
                let below = std::mem::take(&mut held.children);
                // A value on either side makes the row a value.
                held.children = match (below.is_empty(), node.children.is_empty()) {
                    (false, false) => merged(below, node.children, held.is_array),
                    _ => Vec::new(),
                };
            }
            None => all.push(node),
        }
    }
    if !is_array {
        all.sort_by(|a, b| a.name.cmp(&b.name));
    }
    all
}

fn count_rows(node: &Node<'_>) -> usize {
    1 + node.children.iter().map(count_rows).sum::<usize>()
}

fn count_leaves(node: &Node<'_>) -> usize {
    match node.children.is_empty() {
        true => 1,
        false => node.children.iter().map(count_leaves).sum(),
    }
}

struct Rows<'a> {
    delta: &'a Document,
    model: &'a Model,
    opened: &'a [&'a str],
    is_long: bool,
    rows: Vec<Row>,
}

impl Rows<'_> {
    fn add(&mut self, node: &Node<'_>, depth: usize, above: &str) {
        let name = format!("{above}{}", node.name);
        if node.children.is_empty() {
            let cell = |(view, written)| cell(view, written, &node.pointer, self.model);
            let is_open = node.desired.is_some() && self.delta.pointer(&node.pointer).is_some();
            let content = Content::Leaf {
                reported: node.reported.map(cell),
                desired: node.desired.map(cell),
                is_open,
            };
            return self.push(depth, &name, node, content);
        }
        if depth == DEPTH {
            for child in &node.children {
                self.add(child, depth, &format!("{name}/"));
            }
            return;
        }
        let leaves = count_leaves(node);
        let below = |opened: &&str| opened.starts_with(&format!("{}/", node.pointer));
        let is_opened =
            self.opened.contains(&node.pointer.as_str()) || self.opened.iter().any(below);
        let is_shut = self.is_long && leaves > OPEN_LEAVES && !is_opened;
        let elements = node.is_array.then_some(node.children.len());
        let branch = Content::Branch {
            leaves,
            is_shut,
            elements,
        };
        self.push(depth, &name, node, branch);
        if !is_shut {
            for child in &node.children {
                self.add(child, depth + 1, "");
            }
        }
    }

    fn push(&mut self, depth: usize, name: &str, node: &Node<'_>, content: Content) {
        self.rows.push(Row {
            depth,
            name: cut(name).into_owned(),
            pointer: node.pointer.clone(),
            content,
        });
    }
}

fn cell(view: View<'_>, written: Option<Timestamp>, path: &str, model: &Model) -> Cell {
    let measured = model.time(view);
    // Also a desired value without a time, such as {"value":-20}.
    let inner = (view.kind() == Kind::Object)
        .then(|| view.get("value"))
        .flatten();
    let inner = inner.filter(|value| !value.is_container());
    let is_plain = is_value_object(view, model);
    let (shown, unit) = match inner.filter(|_| is_plain) {
        Some(value) => (
            value,
            view.get("unit")
                .and_then(|unit| unit.as_str().map(Cow::into_owned)),
        ),
        None => (view, None),
    };
    let json = shown.to_json();
    let number = (shown.kind() == Kind::Number).then(|| match is_plain {
        true => format!("{path}/value"),
        false => path.to_owned(),
    });
    let text = cut(&json).into_owned();
    Cell {
        cut_bytes: (text.len() < json.len()).then_some(json.len()),
        text,
        unit,
        measured,
        written,
        number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(reported: &str, desired: &str, opened: &[&str]) -> Vec<String> {
        let model = Model::default();
        let (reported, desired) = (
            Document::parse(reported).unwrap(),
            Document::parse(desired).unwrap(),
        );
        let delta = antumbra_shadow::delta(&desired, &reported, &model);
        let timed = |document| {
            Some(Timed {
                document,
                times: None,
            })
        };
        let tree = tree(
            timed(&reported),
            timed(&desired),
            None,
            &delta,
            &model,
            Some(opened),
        );
        let text = |cell: &Option<Cell>| {
            cell.as_ref()
                .map_or("-".to_owned(), |cell| cell.text.clone())
        };
        let rows = tree.rows.iter().map(|row| {
            let indent = "  ".repeat(row.depth);
            let content = match &row.content {
                Content::Branch {
                    leaves, is_shut, ..
                } => {
                    format!("({leaves}{})", if *is_shut { " shut" } else { "" })
                }
                Content::Leaf {
                    reported,
                    desired,
                    is_open,
                } => {
                    format!(
                        "{} {}{}",
                        text(reported),
                        text(desired),
                        if *is_open { " open" } else { "" }
                    )
                }
            };
            format!("{indent}{} {content}", row.name)
        });
        rows.collect()
    }

    #[test]
    fn both_documents_are_one_tree() {
        let reported = r#"{"led":"on","net":{"ip":"10.0.0.1","rssi":{"value":-61,"unit":"dBm","timestamp":1700000000}},"tags":["a","b"]}"#;
        let desired = r#"{"led":"off","net":{"rssi":{"value":-60}},"mode":"eco"}"#;
        assert_eq!(
            rows(reported, desired, &[]),
            [
                "led \"on\" \"off\" open",
                "mode - \"eco\" open",
                "net (2)",
                "  ip \"10.0.0.1\" -",
                "  rssi -61 -60 open",
                "tags [\"a\",\"b\"] -",
            ]
        );
    }

    #[test]
    fn deep_names_are_joined_and_elements_are_named_by_their_id() {
        let reported =
            r#"{"a":{"b":{"c":{"d":{"e":1}}}},"probes":[{"id":"top","t":1},{"id":"low","t":2}]}"#;
        let all = rows(reported, "{}", &[]);
        assert_eq!(all[3], "      d/e 1 -");
        assert!(all.contains(&"  top (2)".to_owned()), "{all:?}");
    }

    #[test]
    fn long_trees_fold() {
        let fields: Vec<String> = (0..300).map(|n| format!("\"f{n}\":{n}")).collect();
        let reported = format!("{{\"big\":{{{}}},\"small\":{{\"x\":1}}}}", fields.join(","));
        assert_eq!(
            rows(&reported, "{}", &[]),
            ["big (300 shut)", "small (1)", "  x 1 -"]
        );
        assert_eq!(rows(&reported, "{}", &["/big"]).len(), 303);
        assert_eq!(rows(&reported, "{}", &["/big/f1"]).len(), 303);
    }
}
