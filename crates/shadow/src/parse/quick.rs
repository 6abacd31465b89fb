//! The fast path: short names, plain strings and short numbers in one step.
//!
//! Each function either reads its input completely, in canonical form, or returns nothing, and the slow path takes
//! over. None of them rejects input.

use crate::blocks::{LANE, WINDOW, Windows, no_digits, string_stops};

/// Length of a short plain name in quotes at the start of a window, followed by a colon.
#[inline]
pub(super) fn quick_name(window: &[u8; WINDOW]) -> Option<usize> {
    let rest: &[u8; LANE] = window[1..].first_chunk()?;
    let length = string_stops(rest).trailing_zeros() as usize;
    if length >= LANE || window[0] != b'"' || window[length + 1..].first_chunk() != Some(b"\":") {
        return None;
    }
    Some(length)
}

/// The first eight bytes of the name in quotes at the start of a window, as a number. Names have no zeros, so that the
/// numbers of two names are in the order of the names, or equal.
#[inline]
pub(super) fn head(window: &[u8; WINDOW], length: usize) -> u64 {
    let [_, bytes @ .., _, _, _, _, _, _, _] = window.first_chunk::<16>().unwrap_or(&[0; 16]);
    match u64::from_be_bytes(*bytes) {
        word if length < 8 => word & !(u64::MAX >> (8 * length)),
        word => word,
    }
}

/// Closing quote of a plain string that starts at `from`.
#[inline]
pub(super) fn quick_string(windows: &Windows<'_>, mut from: usize) -> Option<usize> {
    loop {
        let stops = string_stops(windows.at(from).first_chunk()?);
        if stops != 0 {
            let end = from + stops.trailing_zeros() as usize;
            return (windows.byte(end) == b'"').then_some(end);
        }
        from += LANE;
    }
}

/// Length of the number at the start of a window, if it is short and in canonical form: digits with at most one point
/// between them, without a zero in front or at the end of a fraction.
#[inline]
pub(super) fn quick_number(window: &[u8; WINDOW]) -> Option<usize> {
    let stops = no_digits(window.first_chunk()?);
    let whole = stops.trailing_zeros() as usize;
    // Most numbers are whole and positive.
    if (whole == 1 || window[0] != b'0')
        && (1..LANE).contains(&whole)
        && matches!(window[whole], b',' | b'}')
    {
        return Some(whole);
    }
    let sign = usize::from(window[0] == b'-');
    let stops = stops >> sign;
    let whole = stops.trailing_zeros() as usize;
    let mut length = sign + whole;
    let zero = window[sign] == b'0';
    if whole == 0 || whole > 1 && zero || length >= LANE {
        return None;
    }
    if window[length] == b'.' {
        let fraction = (stops >> (whole + 1)).trailing_zeros() as usize;
        length += 1 + fraction;
        if fraction == 0 || length >= LANE || window[length - 1] == b'0' {
            return None;
        }
    } else if zero && sign == 1 {
        return None;
    }
    match window[length] {
        b'e' | b'E' => None,
        _ => Some(length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::canonical;
    use crate::scan::Scanner;

    /// Whatever is read in one step, the slow path reads the same.
    #[test]
    fn one_step_agrees_with_the_scanner() {
        let mut random = fastrand::Rng::with_seed(5);
        let (mut numbers, mut names, mut strings) = (0, 0, 0);
        for _ in 0..200_000 {
            let length = random.usize(..24);
            let pick: &[u8] = match random.u8(..3) {
                0 => b"0123456789",
                1 => b"00129-.eE,}] ",
                _ => b"ab\"\":\\\x1f\x80 ",
            };
            let quote = random.bool().then_some('"');
            let rest = (0..length).map(|_| pick[random.usize(..pick.len())] as char);
            let text: String = quote.into_iter().chain(rest).collect();
            let windows = Windows::new(text.as_bytes());
            let scanner = Scanner::new(&text);
            if let Some(length) = quick_number(windows.at(0)) {
                let number = scanner.clone().number();
                assert_eq!(number, Ok(&text[..length]), "{text:?}");
                assert_eq!(canonical(&text[..length]).as_deref(), Ok(&text[..length]));
                numbers += 1;
            }
            let string = scanner.clone().string();
            let plain =
                |end: usize| string.is_ok_and(|string| string.end == end && !string.escaped);
            if let Some(length) = quick_name(windows.at(0)) {
                assert!(plain(1 + length), "{text:?}");
                assert_eq!(text.as_bytes()[length + 2], b':', "{text:?}");
                names += 1;
            }
            if let Some(end) = quote.and_then(|_| quick_string(&windows, 1)) {
                assert!(plain(end), "{text:?}");
                strings += 1;
            }
        }
        assert!(
            numbers > 1_000 && names > 1_000 && strings > 1_000,
            "{numbers} {names} {strings}"
        );
    }

    #[test]
    fn heads_have_the_order_of_names() {
        let names = [
            "",
            "a",
            "a b",
            "ab",
            "abcdefg",
            "abcdefgh",
            "abcdefghi",
            "abcdefh",
            "b",
            "é",
        ];
        let head = |name: &str| {
            let text = format!("\"{name}\":1");
            super::head(Windows::new(text.as_bytes()).at(0), name.len())
        };
        for (a, b) in names.iter().zip(&names[1..]) {
            let same_start = b.starts_with(a) && a.len() >= 8;
            assert!(
                head(a) < head(b) || same_start && head(a) == head(b),
                "{a} {b}"
            );
        }
    }
}
