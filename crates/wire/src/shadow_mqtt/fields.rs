//! Builds messages member by member, so that members can be left out if a message is too large.

use std::fmt::Write;

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
        let mut out = String::new();
        for (name, member) in &self.members {
            out.push_str(if out.is_empty() { "{\"" } else { ",\"" });
            // Writing to a String cannot fail.
            let _ = match member {
                Member::Json(json) => write!(out, "{name}\":{json}"),
                Member::Object(object) => write!(out, "{name}\":{}", object.to_json()),
            };
        }
        if !self.left_out.is_empty() {
            let _ = write!(out, ",\"truncated\":[\"{}\"]", self.left_out.join("\",\""));
        }
        if out.is_empty() {
            out.push('{');
        }
        out.push('}');
        out
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
            let text = self.to_json();
            if text.len() <= limit {
                return Ok(text);
            }
            let name = loop {
                let name = *optional.next().ok_or(text.len())?;
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
