//! Breaks stream events at random and reads them both ways, for as many seconds as it is told.
//!
//! `cargo run --release -p antumbra-wire --example fuzz -- SECONDS [SEED]`. Ends with an error at the
//! first event on which the fast road and the serde road part, and prints that event. Runs on the
//! stable toolchain; the seed makes every run repeatable.

// A finding is told on the standard output, and the tools that find it may give up.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/it/generate.rs"]
mod generate;
#[path = "../tests/it/oracle.rs"]
mod oracle;
#[path = "../tests/it/plain.rs"]
mod plain;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use antumbra_registration::{DiffCell, Parts};
use antumbra_shadow::{DiffBuffer, Model};
use antumbra_wire::item::{ItemChange, KeyBuffer};
use antumbra_wire::notification::{self, NotificationId};
use antumbra_wire::stream::{StreamBatch, Tape};
use fastrand::Rng;
use generate::Style;
use oracle::{Outcome, compare};

const SAMPLES: [&str; 4] = [
    include_str!("../testdata/operations.json"),
    include_str!("../testdata/expired.json"),
    include_str!("../testdata/all-types.json"),
    include_str!("../testdata/unusual.json"),
];

/// What a broken event may be broken with.
const PIECES: [&str; 30] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0041",
    "\\ud83d",
    "null",
    "true",
    "false",
    "0",
    "-",
    "1e5",
    "{\"N\":\"1\"}",
    "{\"M\":{",
    "{\"L\":[",
    "{\"S\":\"",
    "{\"SS\":[\"a\"]}",
    "{\"NULL\":true}",
    "\"Keys\":",
    "\"NewImage\":",
    "\"OldImage\":{}",
    "\"SequenceNumber\":\"1\"",
    "REMOVE",
    " ",
    "\n",
    "é",
];

fn main() -> ExitCode {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|word| word.parse::<u64>().ok());
    let seconds = arguments.next().flatten().unwrap_or(10);
    let seed = arguments.next().flatten().unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut random = Rng::with_seed(seed);
    let mut fuzzer = Fuzzer::default();
    while Instant::now() < end {
        for _ in 0..100 {
            let event = event(&mut random);
            if let Err(reason) = fuzzer.check(&event) {
                println!("{reason}\n{}", String::from_utf8_lossy(&event));
                return ExitCode::FAILURE;
            }
        }
    }
    let Fuzzer {
        events,
        agreed,
        refused,
        records,
        notifications,
        ..
    } = fuzzer;
    println!(
        "{events} events: {agreed} read alike ({records} records), {refused} that the serde road refuses; \
         {notifications} notifications. No finding. Seed {seed}, {seconds} s."
    );
    ExitCode::SUCCESS
}

#[derive(Default)]
struct Fuzzer {
    batch: StreamBatch,
    tape: Tape,
    key: KeyBuffer,
    diff: DiffBuffer,
    out: String,
    events: usize,
    agreed: usize,
    refused: usize,
    records: usize,
    notifications: usize,
}

impl Fuzzer {
    fn check(&mut self, event: &[u8]) -> Result<(), String> {
        self.events += 1;
        match compare(event, &mut self.batch, &mut self.tape)? {
            Outcome::Agreed { records, .. } => {
                self.agreed += 1;
                self.records += records;
            }
            Outcome::Refused => self.refused += 1,
        }
        self.notify(event)
    }

    /// Whatever could be read becomes a notification, and that is JSON.
    fn notify(&mut self, event: &[u8]) -> Result<(), String> {
        let model = Model::default();
        let parts = Parts {
            old: true,
            new: true,
            diff: true,
        };
        let Ok(records) = self.batch.read(event) else {
            return Ok(());
        };
        for record in records.iter().flatten() {
            let key = self.key.of(record);
            let Ok(images) = record.images(&mut self.tape) else {
                continue;
            };
            let item = ItemChange::new(record, key, images);
            for document in item.documents() {
                let diff = DiffCell::new(document.old, document.new, &model);
                let diff = diff.in_buffer(&mut self.diff);
                let change = item.change(document, &diff);
                let id = NotificationId::new(&record.event_id(), "fuzz", document.state);
                let limit = usize::MAX;
                notification::write(&mut self.out, id, "fuzz", &change, parts, limit)
                    .map_err(|fault| fault.to_string())?;
                self.notifications += 1;
                serde_json::from_str::<serde::de::IgnoredAny>(&self.out)
                    .map_err(|fault| format!("{fault}: {}", self.out))?;
            }
        }
        Ok(())
    }
}

/// A sample or a random event, broken in none to a few places.
fn event(random: &mut Rng) -> Vec<u8> {
    let mut event = if random.u8(..3) == 0 {
        SAMPLES[random.usize(..SAMPLES.len())].as_bytes().to_vec()
    } else {
        random_event(random).into_bytes()
    };
    for _ in 0..[0, 1, 1, 1, 2, 3, 8][random.usize(..7)] {
        mutate(&mut event, random);
    }
    event
}

fn random_event(random: &mut Rng) -> String {
    let style = Style {
        spaces: random.u8(..3) == 0,
        escapes: random.u8(..4) == 0,
    };
    let changes: Vec<_> = (0..random.usize(1..4))
        .map(|_| {
            let old = generate::item(random);
            let new = generate::changed(&old, random);
            match random.u8(..5) {
                0 => (None, Some(new)),
                1 => (Some(old), None),
                _ => (Some(old), Some(new)),
            }
        })
        .collect();
    generate::event(&changes, style, random)
}

fn mutate(event: &mut Vec<u8>, random: &mut Rng) {
    if event.is_empty() {
        return;
    }
    let at = random.usize(..event.len());
    let end = (at + random.usize(1..40)).min(event.len());
    match random.u8(..7) {
        0 => event[at] = random.u8(..),
        1 => event[at] ^= 1 << random.u8(..8),
        2 => drop(event.drain(at..end)),
        3 => event.truncate(at),
        4 => {
            let part = event[at..end].to_vec();
            let to = random.usize(..=event.len());
            event.splice(to..to, part);
        }
        _ => {
            let piece = PIECES[random.usize(..PIECES.len())].as_bytes();
            let end = if random.bool() { end } else { at };
            event.splice(at..end, piece.iter().copied());
        }
    }
}
