//! Builds messages member by member, so that members can be left out if a message is too large.

use std::fmt::Write;

use antumbra_shadow::text::escape_into;

/// The members of a JSON object, in order, each with its JSON text.
#[derive(Debug, Default)]
pub(super) struct Fields {
    members: Vec<(&'static str, String)>,
    left_out: Vec<&'static str>,
}

impl Fields {
    pub(super) fn json(mut self, name: &'static str, json: impl Into<String>) -> Fields {
        self.members.push((name, json.into()));
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
        for (name, json) in &self.members {
            out.push_str(if out.is_empty() { "{\"" } else { ",\"" });
            // Writing to a String cannot fail.
            let _ = write!(out, "{name}\":{json}");
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

    /// Returns the object in at most `limit` bytes. Leaves out the optional members, one after the other, until
    /// it fits; `truncated` names them. The error is the size without all of them.
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
            let before = self.members.len();
            while self.members.len() == before {
                let name = *optional.next().ok_or(text.len())?;
                self.members.retain(|(member, _)| *member != name);
                if self.members.len() < before {
                    self.left_out.push(name);
                }
            }
        }
    }
}
