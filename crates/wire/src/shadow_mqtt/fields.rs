//! Builds messages member by member, so that members can be left out if a message is too large.

use std::fmt::{self, Write};

use antumbra_shadow::text::escape_into;

/// The members of a JSON object, in order.
#[derive(Debug, Default)]
pub(super) struct Fields {
    members: Vec<(&'static str, Member)>,
    left_out: Vec<&'static str>,
}

#[derive(Debug)]
enum Member {
    Json(String),
    Object(Fields),
}

impl Fields {
    pub(super) fn json(mut self, name: &'static str, json: impl Into<String>) -> Fields {
        self.members.push((name, Member::Json(json.into())));
        self
    }

    /// Adds an object. Its members can be left out one by one.
    pub(super) fn object(mut self, name: &'static str, object: Fields) -> Fields {
        self.members.push((name, Member::Object(object)));
        self
    }

    pub(super) fn number(self, name: &'static str, number: i64) -> Fields {
        self.json(name, number.to_string())
    }

    pub(super) fn text(self, name: &'static str, text: Option<&str>) -> Fields {
        let Some(text) = text else {
            return self;
        };
        let mut json = String::from("\"");
        escape_into(&mut json, text);
        json.push('"');
        self.json(name, json)
    }

    pub(super) fn to_json(&self) -> String {
        let mut out = String::with_capacity(self.bytes());
        // Writing to a String cannot fail.
        let _ = self.write_to(&mut out);
        out
    }

    fn write_to(&self, out: &mut impl Write) -> fmt::Result {
        let mut next = "{\"";
        for (name, member) in &self.members {
            write!(out, "{next}{name}\":")?;
            match member {
                Member::Json(json) => out.write_str(json)?,
                Member::Object(object) => object.write_to(out)?,
            }
            next = ",\"";
        }
        if !self.left_out.is_empty() {
            write!(
                out,
                "{next}truncated\":[\"{}\"]",
                self.left_out.join("\",\"")
            )?;
        } else if self.members.is_empty() {
            out.write_char('{')?;
        }
        out.write_char('}')
    }

    /// Returns the size of the JSON text, without making it.
    fn bytes(&self) -> usize {
        let mut counter = Counter(0);
        let _ = self.write_to(&mut counter);
        counter.0
    }

    /// Returns the object in at most `limit` bytes. Leaves out the optional members (`a`, or `a.b` inside of an
    /// object), one after the other, until it fits; `truncated` names them. The error is the size without all of them.
    pub(super) fn within(
        mut self,
        limit: usize,
        optional: &[&'static str],
    ) -> Result<String, usize> {
        let mut optional = optional.iter();
        loop {
            let bytes = self.bytes();
            if bytes <= limit {
                return Ok(self.to_json());
            }
            let name = loop {
                let name = *optional.next().ok_or(bytes)?;
                if self.remove(name) {
                    break name;
                }
            };
            self.left_out.push(name);
        }
    }

    /// Returns whether the member existed.
    fn remove(&mut self, path: &str) -> bool {
        let (name, inner) = match path.split_once('.') {
            Some((name, inner)) => (name, Some(inner)),
            None => (path, None),
        };
        let Some(at) = self.members.iter().position(|(member, _)| *member == name) else {
            return false;
        };
        match (&mut self.members[at].1, inner) {
            (Member::Object(object), Some(inner)) => object.remove(inner),
            (Member::Json(_), Some(_)) => false,
            (_, None) => {
                self.members.remove(at);
                true
            }
        }
    }
}

/// Counts the bytes that are written.
struct Counter(usize);

impl Write for Counter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}
