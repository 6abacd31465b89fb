//! What reading, matching and telling of a stream event costs, as ratios in one run.
//!
//! Without arguments: a Markdown table of times, all variants interleaved in rounds, minima compared.
//! `once VARIANT SHAPE COUNT` runs one variant so often, for instruction counts; `write SHAPE BYTES FILE`
//! writes an event; `resident ROAD FILE` says how much memory reading it took, and `loading` how
//! much 10,000 registrations take. `scripts/bench` calls all of them.

// A measurement is told on the standard output, and one that cannot go on has nothing to save.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "listener/generate.rs"]
mod generate;
#[path = "listener/report.rs"]
mod report;
#[path = "listener/resident.rs"]
mod resident;
#[path = "listener/roads.rs"]
mod roads;
#[path = "listener/variants.rs"]
mod variants;

use generate::Shape;

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] => report::print(),
        ["once", variant, shape, count] => once(variant, shape_of(shape), count.parse().unwrap()),
        ["write", shape, bytes, file] => {
            let bytes: usize = bytes.parse().unwrap();
            let one = generate::event(1, shape_of(shape), generate::Order::Same, 1).len();
            let event = generate::event(bytes / one, shape_of(shape), generate::Order::Same, 1);
            std::fs::write(file, event).unwrap();
        }
        ["resident", road, file] => resident::print(road, file),
        ["loading"] => resident::print_loading(),
        _ => println!("unknown arguments: {words:?}"),
    }
}

fn shape_of(name: &str) -> Shape {
    if name == "1k" {
        Shape::Small
    } else {
        Shape::Large
    }
}

fn once(variant: &str, shape: Shape, count: usize) {
    let mut run = variants::variant(variant, shape);
    for _ in 0..count {
        run();
    }
}
