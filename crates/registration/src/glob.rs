//! Globs: literals separated by wildcards, `*` in patterns and `.*` in keys.

use memchr::memmem;

/// Literals that a text must contain in order, the first at its start and the last at its end. A single literal is
/// the whole text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Glob {
    parts: Box<[Box<str>]>,
}

impl Glob {
    /// Takes at least one literal; an empty one at either end leaves that end open.
    pub(crate) fn new(parts: Vec<String>) -> Glob {
        debug_assert!(!parts.is_empty());
        Glob {
            parts: parts.into_iter().map(String::into_boxed_str).collect(),
        }
    }

    pub(crate) fn parts(&self) -> &[Box<str>] {
        &self.parts
    }

    /// The start of every match.
    pub(crate) fn prefix(&self) -> &str {
        &self.parts[0]
    }

    /// The end of every match.
    pub(crate) fn suffix(&self) -> &str {
        &self.parts[self.parts.len() - 1]
    }

    /// Takes linear time: the leftmost position of each literal is always correct.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let [first, rest @ ..] = &*self.parts else {
            return false;
        };
        let [middle @ .., last] = rest else {
            return text == &**first;
        };
        if text.len() < first.len() + last.len()
            || !text.starts_with(&**first)
            || !text.ends_with(&**last)
        {
            return false;
        }
        let mut between = &text.as_bytes()[first.len()..text.len() - last.len()];
        for part in middle {
            match memmem::find(between, part.as_bytes()) {
                Some(at) => between = &between[at + part.len()..],
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::new(text.split('*').map(str::to_owned).collect())
    }

    #[test]
    fn parts_in_order_without_overlap() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "abc", true),
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a*", "a", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("*a", "ab", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("a*bb*b", "abbb", true),
            ("a*bb*b", "abb", false),
            ("*ab*ab*", "abab", true),
            ("*ab*ab*", "aba", false),
            ("é*ü", "éxü", true),
            ("a*b*b", "axbxxb", true),
        ] {
            assert_eq!(glob(pattern).is_match(text), expected, "{pattern} {text}");
        }
    }
}
