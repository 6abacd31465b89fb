//! Numbers of JSON text, read digit by digit without any product code.

use antumbra_shadow::limits::{NUMBER_DIGITS, NUMBER_MAX_EXPONENT, NUMBER_MIN_EXPONENT};

/// Returns the numbers of a JSON text as written.
pub(crate) fn numbers(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let (mut at, mut string) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if string => at += 1,
            b'"' => string = !string,
            b'-' | b'0'..=b'9' if !string => {
                let start = at;
                let part = |b: &u8| b.is_ascii_digit() || b"+-.eE".contains(b);
                while bytes.get(at).is_some_and(part) {
                    at += 1;
                }
                found.push(&text[start..at]);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// A number independent of its notation: sign, digits without leading and trailing zeros, and the power of
/// ten of the last digit. Zero has no digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Decimal {
    negative: bool,
    digits: String,
    power: i64,
}

impl Decimal {
    /// Returns `None` if the exponent exceeds `i64`.
    pub(crate) fn of(token: &str) -> Option<Decimal> {
        let (negative, rest) = match token.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, token),
        };
        let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let all = all.trim_start_matches('0');
        let digits = all.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Decimal {
                negative: false,
                digits: String::new(),
                power: 0,
            });
        }
        let exponent: i64 = exponent.parse().ok()?;
        let power = exponent
            .checked_sub(fraction.len() as i64)?
            .checked_add((all.len() - digits.len()) as i64)?;
        Some(Decimal {
            negative,
            digits: digits.to_owned(),
            power,
        })
    }

    /// Returns the number of significant digits.
    pub(crate) fn significant(&self) -> usize {
        self.digits.len()
    }

    /// Returns whether DynamoDB stores the number exactly.
    pub(crate) fn fits(&self) -> bool {
        let first = self.power.saturating_add(self.digits.len() as i64 - 1);
        self.digits.is_empty()
            || self.digits.len() <= NUMBER_DIGITS
                && (NUMBER_MIN_EXPONENT..NUMBER_MAX_EXPONENT).contains(&first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_outside_of_strings() {
        let text = r#"{"a1":[-1.50e+3,0],"b":"\"7","c":true}"#;
        assert_eq!(numbers(text), ["-1.50e+3", "0"]);
    }

    #[test]
    fn notations_of_one_number_are_equal() {
        let of = |token| Decimal::of(token).unwrap();
        assert_eq!(of("1.50e3"), of("1500"));
        assert_eq!(of("-0.0"), of("0e9999999999999999999999"));
        assert_ne!(of("-1"), of("1"));
        assert!(of("1e125").fits() && !of("1e126").fits());
        assert!(of("1e-130").fits() && !of("9e-131").fits());
        assert!(Decimal::of("1e9999999999999999999999").is_none());
    }
}
