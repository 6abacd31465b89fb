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

/// Number of digits of padded whole numbers; 0 for no padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Padding(usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number from 0, which is off, to {DIGITS}")]
pub struct InvalidPadding;

impl Padding {
    /// Pads to this number of digits; 0 is off.
    pub fn digits(digits: usize) -> Result<Padding, InvalidPadding> {
        (digits <= DIGITS)
            .then_some(Padding(digits))
            .ok_or(InvalidPadding)
    }

    /// Pads a whole number and leaves other texts as they are. A number with more digits would sort wrongly and is
    /// rejected.
    pub(super) fn pad(self, text: &str) -> Result<String, String> {
        let Padding(width) = self;
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        if width == 0 || digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(text.to_owned());
        }
        let digits = digits.trim_start_matches('0');
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
        let numbers = [-9999, -1000, -999, -10, -9, -1, 0, 1, 9, 10, 99, 100, 9999];
        let texts: Vec<String> = numbers
            .iter()
            .map(|number: &i32| padding.pad(&number.to_string()).unwrap())
            .collect();
        assert!(texts.is_sorted(), "{texts:?}");
        assert_eq!(texts[3], "-9989");
        assert_eq!(padding.pad("-0").unwrap(), "0000");
        assert_eq!(padding.pad("007").unwrap(), "0007");
        assert_eq!(padding.pad("00012345"), padding.pad("12345"));
        assert_eq!(
            padding.pad("12345").unwrap_err(),
            "the number has 5 digits, the limit is 4"
        );
    }

    #[test]
    fn other_texts_are_unchanged() {
        let padding = Padding::digits(4).unwrap();
        for text in ["", "-", "1a", "1.5", "2026-01-31", "+1", "٣"] {
            assert_eq!(padding.pad(text).unwrap(), text);
        }
        assert_eq!(Padding::default().pad("9").unwrap(), "9");
        assert!("39".parse::<Padding>().is_err());
        assert!("-1".parse::<Padding>().is_err());
        assert_eq!("0".parse(), Ok(Padding::default()));
    }
}
