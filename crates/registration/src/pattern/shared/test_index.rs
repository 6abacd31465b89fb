//! Finds the tests on one path that a value passes, without trying them all.

use std::collections::{BTreeMap, HashMap};

use super::intervals::{Bound, Intervals};
use super::numbers::Numbers;
use crate::decimal;
use crate::key::{Inner, Prefixes};
use crate::pattern::address::Address;
use crate::pattern::test::{End, Range, Scalar, Test};

/// Entries by their text.
type ByText = HashMap<Box<str>, Box<[u32]>>;

/// Tests on the values of one path, each with its condition.
#[derive(Debug)]
pub(crate) struct Tests {
    entries: Box<[Entry]>,
    always: Box<[u32]>,
    null: Box<[u32]>,
    bools: [Box<[u32]>; 2],
    numbers: Numbers,
    addresses: Intervals<Address>,
    texts: ByText,
    folded: ByText,
    prefixes: Prefixes,
    inner: Option<Inner>,
    /// By length: one lookup per length.
    suffixes: Box<[(usize, ByText)]>,
    /// Tests without an index, tried one by one.
    others: Box<[u32]>,
}

#[derive(Debug)]
struct Entry {
    condition: u32,
    /// The test itself, if the index only finds candidates.
    check: Option<Test>,
}

/// The tests by kind of index, while building.
#[derive(Default)]
struct Builder {
    entries: Vec<Entry>,
    always: Vec<u32>,
    null: Vec<u32>,
    bools: [Vec<u32>; 2],
    numbers: Vec<(Range, u32)>,
    addresses: Vec<(Bound<Address>, Bound<Address>, u32)>,
    texts: HashMap<Box<str>, Vec<u32>>,
    folded: HashMap<Box<str>, Vec<u32>>,
    prefixes: Vec<(Box<str>, u32)>,
    inner: Vec<(Box<str>, u32)>,
    suffixes: BTreeMap<usize, HashMap<Box<str>, Vec<u32>>>,
    others: Vec<u32>,
}

impl Builder {
    fn add(&mut self, test: &Test, condition: u32) {
        let number = self.entries.len() as u32;
        let mut check = None;
        match test {
            Test::Exists => self.always.push(number),
            Test::Null => self.null.push(number),
            Test::Bool(value) => self.bools[usize::from(*value)].push(number),
            Test::Number(text) => {
                let end = || {
                    Some(End {
                        number: text.clone(),
                        included: true,
                    })
                };
                self.numbers.push((
                    Range {
                        low: end(),
                        high: end(),
                    },
                    number,
                ));
            }
            Test::Range(range) => self.numbers.push((range.clone(), number)),
            Test::Address(address) => {
                self.addresses
                    .push((Some((*address, true)), Some((*address, true)), number))
            }
            Test::Network(network) => self.addresses.push((
                Some((network.low, true)),
                Some((network.high, true)),
                number,
            )),
            Test::Text(text) => self.texts.entry(text.clone()).or_default().push(number),
            Test::Prefix(text) => self.prefixes.push((text.clone(), number)),
            Test::Suffix(text) => self.suffix(text, number),
            Test::Equal(fold) if fold.ascii_lower().is_some() => {
                let lower = fold.ascii_lower().unwrap_or_default();
                self.folded.entry(lower.into()).or_default().push(number);
            }
            Test::Wildcard(glob) if glob.parts().len() == 1 => self
                .texts
                .entry(glob.prefix().into())
                .or_default()
                .push(number),
            Test::Wildcard(glob) if glob.prefix().len() + glob.suffix().len() > 0 => {
                check = Some(test.clone());
                if glob.prefix().len() >= glob.suffix().len() {
                    self.prefixes.push((glob.prefix().into(), number));
                } else {
                    self.suffix(glob.suffix(), number);
                }
            }
            Test::Wildcard(glob) if glob.parts().iter().any(|part| !part.is_empty()) => {
                check = Some(test.clone());
                let longest = glob.parts().iter().max_by_key(|part| part.len());
                self.inner
                    .extend(longest.map(|part| (part.clone(), number)));
            }
            _ => {
                check = Some(test.clone());
                self.others.push(number);
            }
        }
        self.entries.push(Entry { condition, check });
    }

    fn suffix(&mut self, text: &str, number: u32) {
        self.suffixes
            .entry(text.len())
            .or_default()
            .entry(text.into())
            .or_default()
            .push(number);
    }
}

impl Tests {
    pub(crate) fn new<'t>(given: impl Iterator<Item = (&'t Test, u32)>) -> Tests {
        let mut builder = Builder::default();
        given.for_each(|(test, condition)| builder.add(test, condition));
        let boxed = |map: HashMap<Box<str>, Vec<u32>>| {
            map.into_iter()
                .map(|(text, numbers)| (text, numbers.into()))
                .collect()
        };
        let inner = builder
            .inner
            .iter()
            .map(|(text, number)| (text.as_bytes(), *number))
            .collect();
        // Without an automaton, these tests are tried one by one.
        let inner = Inner::new(inner).unwrap_or_else(|numbers| {
            builder.others.extend(numbers);
            None
        });
        Tests {
            entries: builder.entries.into(),
            always: builder.always.into(),
            null: builder.null.into(),
            bools: builder.bools.map(Into::into),
            numbers: Numbers::new(builder.numbers),
            addresses: Intervals::new(builder.addresses),
            texts: boxed(builder.texts),
            folded: boxed(builder.folded),
            prefixes: Prefixes::new(
                builder
                    .prefixes
                    .iter()
                    .map(|(text, number)| (text.as_bytes(), *number))
                    .collect(),
            ),
            inner,
            suffixes: builder
                .suffixes
                .into_iter()
                .map(|(length, map)| (length, boxed(map)))
                .collect(),
            others: builder.others.into(),
        }
    }

    /// Calls `then` with the condition of every test that the value passes, once per test.
    pub(crate) fn each(&self, value: &Scalar<'_>, lower: &mut String, mut then: impl FnMut(u32)) {
        let mut found = |number: u32| {
            let entry = &self.entries[number as usize];
            if entry.check.as_ref().is_none_or(|test| test.passes(value)) {
                then(entry.condition);
            }
        };
        self.always
            .iter()
            .chain(&self.others)
            .copied()
            .for_each(&mut found);
        match value {
            Scalar::Null => self.null.iter().copied().for_each(found),
            Scalar::Bool(value) => self.bools[usize::from(*value)]
                .iter()
                .copied()
                .for_each(found),
            Scalar::Number(text) => {
                if let Some(number) = decimal::plain(text) {
                    self.numbers.each(&number, &mut found);
                }
            }
            Scalar::String(text) => self.each_of_text(text, lower, &mut found),
        }
    }

    fn each_of_text(&self, text: &str, lower: &mut String, found: &mut impl FnMut(u32)) {
        if let Some(numbers) = self.texts.get(text) {
            numbers.iter().copied().for_each(&mut *found);
        }
        if !self.folded.is_empty() {
            lower.clear();
            lower.push_str(text);
            lower.make_ascii_lowercase();
            if let Some(numbers) = self.folded.get(lower.as_str()) {
                numbers.iter().copied().for_each(&mut *found);
            }
        }
        self.prefixes.each(text.as_bytes(), &mut *found);
        if let Some(inner) = &self.inner {
            inner.each(text, &mut *found);
        }
        for (length, known) in &self.suffixes {
            // A suffix must start at a character boundary.
            let Some(tail) = text
                .len()
                .checked_sub(*length)
                .and_then(|start| text.get(start..))
            else {
                continue;
            };
            if let Some(numbers) = known.get(tail) {
                numbers.iter().copied().for_each(&mut *found);
            }
        }
        if !self.addresses.is_empty()
            && let Some(address) = Address::parse(text)
        {
            self.addresses
                .each(&|end: &Address| end.cmp(&address), found);
        }
    }
}
