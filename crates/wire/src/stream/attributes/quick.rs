//! The fast path: names, types, strings and numbers in one step, if they are as AWS writes them.
//!
//! Each function either reads its input completely or returns nothing, and the slow path takes over. None of them
//! rejects input.

use antumbra_shadow::blocks::{LANE, no_digits, string_stops};

/// Size of the window: longer than a short name, a type and a short number.
pub(super) const WINDOW: usize = 64;

/// The first six bytes of a value with its type, as AWS writes it.
const fn six(bytes: &[u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = *bytes;
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

#[inline]
pub(super) fn six_of(window: &[u8; WINDOW], at: usize) -> u64 {
    u64::from_le_bytes(*part(window, at)) & 0xffff_ffff_ffff
}

pub(super) const NUMBER: u64 = six(b"{\"N\":\"");
pub(super) const STRING: u64 = six(b"{\"S\":\"");
pub(super) const MAP: u64 = six(b"{\"M\":{");

#[inline]
pub(super) fn byte_at(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// The next bytes from an offset on, if there are as many.
#[inline]
pub(super) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// A part of a window. All positions are in its first half; the mask shows that to the compiler, which then omits
/// bounds checks.
#[inline]
fn part<const N: usize>(window: &[u8; WINDOW], at: usize) -> &[u8; N] {
    let rest = &window[at & (WINDOW / 2 - 1)..];
    rest.first_chunk().unwrap_or(&[0; N])
}

/// Length of a short plain name in quotes at the start of a window, followed by a colon.
#[inline]
pub(super) fn quick_name(window: &[u8; WINDOW]) -> Option<usize> {
    let length = string_stops(part(window, 1)).trailing_zeros() as usize;
    if length >= LANE || window[0] != b'"' || part(window, length + 1) != b"\":" {
        return None;
    }
    Some(length)
}

/// Closing quote of a plain string that starts at `from`, if the value ends right after it.
#[inline]
pub(super) fn quick_text(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let stops = string_stops(chunk(bytes, from)?);
        if stops != 0 {
            let end = from + stops.trailing_zeros() as usize;
            return (chunk(bytes, end) == Some(b"\"}")).then_some(end);
        }
        from += LANE;
    }
}

/// Length of the number at this position of a window, if it is short, consists of digits with at most one point
/// between them, and the value ends right after it.
#[inline]
pub(super) fn quick_number(window: &[u8; WINDOW], value: usize) -> Option<usize> {
    let text: &[u8; LANE + 2] = part(window, value + 6);
    let stops = no_digits(text.first_chunk()?);
    let whole = stops.trailing_zeros() as usize;
    // Most numbers are whole and positive.
    if (whole == 1 || text[0] != b'0') && (1..LANE).contains(&whole) && is_end(text, whole) {
        return Some(whole);
    }
    let sign = usize::from(text[0] == b'-');
    let stops = stops >> sign;
    let whole = stops.trailing_zeros() as usize;
    // Digits without a leading zero.
    if whole == 0 || (whole > 1 && text[sign] == b'0') {
        return None;
    }
    let mut length = sign + whole;
    if text[length & (LANE - 1)] == b'.' {
        let fraction = (stops >> (whole + 1)).trailing_zeros() as usize;
        if fraction == 0 {
            return None;
        }
        length += 1 + fraction;
    }
    (length < LANE && is_end(text, length)).then_some(length)
}

/// Returns `true` if a value ends there.
#[inline]
fn is_end(text: &[u8; LANE + 2], length: usize) -> bool {
    text[length & (LANE - 1)..].first_chunk() == Some(b"\"}")
}
