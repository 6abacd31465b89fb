//! Finds certain bytes in blocks of 16 and 64, as one bit each. For documents and stream images.

use wide::u8x16;

/// Bytes that are looked at in one step.
pub const LANE: usize = 16;
/// Bytes of a block for [`marks`].
pub const BLOCK: usize = 64;

/// Kinds of bytes in a block. Bit 0 is the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Marks {
    pub quotes: u64,
    pub backslashes: u64,
    pub opens: u64,
    pub closes: u64,
}

/// Quotes, backslashes and two kinds of brackets in a block.
#[inline]
pub fn marks(block: &[u8; BLOCK], open: u8, close: u8) -> Marks {
    let (lanes, _) = block.as_chunks::<LANE>();
    let lanes = [0, 1, 2, 3].map(|index| u8x16::new(lanes[index]));
    Marks {
        quotes: equal(lanes, b'"'),
        backslashes: equal(lanes, b'\\'),
        opens: equal(lanes, open),
        closes: equal(lanes, close),
    }
}

#[inline]
fn equal(lanes: [u8x16; 4], byte: u8) -> u64 {
    let sought = u8x16::splat(byte);
    let bits = lanes.map(|lane| u64::from(lane.simd_eq(sought).to_bitmask()));
    bits[0] | bits[1] << 16 | bits[2] << 32 | bits[3] << 48
}

/// Bytes that end the plain part of a string: quotes, backslashes and control characters.
#[inline]
pub fn string_stops(lane: &[u8; LANE]) -> u32 {
    let lane = u8x16::new(*lane);
    let control = lane.min(u8x16::splat(0x1f)).simd_eq(lane);
    let quote = lane.simd_eq(u8x16::splat(b'"'));
    let backslash = lane.simd_eq(u8x16::splat(b'\\'));
    (control | quote | backslash).to_bitmask()
}

/// Bytes that are not digits, and a bit after the last byte.
#[inline]
pub fn no_digits(lane: &[u8; LANE]) -> u32 {
    let offset = u8x16::new(*lane) - u8x16::splat(b'0');
    !offset.min(u8x16::splat(9)).simd_eq(offset).to_bitmask()
}

/// Bytes in which two pieces of text differ.
#[inline]
pub(crate) fn differences(a: &[u8; 2 * LANE], b: &[u8; 2 * LANE]) -> u32 {
    let ((a, _), (b, _)) = (a.as_chunks::<LANE>(), b.as_chunks::<LANE>());
    let same = [0, 1].map(|lane| u8x16::new(a[lane]).simd_eq(u8x16::new(b[lane])));
    !(same[0].to_bitmask() | same[1].to_bitmask() << LANE)
}

/// Bytes of a window: longer than a short name or number and the byte after it.
pub const WINDOW: usize = 2 * LANE;

/// A text in windows, which may reach beyond its end: zeros follow it.
#[derive(Debug)]
pub struct Windows<'a> {
    bytes: &'a [u8],
    /// The last bytes of the text, from `tail_start` on, and zeros.
    tail: [u8; 2 * WINDOW],
    tail_start: usize,
}

impl<'a> Windows<'a> {
    /// Over the bytes of a text.
    pub fn new(bytes: &'a [u8]) -> Windows<'a> {
        let tail_start = bytes.len().saturating_sub(WINDOW);
        let mut tail = [0; 2 * WINDOW];
        tail[..bytes.len() - tail_start].copy_from_slice(&bytes[tail_start..]);
        Windows {
            bytes,
            tail,
            tail_start,
        }
    }

    /// The window at an offset.
    #[inline]
    pub fn at(&self, at: usize) -> &[u8; WINDOW] {
        let window = self.bytes.get(at..at.wrapping_add(WINDOW));
        let window = window.and_then(|window| window.first_chunk());
        window.unwrap_or_else(|| self.in_tail(at))
    }

    #[inline(never)]
    fn in_tail(&self, at: usize) -> &[u8; WINDOW] {
        let from = at.saturating_sub(self.tail_start).min(WINDOW);
        self.tail[from..].first_chunk().unwrap_or(&[0; WINDOW])
    }

    /// The byte at an offset; 0 after the end.
    #[inline]
    pub fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_obvious_way() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let mut block = [0; BLOCK];
            block.fill_with(|| match random.u8(..4) {
                0 => random.choice(*b"\"\\{}[]/0129:\x1f\x20").unwrap(),
                _ => random.u8(..),
            });
            let bits = |sought: &dyn Fn(u8) -> bool| {
                (0..BLOCK).fold(0, |bits, at| bits | u64::from(sought(block[at])) << at)
            };
            let expected = Marks {
                quotes: bits(&|b| b == b'"'),
                backslashes: bits(&|b| b == b'\\'),
                opens: bits(&|b| b == b'{'),
                closes: bits(&|b| b == b'}'),
            };
            assert_eq!(marks(&block, b'{', b'}'), expected);
            let lane = block.first_chunk().unwrap();
            let stops = bits(&|b| b < 0x20 || b == b'"' || b == b'\\') as u16;
            assert_eq!(string_stops(lane), u32::from(stops));
            let no_digit = bits(&|b| !b.is_ascii_digit()) as u16;
            assert_eq!(no_digits(lane), 0xffff_0000 | u32::from(no_digit));
        }
    }

    #[test]
    fn windows_end_in_zeros() {
        let text: Vec<u8> = (1..=100).collect();
        for length in 0..text.len() {
            let windows = Windows::new(&text[..length]);
            let mut padded = text[..length].to_vec();
            padded.resize(length + 3 * WINDOW, 0);
            for at in 0..=length + WINDOW {
                assert_eq!(
                    windows.at(at)[..],
                    padded[at..at + WINDOW],
                    "{at} of {length}"
                );
                assert_eq!(windows.byte(at), padded[at]);
            }
        }
    }
}
