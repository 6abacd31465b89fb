//! Numbers as decimal text, never as floating point.
//!
//! The one written form of a number is DynamoDB's: plain decimals without exponent, without
//! leading or trailing zeros, and no negative zero. Equal numbers are therefore equal texts.

use crate::limits::{NUMBER_DIGITS, NUMBER_MAX_EXPONENT, NUMBER_MIN_EXPONENT};

/// Why a number cannot be kept exactly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// More significant digits than can be stored.
    #[error("a number has {digits} significant digits, the limit is {NUMBER_DIGITS}")]
    TooPrecise {
        /// Digits of the number.
        digits: usize,
    },
    /// Too large or too close to zero.
    #[error(
        "a number is near 1e{exponent}, outside 1e{NUMBER_MIN_EXPONENT} to 1e{NUMBER_MAX_EXPONENT}"
    )]
    OutOfRange {
        /// The power of ten of its first significant digit.
        exponent: i64,
    },
}

/// Returns `true` if `text`, a number by JSON's grammar, is certainly in canonical form.
/// A `false` only means that [`canonical`] has to look.
pub(crate) fn is_plainly_canonical(text: &[u8]) -> bool {
    if text.len() > NUMBER_DIGITS || text == b"-0" {
        return false;
    }
    let mut fraction = false;
    for &b in text {
        match b {
            b'e' | b'E' => return false,
            b'.' => fraction = true,
            _ => {}
        }
    }
    !fraction || text.last() != Some(&b'0')
}

/// The one written form of a number that follows JSON's grammar.
///
/// ```
/// use antumbra_shadow::number::canonical;
/// assert_eq!(canonical("1.50e2").unwrap(), "150");
/// assert_eq!(canonical("-0.0").unwrap(), "0");
/// assert!(canonical("1e126").is_err());
/// ```
pub fn canonical(text: &str) -> Result<String, NumberError> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (coefficient, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], exponent(&rest[at + 1..])),
        None => (rest, 0),
    };
    let (whole, fraction) = coefficient.split_once('.').unwrap_or((coefficient, ""));
    let mut digits = String::with_capacity(whole.len() + fraction.len());
    digits.push_str(whole);
    digits.push_str(fraction);
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let significant = digits[leading..].trim_end_matches('0');
    if significant.is_empty() {
        return Ok("0".to_owned());
    }
    // Digits before the decimal point once the exponent is applied; may be negative.
    let point = (whole.len() as i64 - leading as i64).saturating_add(exponent);
    if significant.len() > NUMBER_DIGITS {
        return Err(NumberError::TooPrecise {
            digits: significant.len(),
        });
    }
    if point > NUMBER_MAX_EXPONENT || point - 1 < NUMBER_MIN_EXPONENT {
        return Err(NumberError::OutOfRange {
            exponent: point.saturating_sub(1),
        });
    }
    Ok(plain(negative, significant, point))
}

/// An exponent's value; one too long for an `i64` saturates, which is out of range all the same.
fn exponent(text: &str) -> i64 {
    text.parse().unwrap_or(if text.starts_with('-') {
        i64::MIN / 2
    } else {
        i64::MAX / 2
    })
}

fn plain(negative: bool, digits: &str, point: i64) -> String {
    let mut out = String::with_capacity(digits.len() + 4);
    if negative {
        out.push('-');
    }
    // `point` lies between the two exponents' limits here, so it fits a usize.
    match usize::try_from(point) {
        Ok(0) | Err(_) => {
            out.push_str("0.");
            (point..0).for_each(|_| out.push('0'));
            out.push_str(digits);
        }
        Ok(point) if point >= digits.len() => {
            out.push_str(digits);
            (digits.len()..point).for_each(|_| out.push('0'));
        }
        Ok(point) => {
            out.push_str(&digits[..point]);
            out.push('.');
            out.push_str(&digits[point..]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_written_form() {
        for (given, form) in [
            ("0", "0"),
            ("-0", "0"),
            ("0.0", "0"),
            ("0e99999999999999999999", "0"),
            ("1", "1"),
            ("1.0", "1"),
            ("10e-1", "1"),
            ("1e2", "100"),
            ("1E+2", "100"),
            ("-1.50", "-1.5"),
            ("0.010", "0.01"),
            ("1e-2", "0.01"),
            ("123.456e1", "1234.56"),
            ("9007199254740993", "9007199254740993"),
            (
                "99999999999999999999999999999999999999",
                "99999999999999999999999999999999999999",
            ),
            ("0.1e-3", "0.0001"),
        ] {
            assert_eq!(canonical(given).as_deref(), Ok(form), "{given}");
        }
    }

    #[test]
    fn bounds_are_dynamodbs() {
        assert!(canonical("1e125").is_ok());
        assert_eq!(
            canonical("1e126"),
            Err(NumberError::OutOfRange { exponent: 126 })
        );
        assert!(canonical("1e-130").is_ok());
        assert_eq!(
            canonical("-1e-131"),
            Err(NumberError::OutOfRange { exponent: -131 })
        );
        assert_eq!(
            canonical("1.00000000000000000000000000000000000001"),
            Err(NumberError::TooPrecise { digits: 39 })
        );
        assert!(canonical("1e99999999999999999999").is_err());
        assert!(canonical("1e-99999999999999999999").is_err());
    }

    #[test]
    fn the_quick_look_agrees() {
        for text in ["0", "-1", "12.5", "-0.25", "1000", "0.5"] {
            assert!(is_plainly_canonical(text.as_bytes()), "{text}");
            assert_eq!(canonical(text).as_deref(), Ok(text));
        }
        for text in ["-0", "1.0", "1e2", "0.50"] {
            assert!(!is_plainly_canonical(text.as_bytes()), "{text}");
        }
    }
}
