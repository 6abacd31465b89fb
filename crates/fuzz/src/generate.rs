//! Valid random stream events, generated as in the tests of `wire`, as input of the mutator.

#[path = "../../wire/tests/it/generate.rs"]
mod events;

use fastrand::Rng;

use events::Style;

/// An event of one to three changes, with all types of values, spaces and escapes.
pub fn stream_event(random: &mut Rng) -> String {
    let style = Style {
        spaces: random.u8(..3) == 0,
        escapes: random.u8(..4) == 0,
    };
    let changes: Vec<_> = (0..random.usize(1..4))
        .map(|_| {
            let old = events::item(random);
            let new = events::changed(&old, random);
            match random.u8(..5) {
                0 => (None, Some(new)),
                1 => (Some(old), None),
                _ => (Some(old), Some(new)),
            }
        })
        .collect();
    events::event(&changes, style, random)
}
