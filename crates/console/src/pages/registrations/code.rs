//! A registration line by line, with the conditions that hold and the one that decides.

use antumbra_registration::Trace;
use antumbra_shadow::Document;
use maud::{Markup, html};
use serde_json::value::RawValue;

use crate::components::cut_at;
use crate::json::{Json, Line, lines};

/// Pointers to the conditions of a registration, beside those in its pattern.
const CONDITIONS: [&str; 10] = [
    "/enabled",
    "/as",
    "/on/key",
    "/on/state",
    "/on/operations",
    "/on/changes",
    "/on/leaf/path",
    "/on/leaf/change",
    "/on/leaf/old",
    "/on/leaf/new",
];
const PATTERN: &str = "/on/pattern";
const OR: &str = "$or";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Holds,
    Decides,
    NotEvaluated,
}

/// The lines of a registration, each with its mark if it is a condition.
pub(super) fn marked(registration: &RawValue, trace: Option<&Trace>) -> Vec<(Line, Option<Mark>)> {
    let breaks = |pointer: &str, json: &Json<'_>| match json {
        // One condition is one line.
        Json::Object(_) => pointer.starts_with("/on"),
        Json::Array(_) => pointer.ends_with(OR),
        Json::Scalar => false,
    };
    let lines = lines(registration, &breaks);
    let Some(trace) = trace else {
        return lines.into_iter().map(|line| (line, None)).collect();
    };
    let mut marks: Vec<Option<Mark>> = lines.iter().map(initial).collect();
    for one in &trace.evaluated {
        let mark = match one.holds {
            true => Mark::Holds,
            false => Mark::Decides,
        };
        match (find(&lines, &one.pointer, one.tests.as_deref()), one.holds) {
            (Some(at), _) => marks[at] = Some(mark),
            // A condition that is not written has its default.
            (None, true) => {}
            (None, false) => marks[parent(&lines, &one.pointer)] = Some(mark),
        }
    }
    lines.into_iter().zip(marks).collect()
}

fn initial(line: &Line) -> Option<Mark> {
    let pointer = line.pointer.as_deref()?;
    let in_pattern = pointer.starts_with(PATTERN) && line.value.is_some();
    (in_pattern || CONDITIONS.contains(&pointer)).then_some(Mark::NotEvaluated)
}

/// The line of a condition. In a pattern, a field can stand in several branches of `$or`: its tests tell which one.
fn find(lines: &[Line], pointer: &str, tests: Option<&str>) -> Option<usize> {
    let mut found = (0..lines.len()).filter(|at| {
        let own = lines[*at].pointer.as_deref();
        own.is_some_and(|own| match tests {
            Some(_) => without_or(own) == pointer,
            None => own == pointer,
        })
    });
    let same_tests = |at: &usize| {
        let canonical = |text: &str| Document::parse(&format!("{{\"v\":{text}}}")).ok();
        let own = lines[*at].value.as_deref().and_then(canonical);
        tests.is_some_and(|tests| own.is_some() && own == canonical(tests))
    };
    let first = found.next()?;
    let others: Vec<usize> = found.collect();
    let all = std::iter::once(first).chain(others);
    Some(all.into_iter().find(same_tests).unwrap_or(first))
}

/// A pointer into a pattern without the steps into branches of `$or`.
fn without_or(pointer: &str) -> String {
    let mut steps = pointer.split('/');
    let mut out = Vec::new();
    while let Some(step) = steps.next() {
        match step {
            OR => drop(steps.next()),
            step => out.push(step),
        }
    }
    out.join("/")
}

/// The line of the nearest value around a condition.
fn parent(lines: &[Line], pointer: &str) -> usize {
    let mut pointer = pointer;
    loop {
        let found = lines
            .iter()
            .position(|line| line.pointer.as_deref() == Some(pointer));
        match (found, pointer.rsplit_once('/')) {
            (Some(at), _) => return at,
            (None, Some((above, _))) => pointer = above,
            (None, None) => return 0,
        }
    }
}

/// The lines of a registration.
pub(super) fn render(registration: &RawValue, trace: Option<&Trace>) -> Markup {
    let why = trace.and_then(|trace| trace.unmet.as_deref());
    html! {
        ol.code aria-label="Registration, line by line" {
            @for (line, mark) in marked(registration, trace) {
                @let (class, sign) = match mark {
                    None => (None, None),
                    Some(Mark::Holds) => (Some("y"), Some("✓")),
                    Some(Mark::Decides) => (Some("n"), Some("✕")),
                    Some(Mark::NotEvaluated) => (Some("off"), Some("·")),
                };
                li class=[class] data-mark=[sign] {
                    (" ".repeat(2 * line.indent))
                    bdi {
                        @if let Some(name) = &line.name { (name) ": " }
                        (line.text)
                    }
                    @if mark == Some(Mark::Decides) && let Some(why) = why {
                        span.why { bdi { (cut_at(reason(why), 600)) } }
                    }
                }
            }
        }
    }
}

/// The reason behind the name of the condition.
pub(super) fn reason(unmet: &str) -> &str {
    unmet.split_once(": ").map_or(unmet, |(_, reason)| reason)
}

/// The name of the condition, such as `on.pattern`.
pub(super) fn condition(unmet: &str) -> &str {
    let name = unmet.split_once(':').map_or(unmet, |(name, _)| name);
    match name.starts_with("on.leaf.") {
        true => "on.leaf",
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use antumbra_registration::Evaluated;

    use super::*;

    fn shown(text: &str, evaluated: &[(&str, Option<&str>, bool)]) -> String {
        let evaluated = evaluated.iter().map(|(pointer, tests, holds)| Evaluated {
            pointer: (*pointer).to_owned(),
            tests: tests.map(str::to_owned),
            holds: *holds,
        });
        let trace = Trace {
            evaluated: evaluated.collect(),
            unmet: None,
        };
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let line = |(line, mark): (Line, Option<Mark>)| {
            let mark = match mark {
                None => ' ',
                Some(Mark::Holds) => '+',
                Some(Mark::Decides) => 'x',
                Some(Mark::NotEvaluated) => '.',
            };
            let name = line.name.map_or(String::new(), |name| format!("{name}: "));
            format!("{mark}{}{name}{}", "  ".repeat(line.indent), line.text)
        };
        let lines = marked(raw, Some(&trace)).into_iter().map(line);
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_branch_of_an_or_is_found_by_its_tests() {
        let text = r#"{"name":"n","on":{"key":"^DS#","pattern":{"$or":[{"new":{"a":[1]}},{"new":{"a":[ {"prefix":"x"} ],"b":[2]}}]}}}"#;
        let evaluated = [
            ("/on/key", None, true),
            ("/on/pattern/new/a", Some(r#"[{"prefix":"x"}]"#), true),
            ("/on/pattern/new/b", Some("[2]"), false),
        ];
        assert_eq!(
            shown(text, &evaluated),
            r#" {
   "name": "n",
   "on": {
+    "key": "^DS#",
     "pattern": {
       "$or": [
         {
           "new": {
.            "a": [1]
           }
         },
         {
           "new": {
+            "a": [{ "prefix": "x" }],
x            "b": [2]
           }
         }
       ]
     }
   }
 }"#
        );
    }

    #[test]
    fn a_condition_that_is_not_written_decides_at_its_parent() {
        let text = r#"{"name":"n","on":{"state":"reported"},"to":{"clients":{}}}"#;
        let marked = shown(text, &[("/enabled", None, true), ("/on/key", None, false)]);
        assert!(marked.contains("x  \"on\": {"), "{marked}");
        assert!(marked.contains(".    \"state\": \"reported\""), "{marked}");
    }
}
