//! Tests of a pattern on one scalar value.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use antumbra_shadow::text::escape_into;
use antumbra_shadow::{Kind, View};

use super::address::{Address, Network};
use super::fold::Fold;
use crate::decimal;
use crate::glob::Glob;

#[derive(Debug, Clone)]
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    /// Decimal text.
    Number(&'a str),
    String(Cow<'a, str>),
}

impl<'a> Scalar<'a> {
    /// `None` for containers.
    pub(crate) fn of(view: View<'a>) -> Option<Scalar<'a>> {
        Some(match view.kind() {
            Kind::Null => Scalar::Null,
            Kind::Bool => Scalar::Bool(view.as_bool()?),
            Kind::Number => Scalar::Number(view.raw()),
            Kind::String => Scalar::String(view.as_str()?),
            Kind::Array | Kind::Object => return None,
        })
    }
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Null => f.write_str("null"),
            Scalar::Bool(value) => value.fmt(f),
            Scalar::Number(text) => f.write_str(text),
            Scalar::String(text) => {
                let mut quoted = String::with_capacity(text.len() + 2);
                escape_into(&mut quoted, text);
                write!(f, "\"{quoted}\"")
            }
        }
    }
}

/// One test of a value. `{"exists": false}` is not a test: it requires that there is no value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    Null,
    Bool(bool),
    Number(Box<str>),
    Text(Box<str>),
    /// A string that is an internet address, in any spelling.
    Address(Address),
    Prefix(Box<str>),
    Suffix(Box<str>),
    Equal(Fold),
    PrefixFold(Fold),
    SuffixFold(Fold),
    Wildcard(Glob),
    Range(Range),
    Network(Network),
    Exists,
    But(But),
}

/// The exclusions of `anything-but`. Everything else passes, including values of other kinds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum But {
    Texts(Box<[Box<str>]>),
    Numbers(Box<[Box<str>]>),
    Prefixes(Box<[Box<str>]>),
    Suffixes(Box<[Box<str>]>),
    Equal(Box<[Fold]>),
    Wildcards(Box<[Glob]>),
}

/// An end of a range of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) number: Box<str>,
    pub(crate) included: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: Option<End>,
    pub(crate) high: Option<End>,
}

impl Range {
    pub(crate) fn contains(&self, number: &str) -> bool {
        let above = |end: &End| match decimal::compare(number, &end.number) {
            Ordering::Greater => true,
            Ordering::Equal => end.included,
            Ordering::Less => false,
        };
        let below = |end: &End| match decimal::compare(number, &end.number) {
            Ordering::Less => true,
            Ordering::Equal => end.included,
            Ordering::Greater => false,
        };
        self.low.as_ref().is_none_or(above) && self.high.as_ref().is_none_or(below)
    }
}

impl Test {
    pub(crate) fn passes(&self, value: &Scalar<'_>) -> bool {
        match (self, value) {
            (Test::Exists, _) | (Test::Null, Scalar::Null) => true,
            (Test::Bool(expected), Scalar::Bool(value)) => expected == value,
            (Test::But(but), value) => !but.excludes(value),
            (Test::Number(_) | Test::Range(_), Scalar::Number(text)) => {
                decimal::plain(text).is_some_and(|number| self.passes_number(&number))
            }
            (_, Scalar::String(text)) => self.passes_text(text),
            _ => false,
        }
    }

    fn passes_number(&self, number: &str) -> bool {
        match self {
            Test::Number(expected) => decimal::compare(expected, number).is_eq(),
            Test::Range(range) => range.contains(number),
            _ => false,
        }
    }

    fn passes_text(&self, text: &str) -> bool {
        match self {
            Test::Text(expected) => **expected == *text,
            Test::Address(expected) => Address::parse(text) == Some(*expected),
            Test::Prefix(prefix) => text.starts_with(&**prefix),
            Test::Suffix(suffix) => text.ends_with(&**suffix),
            Test::Equal(fold) => fold.equals(text),
            Test::PrefixFold(fold) => fold.is_prefix_of(text),
            Test::SuffixFold(fold) => fold.is_suffix_of(text),
            Test::Wildcard(glob) => glob.is_match(text),
            Test::Network(network) => {
                Address::parse(text).is_some_and(|address| network.contains(address))
            }
            _ => false,
        }
    }
}

impl But {
    fn excludes(&self, value: &Scalar<'_>) -> bool {
        match (self, value) {
            (But::Numbers(numbers), Scalar::Number(text)) => {
                decimal::plain(text).is_some_and(|value| {
                    numbers
                        .iter()
                        .any(|number| decimal::compare(number, &value).is_eq())
                })
            }
            (But::Texts(texts), Scalar::String(value)) => {
                texts.iter().any(|text| **text == **value)
            }
            (But::Prefixes(texts), Scalar::String(value)) => {
                texts.iter().any(|text| value.starts_with(&**text))
            }
            (But::Suffixes(texts), Scalar::String(value)) => {
                texts.iter().any(|text| value.ends_with(&**text))
            }
            (But::Equal(folds), Scalar::String(value)) => {
                folds.iter().any(|fold| fold.equals(value))
            }
            (But::Wildcards(globs), Scalar::String(value)) => {
                globs.iter().any(|glob| glob.is_match(value))
            }
            _ => false,
        }
    }
}
