//! Seeded random mutations of inputs, for `cargo test`.

use std::sync::LazyLock;

use fastrand::Rng;

/// Words inserted into inputs; libFuzzer reads the same file.
static WORDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let lines = include_str!("../words.dict").lines();
    lines.filter_map(word).collect()
});

/// Parses a line of the dictionary: a quoted word with the escapes `\\`, `\"` and `\xAB`.
fn word(line: &str) -> Option<Vec<u8>> {
    let quoted = line.strip_prefix('"')?.strip_suffix('"')?;
    let mut word = Vec::new();
    let mut rest = quoted.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            word.push(byte);
            continue;
        }
        match rest.next()? {
            b'x' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                word.push(u8::from_str_radix(digits, 16).ok()?);
            }
            escaped => word.push(escaped),
        }
    }
    Some(word)
}

/// Creates inputs from other inputs, deterministically for a seed.
#[derive(Debug)]
pub struct Mutator {
    random: Rng,
}

impl Mutator {
    pub fn new(seed: u64) -> Mutator {
        Mutator {
            random: Rng::with_seed(seed),
        }
    }

    /// Returns the random generator.
    pub fn random(&mut self) -> &mut Rng {
        &mut self.random
    }

    /// Returns one of the inputs with one to eight mutations.
    pub fn next(&mut self, inputs: &[Vec<u8>]) -> Vec<u8> {
        let pick = |random: &mut Rng| {
            let at = random.usize(..inputs.len().max(1));
            inputs.get(at).cloned().unwrap_or_default()
        };
        let mut input = pick(&mut self.random);
        for _ in 0..[1, 1, 1, 2, 3, 8][self.random.usize(..6)] {
            let other = pick(&mut self.random);
            self.mutate(&mut input, &other);
        }
        input
    }

    fn mutate(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let random = &mut self.random;
        let at = random.usize(..=input.len());
        let end = (at + random.usize(1..40)).min(input.len());
        match random.u8(..8) {
            0 if at < input.len() => input[at] = random.u8(..),
            1 if at < input.len() => input[at] ^= 1 << random.u8(..8),
            2 => drop(input.drain(at..end)),
            3 => input.truncate(at),
            4 => {
                let part = input[at..end].to_vec();
                let to = random.usize(..=input.len());
                input.splice(to..to, part);
            }
            5 => {
                let from = random.usize(..=other.len());
                let to = (from + random.usize(1..40)).min(other.len());
                input.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                let word = &WORDS[random.usize(..WORDS.len())];
                let end = if random.bool() { end } else { at };
                input.splice(at..end, word.iter().copied());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_dictionary_is_a_word() {
        let lines = include_str!("../words.dict").lines();
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(lines.count(), WORDS.len());
        assert!(WORDS.iter().all(|word| !word.is_empty()));
        assert_eq!(word(r#""a\"\\\x00""#).unwrap(), b"a\"\\\0");
    }

    #[test]
    fn a_seed_makes_the_same_inputs() {
        let inputs = [b"{\"a\":1}".to_vec(), b"[]".to_vec()];
        let made = |seed| {
            let mut mutator = Mutator::new(seed);
            (0..50).map(|_| mutator.next(&inputs)).collect::<Vec<_>>()
        };
        assert_eq!(made(1), made(1));
        assert_ne!(made(1), made(2));
    }
}
