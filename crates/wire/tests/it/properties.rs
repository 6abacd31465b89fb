//! Random events are read as the oracle reads them, and differ the same as images and as documents.

use antumbra_shadow::{Diff, Document, Model, View, diff};
use antumbra_wire::stream::{StreamBatch, Tape};
use fastrand::Rng;

use crate::generate::{self, Item, Style};
use crate::oracle::{Outcome, compare};

const EVENTS: u64 = 1_000;

fn random_event(seed: u64) -> String {
    let mut random = Rng::with_seed(seed);
    let style = Style {
        spaces: seed % 3 == 1,
        escapes: seed % 4 == 1,
    };
    let changes: Vec<(Option<Item>, Option<Item>)> = (0..random.usize(1..5))
        .map(|_| {
            let old = generate::item(&mut random);
            let new = generate::changed(&old, &mut random);
            match random.u8(..4) {
                0 => (None, Some(new)),
                1 => (Some(old), None),
                _ => (Some(old), Some(new)),
            }
        })
        .collect();
    generate::event(&changes, style, &mut random)
}

#[test]
fn events_are_read_as_the_oracle_reads_them() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    for seed in 0..EVENTS {
        let event = random_event(seed);
        match compare(event.as_bytes(), &mut batch, &mut tape) {
            Ok(Outcome::Agreed {
                records,
                refused: 0,
            }) => assert!(records > 0),
            other => panic!("seed {seed}: {other:?}\n{event}"),
        }
    }
}

/// Leaves by kind and pointer, with their values in canonical form.
fn leaves(diff: &Diff<'_>) -> Vec<(char, String, String, String)> {
    let canonical = |view: View<'_>| {
        let text = format!("{{\"v\":{}}}", view.to_json());
        Document::parse(&text)
            .unwrap_or_else(|fault| panic!("{fault}: {text}"))
            .to_string()
    };
    let none = String::new;
    let mut leaves: Vec<_> =
        diff.added()
            .map(|(pointer, new)| ('+', pointer.to_string(), none(), canonical(new)))
            .chain(
                diff.removed()
                    .map(|(pointer, old)| ('-', pointer.to_string(), canonical(old), none())),
            )
            .chain(diff.updated().map(|(pointer, old, new)| {
                ('~', pointer.to_string(), canonical(old), canonical(new))
            }))
            .collect();
    leaves.sort();
    leaves
}

#[test]
fn images_differ_as_documents_do() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    let model = Model::default();
    let mut compared = 0;
    for seed in 0..EVENTS {
        let event = random_event(seed);
        for record in batch.read(event.as_bytes()).unwrap().iter() {
            let images = record.unwrap().images(&mut tape).unwrap();
            let (Some(old), Some(new)) = (images.old, images.new) else {
                continue;
            };
            let documents = [old, new].map(|image| Document::parse(&image.to_json()).unwrap());
            let [old_document, new_document] = &documents;
            let on_tape = diff(old, new, &model);
            let on_documents = diff(old_document.view(), new_document.view(), &model);
            assert_eq!(
                leaves(&on_tape),
                leaves(&on_documents),
                "seed {seed}\n{event}"
            );
            assert_eq!(
                on_tape.value_changed(),
                on_documents.value_changed(),
                "seed {seed}"
            );
            compared += usize::from(!on_tape.is_empty());
        }
    }
    assert!(compared > 500, "{compared}");
}

/// Every prefix and every single broken byte of real events: no panic, and never another value.
#[test]
fn broken_events_do_no_harm() {
    let (mut batch, mut tape) = (StreamBatch::default(), Tape::default());
    for event in [
        include_str!("../../testdata/all-types.json"),
        include_str!("../../testdata/unusual.json"),
    ] {
        for end in (0..event.len()).step_by(3) {
            compare(&event.as_bytes()[..end], &mut batch, &mut tape).unwrap();
        }
        for at in 0..event.len() {
            const BREAKS: [u8; 12] = *b"\"\\{}[],:0 x\n";
            for pick in [at, at / 12] {
                let byte = BREAKS[pick % BREAKS.len()];
                let mut broken = event.as_bytes().to_vec();
                broken[at] = byte;
                if let Err(reason) = compare(&broken, &mut batch, &mut tape) {
                    panic!("{reason}\n{}", String::from_utf8_lossy(&broken));
                }
            }
        }
    }
}
