//! Reads the objects of a registration file and reports all problems with their locations.

use std::collections::HashSet;

use antumbra_shadow::{Kind, View};

use crate::problem::{Place, Problems};
use crate::template::{Environment, TopicTemplate, resolve};

pub(crate) struct Reader<'r, 'a> {
    pub(crate) problems: &'r mut Problems<'a>,
    pub(crate) env: Environment<'r>,
}

pub(crate) struct Fields<'v, 'p, 'r, 'a> {
    view: View<'v>,
    place: &'p Place<'p>,
    reader: &'p mut Reader<'r, 'a>,
    known: &'static [&'static str],
}

impl<'v, 'p, 'r, 'a> Fields<'v, 'p, 'r, 'a> {
    /// Starts to read an object; `None` if it is something else. Reports unknown fields.
    pub(crate) fn open(
        view: View<'v>,
        place: &'p Place<'p>,
        reader: &'p mut Reader<'r, 'a>,
        known: &'static [&'static str],
    ) -> Option<Fields<'v, 'p, 'r, 'a>> {
        let mut fields = Fields {
            view,
            place,
            reader,
            known,
        };
        if view.kind() != Kind::Object {
            fields.problem("must be an object");
            return None;
        }
        for member in view.children() {
            let name = member.key();
            if !fields.knows(&name) {
                let reason = match known {
                    [] => "is not a field; there are no fields here".to_owned(),
                    known => format!("is not a field; the fields are {}", known.join(", ")),
                };
                fields.problem_at(&name, reason);
            }
        }
        Some(fields)
    }
}

impl<'v> Fields<'v, '_, '_, '_> {
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.known.contains(&name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<View<'v>> {
        self.view.get(name)
    }

    pub(crate) fn problem(&mut self, reason: impl Into<String>) {
        self.reader.problems.add(self.place, reason);
    }

    pub(crate) fn problem_at(&mut self, name: &str, reason: impl Into<String>) {
        self.reader.problems.add(&self.place.key(name), reason);
    }

    pub(crate) fn problem_below(&mut self, name: &str, below: &str, reason: impl Into<String>) {
        self.reader
            .problems
            .add(&self.place.key(name).key(below), reason);
    }

    pub(crate) fn resolved(&self, text: &str) -> Result<String, String> {
        resolve(text, self.reader.env)
    }

    /// A string without placeholders.
    pub(crate) fn plain(&mut self, name: &str) -> Option<String> {
        let view = self.get(name)?;
        match view.as_str() {
            Some(text) => Some(text.into_owned()),
            None => {
                self.problem_at(name, "must be a string");
                None
            }
        }
    }

    /// A string with environment variables filled in, parsed by `parse`.
    pub(crate) fn text<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(String) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.plain(name)?;
        self.resolved(&text)
            .and_then(parse)
            .map_err(|reason| self.problem_at(name, reason))
            .ok()
    }

    pub(crate) fn required_text<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(String) -> Result<T, String>,
    ) -> Option<T> {
        self.require(name);
        self.text(name, parse)
    }

    pub(crate) fn require(&mut self, name: &str) {
        if self.get(name).is_none() {
            self.problem(format!("has no {name}"));
        }
    }

    pub(crate) fn topic(&mut self, name: &str) -> Option<TopicTemplate> {
        self.require(name);
        let text = self.plain(name)?;
        TopicTemplate::parse(&text, self.reader.env)
            .map_err(|reason| self.problem_at(name, reason))
            .ok()
    }

    pub(crate) fn bool(&mut self, name: &str) -> Option<bool> {
        let view = self.get(name)?;
        if view.as_bool().is_none() {
            self.problem_at(name, "must be true or false");
        }
        view.as_bool()
    }

    pub(crate) fn whole_number(&mut self, name: &str, most: u32) -> Option<u32> {
        let number = self
            .get(name)?
            .as_number()
            .and_then(|text| text.parse().ok())
            .filter(|number| *number <= most);
        if number.is_none() {
            self.problem_at(name, format!("must be a whole number from 0 to {most}"));
        }
        number
    }

    pub(crate) fn object(&mut self, name: &str) -> Option<View<'v>> {
        let view = self.get(name)?;
        if view.kind() != Kind::Object {
            self.problem_at(name, "must be an object");
            return None;
        }
        Some(view)
    }

    /// One of the given words.
    pub(crate) fn choice<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<T> {
        let view = self.get(name)?;
        let found = word(view, words);
        if found.is_none() {
            self.problem_at(name, format!("must be {}", listed(words, "or")));
        }
        found
    }

    /// A non-empty list of the given words, each at most once.
    pub(crate) fn choices<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Option<Vec<T>> {
        let view = self.get(name)?;
        if view.kind() != Kind::Array || view.is_empty_container() {
            self.problem_at(name, format!("must be a list of {}", listed(words, "and")));
            return None;
        }
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for (index, element) in view.children().enumerate() {
            let place = self.place.key(name);
            match word(element, words) {
                None => self.reader.problems.add(
                    &place.index(index),
                    format!("must be {}", listed(words, "or")),
                ),
                Some(_) if !seen.insert(element.raw()) => self
                    .reader
                    .problems
                    .add(&place.index(index), "is listed twice"),
                Some(value) => found.push(value),
            }
        }
        Some(found)
    }

    /// Reads the value of a field, if it is present.
    pub(crate) fn below<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(View<'v>, &Place<'_>, &mut Reader<'_, '_>) -> Option<T>,
    ) -> Option<T> {
        let view = self.get(name)?;
        read(view, &self.place.key(name), self.reader)
    }
}

fn word<T: Copy>(view: View<'_>, words: &[(&str, T)]) -> Option<T> {
    let text = view.as_str()?;
    words
        .iter()
        .find(|(word, _)| *word == text)
        .map(|(_, value)| *value)
}

fn listed<T>(words: &[(&str, T)], last: &str) -> String {
    let names: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    match names.split_last() {
        Some((end, rest)) if !rest.is_empty() => format!("{} {last} {end}", rest.join(", ")),
        _ => names.concat(),
    }
}
