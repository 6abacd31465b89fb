//! Finds all known literals within a text, by an Aho-Corasick automaton.

use aho_corasick::automaton::OverlappingState;
use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// Literals, each with the numbers stored under it.
#[derive(Debug)]
pub(crate) struct Inner {
    automaton: AhoCorasick,
    /// The end of each literal's numbers; they start at the end of the previous ones.
    ends: Box<[u32]>,
    numbers: Box<[u32]>,
}

impl Inner {
    /// Returns the numbers if there are too many literals for an automaton.
    pub(crate) fn new(mut given: Vec<(&[u8], u32)>) -> Result<Option<Inner>, Vec<u32>> {
        if given.is_empty() {
            return Ok(None);
        }
        given.sort_unstable();
        given.dedup();
        let groups = || given.chunk_by(|a, b| a.0 == b.0);
        let built = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .prefilter(false)
            .build(groups().map(|group| group[0].0));
        let numbers = given.iter().map(|(_, number)| *number);
        let Ok(automaton) = built else {
            return Err(numbers.collect());
        };
        let ends = groups().scan(0, |end, group| {
            *end += group.len() as u32;
            Some(*end)
        });
        Ok(Some(Inner {
            automaton,
            ends: ends.collect(),
            numbers: numbers.collect(),
        }))
    }

    /// Calls `found` with every number stored under a literal in the text, once per occurrence.
    pub(crate) fn each(&self, text: &str, mut then: impl FnMut(u32)) {
        let mut state = OverlappingState::start();
        loop {
            self.automaton.find_overlapping(text, &mut state);
            let Some(found) = state.get_match() else {
                return;
            };
            let literal = found.pattern().as_usize();
            let from = if literal > 0 {
                self.ends[literal - 1]
            } else {
                0
            };
            self.numbers[from as usize..self.ends[literal] as usize]
                .iter()
                .copied()
                .for_each(&mut then);
        }
    }
}
