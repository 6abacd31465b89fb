//! Comparison of texts that ignores case.
//!
//! A character of the pattern matches itself, its upper case and its lower case, each of which can be several
//! characters: `ß` also matches `SS`. The value is not folded.

/// A text of a pattern, prepared for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fold {
    text: Box<str>,
    /// The spellings of each character; empty if all are ASCII, where bytes are compared.
    choices: Box<[Box<[Box<str>]>]>,
}

impl Fold {
    pub(crate) fn new(text: &str) -> Fold {
        let choices = if text.is_ascii() {
            Box::default()
        } else {
            text.chars().map(choices).collect()
        };
        Fold {
            text: text.into(),
            choices,
        }
    }

    /// The text in lower case, if an ASCII comparison is enough.
    pub(crate) fn ascii_lower(&self) -> Option<String> {
        self.choices
            .is_empty()
            .then(|| self.text.to_ascii_lowercase())
    }

    pub(crate) fn equals(&self, value: &str) -> bool {
        if self.choices.is_empty() {
            return self.text.eq_ignore_ascii_case(value);
        }
        self.strip_prefix(value) == Some("")
    }

    pub(crate) fn is_prefix_of(&self, value: &str) -> bool {
        if self.choices.is_empty() {
            let head = value.as_bytes().get(..self.text.len());
            return head.is_some_and(|head| head.eq_ignore_ascii_case(self.text.as_bytes()));
        }
        self.strip_prefix(value).is_some()
    }

    pub(crate) fn is_suffix_of(&self, value: &str) -> bool {
        if self.choices.is_empty() {
            let tail = value
                .len()
                .checked_sub(self.text.len())
                .map(|start| &value.as_bytes()[start..]);
            return tail.is_some_and(|tail| tail.eq_ignore_ascii_case(self.text.as_bytes()));
        }
        let mut choices = self.choices.iter().rev();
        choices
            .try_fold(value, |rest, choices| {
                choices
                    .iter()
                    .find_map(|choice| rest.strip_suffix(&**choice))
            })
            .is_some()
    }

    /// No spelling of a character starts with another of its spellings, so the first that matches is the only one.
    fn strip_prefix<'v>(&self, value: &'v str) -> Option<&'v str> {
        self.choices.iter().try_fold(value, |rest, choices| {
            choices
                .iter()
                .find_map(|choice| rest.strip_prefix(&**choice))
        })
    }
}

fn choices(c: char) -> Box<[Box<str>]> {
    let mut choices = vec![Box::<str>::from(c.to_string())];
    for other in [c.to_lowercase().to_string(), c.to_uppercase().to_string()] {
        if !choices.iter().any(|choice| **choice == *other) {
            choices.push(other.into());
        }
    }
    choices.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_does_not_count() {
        for (pattern, value, expected) in [
            ("", "", true),
            ("", "a", false),
            ("On", "oN", true),
            ("on", "one", false),
            ("straße", "STRASSE", true),
            ("straße", "Straße", true),
            ("strasse", "straße", false),
            ("É", "é", true),
            ("Ⱥ", "ⱥ", true),
            ("k", "\u{212a}", false),
            ("\u{3b0}", "\u{3a5}\u{308}\u{301}", true),
            ("😀x", "😀X", true),
            ("İ", "i̇", true),
        ] {
            assert_eq!(
                Fold::new(pattern).equals(value),
                expected,
                "{pattern} {value}"
            );
        }
        assert!(Fold::new("ÄB").is_prefix_of("äbc"));
        assert!(!Fold::new("ÄB").is_prefix_of("äc"));
        assert!(Fold::new("ß").is_suffix_of("STRASS"));
        assert!(Fold::new("ab").is_suffix_of("xAB"));
        assert!(!Fold::new("abc").is_suffix_of("bc"));
        assert!(!Fold::new("abc").is_prefix_of("ab"));
        assert!(!Fold::new("ab").is_suffix_of("é"));
    }
}
