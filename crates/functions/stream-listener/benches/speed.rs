//! Measures decoding, matching, diff, merge and notification, as ratios within one run.
//!
//! Without arguments: a Markdown table of times, all variants interleaved in rounds, minima compared.
//! `event SHAPE BYTES FILE` writes an event; `resident VARIANT FILE`, `loading` and `function` measure memory;
//! `inputs DIRECTORY` writes the inputs of peers, and `peers DIRECTORY [NAME COMMAND]...` measures them. The benchmark
//! `instructions` of `antumbra-notify` runs single variants.
//! `scripts/bench` and `scripts/bench-peers` call all of them.

// Results go to standard output, and a failed measurement may panic.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "speed/documents.rs"]
mod documents;
#[path = "speed/inputs.rs"]
mod inputs;
#[path = "speed/listeners.rs"]
mod listeners;
#[path = "speed/patterns.rs"]
mod patterns;
#[path = "speed/peers.rs"]
mod peers;
#[path = "speed/report.rs"]
mod report;
#[path = "speed/resident.rs"]
mod resident;
#[path = "speed/rounds.rs"]
mod rounds;
#[path = "speed/runtime.rs"]
mod runtime;
#[path = "speed/variants.rs"]
mod variants;

use antumbra_testkit::stream::{self, Order, Shape};

fn main() {
    // With the Lambda runtime API in the environment, this process is the function.
    if std::env::var("AWS_LAMBDA_RUNTIME_API").is_ok() {
        return runtime::run_as_function();
    }
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &words[..] {
        [] => report::print(),
        ["event", shape, bytes, file] => {
            let (shape, bytes): (_, usize) = (Shape::named(shape), bytes.parse().unwrap());
            let one = stream::event(1, shape, Order::Same, 1).len();
            std::fs::write(file, stream::event(bytes / one, shape, Order::Same, 1)).unwrap();
        }
        ["resident", reader, file] => resident::print(reader, file),
        ["loading"] => resident::print_loading(),
        ["function"] => resident::print_function(),
        ["inputs", directory] => inputs::write(directory.as_ref()),
        ["peers", directory, commands @ ..] => peers::print(directory.as_ref(), commands),
        _ => println!("unknown arguments: {words:?}"),
    }
}
