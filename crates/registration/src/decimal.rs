//! Exact comparison of decimal numbers, for the numeric patterns of registrations. A *plain* decimal has no exponent.

use std::borrow::Cow;
use std::cmp::Ordering;

/// Returns a number as a plain decimal; `None` if it is out of the range that documents allow.
pub(crate) fn plain(text: &str) -> Option<Cow<'_, str>> {
    if memchr::memchr2(b'e', b'E', text.as_bytes()).is_none() {
        return Some(Cow::Borrowed(text));
    }
    antumbra_shadow::number::canonical(text)
        .ok()
        .map(Cow::Owned)
}

pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (Parts::of(a), Parts::of(b));
    match (a.negative, b.negative) {
        (false, true) => Ordering::Greater,
        (true, false) => Ordering::Less,
        (false, false) => a.compare_magnitude(&b),
        (true, true) => b.compare_magnitude(&a),
    }
}

/// A decimal for many comparisons. Rounding to a double never reverses the order of two numbers, so digits are compared
/// only if the doubles are equal.
#[derive(Debug, Clone)]
pub(crate) struct Decimal<T> {
    rounded: f64,
    text: T,
}

impl<T: AsRef<str>> Decimal<T> {
    pub(crate) fn new(text: T) -> Decimal<T> {
        Decimal {
            rounded: text.as_ref().parse().unwrap_or(f64::NAN),
            text,
        }
    }

    pub(crate) fn compare<U: AsRef<str>>(&self, other: &Decimal<U>) -> Ordering {
        match self.rounded.partial_cmp(&other.rounded) {
            Some(order @ (Ordering::Less | Ordering::Greater)) => order,
            _ => compare(self.text.as_ref(), other.text.as_ref()),
        }
    }
}

impl<T: AsRef<str>> Ord for Decimal<T> {
    fn cmp(&self, other: &Decimal<T>) -> Ordering {
        self.compare(other)
    }
}

impl<T: AsRef<str>> PartialOrd for Decimal<T> {
    fn partial_cmp(&self, other: &Decimal<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: AsRef<str>> PartialEq for Decimal<T> {
    fn eq(&self, other: &Decimal<T>) -> bool {
        self.compare(other).is_eq()
    }
}

impl<T: AsRef<str>> Eq for Decimal<T> {}

/// A plain decimal without leading zeros in `whole` and trailing zeros in `fraction`.
struct Parts<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Parts<'a> {
        let bytes = text.as_bytes();
        let (negative, digits) = match bytes {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, bytes),
        };
        let (whole, fraction) = match digits.iter().position(|&b| b == b'.') {
            Some(at) => (&digits[..at], &digits[at + 1..]),
            None => (digits, &digits[..0]),
        };
        let leading_zeros = whole.iter().take_while(|&&b| b == b'0').count();
        let whole = &whole[leading_zeros..];
        let trailing_zeros = fraction.iter().rev().take_while(|&&b| b == b'0').count();
        let fraction = &fraction[..fraction.len() - trailing_zeros];
        // Minus zero is equal to zero.
        Parts {
            negative: negative && !(whole.is_empty() && fraction.is_empty()),
            whole,
            fraction,
        }
    }

    /// Compares without the sign. Of two whole parts without leading zeros, the longer one is greater.
    fn compare_magnitude(&self, other: &Parts<'_>) -> Ordering {
        (self.whole.len(), self.whole, self.fraction).cmp(&(
            other.whole.len(),
            other.whole,
            other.fraction,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_ordered_as_numbers() {
        let rising = [
            "-1000",
            "-100.5",
            "-100.25",
            "-100",
            "-99",
            "-1.5",
            "-1",
            "-0.01",
            "0",
            "0.001",
            "0.01",
            "0.1",
            "0.11",
            "0.2",
            "1",
            "1.0000000000000000000000000000000000001",
            "1.5",
            "2",
            "10",
            "99.999",
            "100",
            "9007199254740992",
            "9007199254740993",
            "99999999999999999999999999999999999999",
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} {b}");
                assert_eq!(Decimal::new(a).cmp(&Decimal::new(b)), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in [
            ("1", "1.0"),
            ("-0", "0"),
            ("0.50", "0.5"),
            ("007", "7"),
            ("+3", "3"),
            ("-0.0", "0"),
        ] {
            assert_eq!(compare(a, b), Ordering::Equal, "{a} {b}");
        }
        assert_eq!(plain("1.5e2").as_deref(), Some("150"));
        assert_eq!(plain("1e999"), None);
    }
}
