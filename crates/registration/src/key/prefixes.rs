//! Finds all known prefixes of a text by one binary search.
//!
//! The prefixes are sorted, each linked to the longest other one that it starts with. The last entry before the text
//! starts with every prefix of the text, so the links lead to them all.

/// Prefixes, each with the numbers stored under it.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    bytes: Box<[u8]>,
    entries: Box<[Entry]>,
    numbers: Box<[u32]>,
}

#[derive(Debug)]
struct Entry {
    start: u32,
    end: u32,
    /// The end of this entry's numbers; they start at the end of the previous ones.
    numbers_end: u32,
    /// One more than the index of the longest other prefix that this one starts with; 0 if none.
    parent: u32,
}

impl Prefixes {
    pub(crate) fn new(mut given: Vec<(&[u8], u32)>) -> Prefixes {
        given.sort_unstable();
        given.dedup();
        let (mut bytes, mut entries, mut numbers) =
            (Vec::<u8>::new(), Vec::<Entry>::new(), Vec::new());
        let mut open: Vec<usize> = Vec::new();
        for group in given.chunk_by(|a, b| a.0 == b.0) {
            let prefix = group[0].0;
            while open
                .last()
                .is_some_and(|&at| !prefix.starts_with(text(&bytes, &entries[at])))
            {
                open.pop();
            }
            numbers.extend(group.iter().map(|(_, number)| *number));
            let parent = open.last().map_or(0, |at| at + 1) as u32;
            let start = bytes.len() as u32;
            bytes.extend_from_slice(prefix);
            open.push(entries.len());
            entries.push(Entry {
                start,
                end: bytes.len() as u32,
                numbers_end: numbers.len() as u32,
                parent,
            });
        }
        Prefixes {
            bytes: bytes.into(),
            entries: entries.into(),
            numbers: numbers.into(),
        }
    }

    /// Calls `found` with every number stored under a prefix of the text.
    pub(crate) fn each(&self, of: &[u8], mut then: impl FnMut(u32)) {
        let mut next = self
            .entries
            .partition_point(|entry| text(&self.bytes, entry) <= of);
        while next > 0 {
            let entry = &self.entries[next - 1];
            if of.starts_with(text(&self.bytes, entry)) {
                let from = if next > 1 {
                    self.entries[next - 2].numbers_end
                } else {
                    0
                };
                self.numbers[from as usize..entry.numbers_end as usize]
                    .iter()
                    .copied()
                    .for_each(&mut then);
            }
            next = entry.parent as usize;
        }
    }
}

fn text<'b>(bytes: &'b [u8], entry: &Entry) -> &'b [u8] {
    &bytes[entry.start as usize..entry.end as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_the_same_as_a_linear_search(given in proptest::collection::vec("[ab]{0,6}", 0..40), of in "[abc]{0,9}") {
            let numbered: Vec<_> = given.iter().zip(0..).map(|(prefix, number)| (prefix.as_bytes(), number)).collect();
            let mut expected: Vec<u32> = numbered.iter().filter(|(prefix, _)| of.as_bytes().starts_with(prefix)).map(|(_, number)| *number).collect();
            let mut found = Vec::new();
            Prefixes::new(numbered).each(of.as_bytes(), |number| found.push(number));
            expected.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
