//! Skips a container without parsing it.
//!
//! Only strings and the container's own kind of brackets are recognised, so the skipped text may be invalid JSON. It is
//! parsed when it is needed.

use antumbra_shadow::blocks::{BLOCK, Marks, marks};

/// End of the object or array that starts at `at`: the position after its closing bracket. `None` if the bytes
/// end first.
pub(crate) fn container_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (open, close) = match bytes.get(at)? {
        b'{' => (b'{', b'}'),
        _ => (b'[', b']'),
    };
    let mut skip = Skip::default();
    let (blocks, rest) = bytes[at..].as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(end) = skip.block(marks(block, open, close)) {
            return Some(at + index * BLOCK + end);
        }
    }
    let mut last = [0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let end = skip.block(marks(&last, open, close))?;
    Some(at + blocks.len() * BLOCK + end)
}

#[derive(Default)]
struct Skip {
    depth: u32,
    /// All ones if a string continues in the next block.
    in_string: u64,
    /// One if the first byte of the next block is escaped.
    escapes_next: u64,
}

impl Skip {
    /// Reads the next block; returns the offset after the bracket that closes the container.
    #[inline]
    fn block(&mut self, marks: Marks) -> Option<usize> {
        let quotes = if marks.backslashes | self.escapes_next == 0 {
            marks.quotes
        } else {
            marks.quotes & !self.escaped(marks.backslashes)
        };
        let strings = inside(quotes) ^ self.in_string;
        self.in_string = (strings.cast_signed() >> 63).cast_unsigned();
        let (opens, closes) = (marks.opens & !strings, marks.closes & !strings);
        let closing = closes.count_ones();
        if self.depth > closing {
            self.depth = self.depth + opens.count_ones() - closing;
            return None;
        }
        let mut brackets = opens | closes;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            let closes_here = (closes >> at & 1) as u32;
            self.depth = self.depth + 1 - 2 * closes_here;
            if self.depth == 0 {
                return Some(at as usize + 1);
            }
            brackets &= brackets - 1;
        }
        None
    }

    /// Bytes that follow an odd number of backslashes.
    fn escaped(&mut self, backslashes: u64) -> u64 {
        let mut escaped = self.escapes_next;
        let mut left = backslashes & !escaped;
        self.escapes_next = 0;
        while left != 0 {
            let at = left.trailing_zeros();
            left &= left - 1;
            if at == 63 {
                self.escapes_next = 1;
            } else {
                escaped |= 2 << at;
                left &= !(2 << at);
            }
        }
        escaped
    }
}

/// Bytes inside strings, by the parity of the quotes before each byte.
#[inline]
fn inside(quotes: u64) -> u64 {
    let mut bits = quotes;
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference implementation, a byte at a time.
    fn slowly(bytes: &[u8], at: usize) -> Option<usize> {
        let (open, close) = match bytes[at] {
            b'{' => (b'{', b'}'),
            _ => (b'[', b']'),
        };
        let (mut depth, mut string, mut escaped) = (0, false, false);
        for (offset, &b) in bytes[at..].iter().enumerate() {
            // Escapes outside strings are invalid JSON, so their handling does not matter.
            if escaped && (b == b'"' || b == b'\\') {
                escaped = false;
                continue;
            }
            escaped = b == b'\\';
            if b == b'"' {
                string = !string;
            } else if !string && b == open {
                depth += 1;
            } else if !string && b == close {
                depth -= 1;
                if depth == 0 {
                    return Some(at + offset + 1);
                }
            }
        }
        None
    }

    #[test]
    fn ends_where_the_slow_way_ends() {
        let mut random = fastrand::Rng::with_seed(11);
        let (mut found, mut open_ended) = (0, 0);
        for _ in 0..20_000 {
            let length = random.usize(1..300);
            let odd = random.bool();
            let mut bytes: Vec<u8> = (0..length)
                .map(|_| match random.u8(..12) {
                    0 => b'"',
                    1 if odd => b'\\',
                    2 | 3 => b'{',
                    4 => b'}',
                    5 => b'[',
                    6 => b']',
                    _ => b'a',
                })
                .collect();
            let at = random.usize(..length);
            bytes[at] = random.choice(*b"{[").unwrap();
            let end = container_end(&bytes, at);
            assert_eq!(
                end,
                slowly(&bytes, at),
                "{}",
                String::from_utf8_lossy(&bytes)
            );
            found += usize::from(end.is_some());
            open_ended += usize::from(end.is_none());
        }
        assert!(found > 2_000 && open_ended > 2_000, "{found} {open_ended}");
    }
}
