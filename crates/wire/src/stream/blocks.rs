//! Finds certain bytes in blocks of 16 and 64, as one bit each.

use wide::u8x16;

pub(crate) const LANE: usize = 16;
pub(crate) const BLOCK: usize = 64;

/// Kinds of bytes in a block. Bit 0 is the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    pub(crate) quotes: u64,
    pub(crate) backslashes: u64,
    pub(crate) opens: u64,
    pub(crate) closes: u64,
}

#[inline]
pub(crate) fn marks(block: &[u8; BLOCK], open: u8, close: u8) -> Marks {
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
pub(crate) fn string_stops(lane: &[u8; LANE]) -> u32 {
    let lane = u8x16::new(*lane);
    let control = lane.min(u8x16::splat(0x1f)).simd_eq(lane);
    let quote = lane.simd_eq(u8x16::splat(b'"'));
    let backslash = lane.simd_eq(u8x16::splat(b'\\'));
    (control | quote | backslash).to_bitmask()
}

/// Bytes that are not digits, and a bit after the last byte.
#[inline]
pub(crate) fn no_digits(lane: &[u8; LANE]) -> u32 {
    let offset = u8x16::new(*lane) - u8x16::splat(b'0');
    !offset.min(u8x16::splat(9)).simd_eq(offset).to_bitmask()
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
}
