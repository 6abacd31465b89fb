//! Storage per change, by the number of versions after which an entry carries the document.

use antumbra_shadow::{Model, Patch};
use antumbra_wire::history::{EntryDocument, SNAPSHOT_EVERY, StoredBody};

use crate::load::parsed;

const CHANGES: u64 = 12_800;
/// Bytes of an entry beside its body: keys, operation, times and attribute names.
const OTHER_BYTES: usize = 170;
/// Bytes of a write unit, and of a read unit.
const WRITE_UNIT: usize = 1024;
const READ_UNIT: usize = 4096;

pub(crate) fn print() {
    let bytes = parsed(1).as_str().len();
    println!(
        "| document of {bytes} bytes in | bytes per change | write units per change | read units of a state at a time |"
    );
    println!("|---|---|---|---|");
    for every in [1, 8, SNAPSHOT_EVERY, 128, CHANGES] {
        let name = match every {
            1 => "every entry".to_owned(),
            CHANGES => "the first entry only".to_owned(),
            every => format!("every {every}th entry"),
        };
        let sizes: Vec<usize> = (1..=CHANGES).map(|version| size(version, every)).collect();
        let total: usize = sizes.iter().sum();
        let writes: usize = sizes.iter().map(|size| size.div_ceil(WRITE_UNIT)).sum();
        // Back from each change to the entry with the document; a query adds up its bytes.
        let mut reads = 0;
        let mut since_document = 0;
        for (size, version) in sizes.iter().zip(1_u64..) {
            since_document = if carries(version, every) {
                0
            } else {
                since_document
            } + size;
            reads += since_document.div_ceil(READ_UNIT);
        }
        let per_change = |sum: usize| sum as f64 / CHANGES as f64;
        println!(
            "| {name} | {:.0} | {:.2} | {:.1} |",
            per_change(total),
            per_change(writes),
            per_change(reads)
        );
    }
}

fn carries(version: u64, every: u64) -> bool {
    version == 1 || version.is_multiple_of(every)
}

fn size(version: u64, every: u64) -> usize {
    let new = parsed(version);
    let diff = (version > 1)
        .then(|| Patch::between(&parsed(version - 1), &new, &Model::default(), usize::MAX));
    let entry = Some(EntryDocument {
        // Where every entry carries the document, no diff is needed.
        diff: diff.flatten().filter(|_| every > 1),
        document: carries(version, every).then_some(new),
    });
    let body = match StoredBody::encode([&entry, &None]) {
        Some(StoredBody::Text(text)) => text.len(),
        Some(StoredBody::Compressed(parts)) => parts.iter().map(Vec::len).sum(),
        None => 0,
    };
    body + OTHER_BYTES
}
