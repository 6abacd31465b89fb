//! Padding of whole numbers, so that their texts sort like the numbers.
//!
//! | with 4 digits | is written |
//! |---|---|
//! | -10 | `-9989` |
//! | -9 | `-9990` |
//! | 0 | `0000` |
//! | 9 | `0009` |
//! | 10 | `0010` |
//!
//! A number below zero is `-` and the nines' complement of its digits: `-` sorts before every digit, and
//! the complement falls as the number's size rises.

use std::str::FromStr;

/// Maximum number of digits.
const DIGITS: usize = 38;

/// Digits of numbers by default: those of a time in seconds, which so keeps its form.
const DEFAULT_DIGITS: usize = 10;

/// Number of digits of padded whole numbers; 0 for no padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    digits: usize,
    /// Set by the deployment: texts of digits are padded as well, and what has more digits is rejected.
    is_set: bool,
}

impl Default for Padding {
    fn default() -> Padding {
        Padding {
            digits: DEFAULT_DIGITS,
            is_set: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number from 0, which is off, to {DIGITS}")]
pub struct InvalidPadding;

impl Padding {
    /// Pads to this number of digits; 0 is off.
    pub fn digits(digits: usize) -> Result<Padding, InvalidPadding> {
        let is_set = true;
        (digits <= DIGITS)
            .then_some(Padding { digits, is_set })
            .ok_or(InvalidPadding)
    }

    /// Pads a whole number and leaves other texts as they are. A number with more digits would sort wrongly: it is
    /// rejected if the number of digits was set.
    pub(super) fn pad(self, text: &str, is_number: bool) -> Result<String, String> {
        let width = match is_number || self.is_set {
            true => self.digits,
            false => 0,
        };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        if width == 0 || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(text.to_owned());
        }
        let digits = digits.trim_start_matches('0');
        if digits.len() > width && !self.is_set {
            return Ok(text.to_owned());
        }
        if digits.len() > width {
            return Err(format!(
                "the number has {} digits, the limit is {width}",
                digits.len()
            ));
        }
        let padded = format!("{digits:0>width$}");
        if !negative || digits.is_empty() {
            return Ok(padded);
        }
        let complement = padded.bytes().map(|digit| char::from(b'0' + b'9' - digit));
        Ok(std::iter::once('-').chain(complement).collect())
    }
}

impl FromStr for Padding {
    type Err = InvalidPadding;

    fn from_str(text: &str) -> Result<Padding, InvalidPadding> {
        Padding::digits(text.parse().map_err(|_| InvalidPadding)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_sort_as_numbers() {
        let padding = Padding::digits(4).unwrap();
        let pad = |text: &str| padding.pad(text, false);
        let numbers = [-9999, -1000, -999, -10, -9, -1, 0, 1, 9, 10, 99, 100, 9999];
        let texts: Vec<String> = numbers
            .iter()
            .map(|number: &i32| pad(&number.to_string()).unwrap())
            .collect();
        assert!(texts.is_sorted(), "{texts:?}");
        assert_eq!(texts[3], "-9989");
        assert_eq!(pad("-0").unwrap(), "0000");
        assert_eq!(pad("007").unwrap(), "0007");
        assert_eq!(pad("00012345"), pad("12345"));
        assert_eq!(
            pad("12345").unwrap_err(),
            "the number has 5 digits, the limit is 4"
        );
    }

    #[test]
    fn numbers_are_padded_by_default_and_texts_are_not() {
        let padding = Padding::default();
        for (text, number) in [
            ("9", "0000000009"),
            ("10", "0000000010"),
            ("-9", "-9999999990"),
            ("1564669331", "1564669331"),
            ("1564669332364", "1564669332364"),
        ] {
            assert_eq!(padding.pad(text, true).unwrap(), number);
            assert_eq!(padding.pad(text, false).unwrap(), text);
        }
        let off: Padding = "0".parse().unwrap();
        assert_eq!(off.pad("9", true).unwrap(), "9");
    }

    #[test]
    fn other_texts_are_unchanged() {
        let padding = Padding::digits(4).unwrap();
        for text in ["", "-", "1a", "1.5", "2026-01-31", "+1", "٣"] {
            assert_eq!(padding.pad(text, false).unwrap(), text);
        }
        assert!("39".parse::<Padding>().is_err());
        assert!("-1".parse::<Padding>().is_err());
    }
}
