//! Replays the corpus, one test per target.

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use antumbra_fuzz::{Mutator, TARGETS, stream_event, target};

/// Number of mutations of the corpus per target.
const MUTATIONS: usize = 3_000;
/// Maximum number of files per target; `scripts/fuzz` minimizes the corpus.
const FILES: usize = 200;
const FILE_BYTES: u64 = 16 * 1024;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Returns the inputs of a target, sorted by name.
fn inputs(name: &str) -> Vec<(String, Vec<u8>)> {
    let mut inputs: Vec<_> = fs::read_dir(corpus().join(name))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    inputs.sort();
    inputs
}

fn replay(name: &str, seed: u64) {
    let run = target(name).unwrap().run;
    let check = |input: &[u8], what: &str| {
        if catch_unwind(AssertUnwindSafe(|| run(input))).is_err() {
            panic!("{name}: {what}: {:?}", String::from_utf8_lossy(input));
        }
    };
    run(b"");
    let corpus = inputs(name);
    assert!(!corpus.is_empty(), "{name} has no corpus");
    for (file, input) in &corpus {
        check(input, file);
    }
    let mut inputs: Vec<Vec<u8>> = corpus.into_iter().map(|(_, input)| input).collect();
    let mut mutator = Mutator::new(seed);
    for number in 0..MUTATIONS {
        if name == "stream-events" && number % 3 > 0 {
            inputs.truncate(FILES);
            inputs.push(stream_event(mutator.random()).into_bytes());
        }
        let input = mutator.next(&inputs);
        check(&input, &format!("mutation {number} of seed {seed}"));
    }
}

macro_rules! replayed {
    ($($test:ident $name:literal,)*) => {
        $(#[test]
        fn $test() {
            replay($name, 1);
        })*

        #[test]
        fn every_target_is_replayed_and_has_a_small_corpus() {
            let targets: BTreeSet<_> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
            assert_eq!(targets, BTreeSet::from([$($name.to_owned()),*]));
            let folders = fs::read_dir(corpus()).unwrap();
            let folders: BTreeSet<_> =
                folders.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            assert_eq!(folders, targets);
            for name in targets {
                let sizes: Vec<u64> = fs::read_dir(corpus().join(&name))
                    .unwrap()
                    .map(|entry| entry.unwrap().metadata().unwrap().len())
                    .collect();
                assert!(sizes.len() <= FILES, "{name} has {} files", sizes.len());
                assert!(sizes.iter().all(|size| *size <= FILE_BYTES), "{name}");
            }
        }
    };
}

replayed! {
    cursors "cursors",
    document_pairs "document-pairs",
    documents "documents",
    names "names",
    patterns "patterns",
    queue_events "queue-events",
    queue_messages "queue-messages",
    registrations "registrations",
    requests "requests",
    stream_events "stream-events",
    timestamps "timestamps",
    webhook_urls "webhook-urls",
}
