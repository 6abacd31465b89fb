//! JSON texts as lines, with members in their order and numbers in their spelling.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::components::cut;
use maud::{Markup, html};

/// Levels that are printed on lines of their own; deeper values are printed as they are.
const LEVELS: usize = 24;
/// Longest value that stands on one line.
const LINE_CHARS: usize = 64;
/// Lines of a text that a page shows.
const LINES: usize = 400;

/// A value of a text.
#[derive(Debug, Clone)]
pub(crate) enum Json<'a> {
    Object(Vec<(String, &'a RawValue)>),
    Array(Vec<&'a RawValue>),
    Scalar,
}

impl<'a> Json<'a> {
    pub(crate) fn of(raw: &'a RawValue) -> Json<'a> {
        let text = raw.get();
        let object = || {
            serde_json::from_str(text)
                .ok()
                .map(|Members(members)| members)
        };
        let array = || serde_json::from_str(text).ok();
        match text.as_bytes().first() {
            Some(b'{') => object().map_or(Json::Scalar, Json::Object),
            Some(b'[') => array().map_or(Json::Scalar, Json::Array),
            _ => Json::Scalar,
        }
    }

    pub(crate) fn member(&self, name: &str) -> Option<&'a RawValue> {
        match self {
            Json::Object(members) => members
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, raw)| *raw),
            _ => None,
        }
    }
}

/// The members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Of)
    }
}

/// Writes an object from the texts of its members.
pub(crate) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let members = members.into_iter();
    let members = members.map(|(name, value)| format!("{}:{value}", serde_json::Value::from(name)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// One line of a printed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) indent: usize,
    /// The name of a member, in quotes.
    pub(crate) name: Option<String>,
    /// Everything behind the name.
    pub(crate) text: String,
    /// JSON Pointer of the value that begins here; `None` for a line that ends one.
    pub(crate) pointer: Option<String>,
    /// The whole value as it is written, if it is on this line.
    pub(crate) value: Option<String>,
}

/// Prints a text on lines. `breaks` decides whether an object or a list at a pointer is spread over lines though it is short.
pub(crate) fn lines(raw: &RawValue, breaks: &dyn Fn(&str, &Json<'_>) -> bool) -> Vec<Line> {
    let mut printer = Printer {
        breaks,
        lines: Vec::new(),
    };
    printer.print(raw, None, String::new(), 0, "");
    printer.lines
}

struct Printer<'b> {
    breaks: &'b dyn Fn(&str, &Json<'_>) -> bool,
    lines: Vec<Line>,
}

impl Printer<'_> {
    fn print(
        &mut self,
        raw: &RawValue,
        name: Option<String>,
        pointer: String,
        indent: usize,
        end: &str,
    ) {
        if self.lines.len() > LINES {
            return;
        }
        let json = Json::of(raw);
        let (open, close, count) = match &json {
            Json::Object(members) => ("{", "}", members.len()),
            Json::Array(elements) => ("[", "]", elements.len()),
            Json::Scalar => ("", "", 0),
        };
        let short = compact(raw);
        let is_short = short.chars().nth(LINE_CHARS).is_none() && !(self.breaks)(&pointer, &json);
        if count == 0 || indent >= LEVELS || is_short {
            self.lines.push(Line {
                indent,
                name,
                text: format!("{}{end}", cut(&short)),
                pointer: Some(pointer),
                value: Some(raw.get().to_owned()),
            });
            return;
        }
        self.lines.push(Line {
            indent,
            name,
            text: open.to_owned(),
            pointer: Some(pointer.clone()),
            value: None,
        });
        let below: Vec<(Option<String>, String, &RawValue)> = match json {
            Json::Object(members) => {
                let below = |(name, raw): (String, _)| {
                    let mut below = pointer.clone();
                    antumbra_shadow::pointer::push_key(&mut below, &name);
                    let quoted = serde_json::Value::from(&*cut(&name)).to_string();
                    (Some(quoted), below, raw)
                };
                members.into_iter().map(below).collect()
            }
            Json::Array(elements) => {
                let below = |(at, raw)| (None, format!("{pointer}/{at}"), raw);
                elements.into_iter().enumerate().map(below).collect()
            }
            Json::Scalar => Vec::new(),
        };
        for (at, (name, pointer, raw)) in below.into_iter().enumerate() {
            let end = if at + 1 < count { "," } else { "" };
            self.print(raw, name, pointer, indent + 1, end);
        }
        self.lines.push(Line {
            indent,
            name: None,
            text: format!("{close}{end}"),
            pointer: None,
            value: None,
        });
    }
}

/// A value on one line, with spaces as people write them.
fn compact(raw: &RawValue) -> String {
    // A value that cannot be short need not be walked.
    if raw.get().len() > 4 * LINE_CHARS {
        return raw.get().to_owned();
    }
    match Json::of(raw) {
        Json::Object(members) if !members.is_empty() => {
            let members = members.iter();
            let members = members.map(|(name, raw)| {
                format!("{}: {}", serde_json::Value::from(&**name), compact(raw))
            });
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
        Json::Array(elements) => {
            let elements = elements.iter().map(|raw| compact(raw));
            format!("[{}]", elements.collect::<Vec<_>>().join(", "))
        }
        _ => raw.get().to_owned(),
    }
}

/// A text of JSON for people to read, cut where it is very long; another text as it is.
pub(crate) fn pretty(text: &str) -> Markup {
    let Ok(raw) = serde_json::from_str::<&RawValue>(text) else {
        return html! { pre.json { bdi { (crate::components::cut_at(text, 10_000)) } } };
    };
    let lines = lines(raw, &|_, _| false);
    let is_cut = lines.len() > LINES;
    html! {
        pre.json { bdi {
            @for line in lines.iter().take(LINES) {
                (" ".repeat(2 * line.indent))
                @if let Some(name) = &line.name { span.k { (name) } ": " }
                (line.text) "\n"
            }
            @if is_cut { "…" }
        } }
        @if is_cut {
            p.mute { "The first " (LINES) " lines of " (crate::components::size(text.len())) "." }
        }
    }
}

/// A text of JSON without the spaces between its parts.
fn minified(text: &str) -> String {
    let (mut is_string, mut is_escaped) = (false, false);
    let is_kept = |c: &char| {
        let is_part = is_string || !c.is_ascii_whitespace();
        is_string ^= *c == '"' && !is_escaped;
        is_escaped = is_string && *c == '\\' && !is_escaped;
        is_part
    };
    text.chars().filter(is_kept).collect()
}

/// A text of JSON as people edit it.
pub(crate) fn editable(text: &str) -> String {
    let minified = minified(text);
    let Ok(raw) = serde_json::from_str::<&RawValue>(&minified) else {
        return text.to_owned();
    };
    let mut out = String::new();
    let mut write = |line: &Line| {
        out.push_str(&"  ".repeat(line.indent));
        if let Some(name) = &line.name {
            out.push_str(name);
            out.push_str(": ");
        }
        out.push_str(&line.text);
        out.push('\n');
    };
    let printed = lines(raw, &|_, _| false);
    // What is cut for reading must not be lost in editing.
    let is_whole = |line: &Line| {
        line.value
            .as_ref()
            .is_none_or(|value| value.len() <= LINE_CHARS * 2)
    };
    let short_names = |line: &Line| {
        line.name
            .as_ref()
            .is_none_or(|name| name.len() <= LINE_CHARS * 2)
    };
    if printed.len() > LINES
        || !printed
            .iter()
            .all(|line| is_whole(line) && short_names(line))
    {
        return text.to_owned();
    }
    printed.iter().for_each(&mut write);
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> String {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let lines = lines(raw, &|_, _| false);
        let line = |line: &Line| {
            let name = line.name.as_ref().map(|name| format!("{name}: "));
            let pointer = line.pointer.as_deref().unwrap_or("-");
            let indent = "  ".repeat(line.indent);
            format!(
                "{indent}{}{} @{pointer}",
                name.unwrap_or_default(),
                line.text
            )
        };
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn short_values_stay_on_one_line_and_order_and_digits_are_kept() {
        let text = r#"{"z":1.50,"a":{"b":[9007199254740993,true]},"long":{"x":"0123456789012345678901234567890123456789","y/z":"01234567890123456789"}}"#;
        assert_eq!(
            printed(text),
            [
                "{ @",
                "  \"z\": 1.50, @/z",
                "  \"a\": { \"b\": [9007199254740993, true] }, @/a",
                "  \"long\": { @/long",
                "    \"x\": \"0123456789012345678901234567890123456789\", @/long/x",
                "    \"y/z\": \"01234567890123456789\" @/long/y~1z",
                "  } @-",
                "} @-",
            ]
            .join("\n")
        );
    }

    #[test]
    fn texts_are_edited_as_they_are_printed_however_they_were_written() {
        let text = "{\n      \"old\": {\n        \"temp\": {\n          \"value\": [\n            {\n              \"numeric\": [\n                \"<=\",\n                -15.0\n              ]\n            }\n          ]\n        }\n      },\n      \"s p\": \" a\\\" b\\\\\" }";
        assert_eq!(
            editable(text),
            "{\n  \"old\": { \"temp\": { \"value\": [{ \"numeric\": [\"<=\", -15.0] }] } },\n  \"s p\": \" a\\\" b\\\\\"\n}"
        );
        assert_eq!(editable("{ not JSON"), "{ not JSON");
    }

    #[test]
    fn hostile_texts_end() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(pretty(&deep).into_string().len() < 20_000);
        let wide = format!("[{}0]", "0,".repeat(100_000));
        assert!(pretty(&wide).into_string().len() < 40_000);
        let html = pretty(r#"{"<b>":"</pre><script>"}"#).into_string();
        assert!(
            html.contains("&lt;b&gt;") && !html.contains("<script>"),
            "{html}"
        );
        assert_eq!(editable(&deep), deep);
        assert_eq!(object([("a\"", "1"), ("b", "[2]")]), r#"{"a\"":1,"b":[2]}"#);
    }
}
