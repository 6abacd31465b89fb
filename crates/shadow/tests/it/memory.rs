//! Memory of each operation, counted, on the worst documents that are legal.

use antumbra_shadow::{Document, Mode, Model, Timestamp, acknowledge, delta, diff, merge};

/// Peak of allocated bytes, as a multiple of the bytes of the documents.
const FACTOR: usize = 20;
/// Bytes for documents of a few bytes.
const ALLOWANCE: usize = 64 * 1024;

/// Returns the peak of bytes that a call allocates.
fn peak<T>(call: impl FnOnce() -> T) -> usize {
    let allocated = allocation_counter::measure(|| drop(call()));
    usize::try_from(allocated.bytes_max).unwrap_or(usize::MAX)
}

fn members(count: usize, value: &str) -> String {
    let members: Vec<String> = (0..count).map(|n| format!("\"{n}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn elements(count: usize, value: &str) -> String {
    format!("{{\"a\":[{}]}}", vec![value; count].join(","))
}

fn with_ids(count: usize) -> String {
    let elements: Vec<String> = (0..count).map(|id| format!("{{\"id\":{id}}}")).collect();
    format!("{{\"a\":[{}]}}", elements.join(","))
}

fn deep(members: &str) -> String {
    format!("{}{members}{}", "{\"d\":".repeat(29), "}".repeat(29))
}

/// Pairs of documents; each is used in both orders and against an empty one.
fn worst() -> Vec<(&'static str, Document, Document)> {
    let long = "n".repeat(40_000);
    let below = |value: &str| format!("{{\"{long}\":{}}}", members(8_500, value));
    let timed = |time: u32| format!("{{\"timestamp\":{}}}", 1_700_000_000 + time);
    let chains = |value: &str| {
        let chain = format!("{}{value}{}", "[".repeat(28), "]".repeat(28));
        elements(6_000, &chain)
    };
    [
        ("long name, same values", below("1"), below("1")),
        ("long name, other values", below("1"), below("2")),
        ("long name, nulls", below("1"), below("null")),
        ("long name, times", below(&timed(1)), below(&timed(2))),
        (
            "32 levels",
            deep(&members(30_000, "1")),
            deep(&members(30_000, "2")),
        ),
        ("chains of arrays", chains("1"), chains("2")),
        (
            "empty objects",
            elements(130_000, "{}"),
            elements(130_000, "{}"),
        ),
        (
            "members that are empty",
            members(40_000, "{}"),
            members(40_000, "[]"),
        ),
        ("elements", elements(130_000, "1"), elements(130_000, "2")),
        (
            "more elements than stored",
            elements(1, "1"),
            elements(130_000, "1"),
        ),
        ("elements with ids", with_ids(30_000), with_ids(30_000)),
        ("elements with ids that go", with_ids(30_000), with_ids(1)),
        ("nulls", members(40_000, "1"), members(40_000, "null")),
    ]
    .map(|(name, one, other)| {
        let document = |text: String| Document::parse(&text).expect("a document");
        (name, document(one), document(other))
    })
    .into()
}

#[test]
fn memory_is_bounded_by_the_bytes_of_the_documents() {
    let model = Model::default();
    let now = Timestamp::from_nanoseconds(1_700_000_100_000_000_000);
    let mut excess = Vec::new();
    for (name, one, other) in worst() {
        let none = Document::default();
        for (a, b) in [(&one, &other), (&other, &one), (&one, &none), (&none, &one)] {
            let bytes = a.as_str().len() + b.as_str().len();
            let mut check = |what: &str, peak: usize| {
                if peak > FACTOR * bytes + ALLOWANCE {
                    let times = peak as f64 / bytes as f64;
                    excess.push(format!("{what} of {name}: {times:.1} times {bytes} bytes"));
                }
            };
            for mode in [Mode::ServerIsMaster, Mode::ClientIsMaster, Mode::Patch] {
                check("merge", peak(|| merge(a, b, mode, &model, now)));
            }
            check("diff", peak(|| diff(a.view(), b.view(), &model)));
            check("acknowledge", peak(|| acknowledge(a, b, &model)));
            check("delta", peak(|| delta(a, b, &model)));
        }
    }
    assert!(excess.is_empty(), "{}", excess.join("\n"));
}
