//! Runs one variant of the benchmark `speed` of the stream listener so that its instructions can be counted:
//! `instructions VARIANT SHAPE COUNT`. `scripts/bench` calls it.
//!
//! It is here because it builds in a few minutes: `speed` has the AWS SDK, which these variants do not need.

// A failed measurement may panic. Only `speed` uses everything in the shared files.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "../../functions/stream-listener/benches/speed/documents.rs"]
mod documents;
#[path = "../../functions/stream-listener/benches/speed/listeners.rs"]
mod listeners;
#[path = "../../functions/stream-listener/benches/speed/patterns.rs"]
mod patterns;
#[path = "../../functions/stream-listener/benches/speed/variants.rs"]
mod variants;

use antumbra_testkit::stream::Shape;

fn main() {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [variant, shape, count] = words[..] {
        let mut run = variants::variant(variant, Shape::named(shape));
        (0..count.parse().unwrap()).for_each(|_| run());
    }
}
