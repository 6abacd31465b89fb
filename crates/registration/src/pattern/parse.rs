//! Reads a pattern from JSON and reports all problems with their locations.

use std::sync::Arc;

use antumbra_shadow::{Kind, View};

use super::address::{Address, Network};
use super::alternative::{Field, Wanted};
use super::fold::Fold;
use super::root::Root;
use super::test::{But, End, Range, Test};
use crate::decimal;
use crate::glob::Glob;
use crate::problem::{Place, Problems};

/// The conditions of an object of a pattern; all must hold.
pub(super) type Conditions = Vec<Condition>;

pub(super) enum Condition {
    /// A condition on the values of one field: one passes a test, there are none, or either.
    Field(Vec<Field>),
    /// One of these alternatives.
    Or(Vec<Conditions>),
}

/// Names of operators. As a field name inside `$or` they are probably a mistake.
const OPERATORS: [&str; 14] = [
    "exactly",
    "equals-ignore-case",
    "prefix",
    "suffix",
    "anything-but",
    "exists",
    "wildcard",
    "numeric",
    "cidr",
    "=",
    "<",
    "<=",
    ">",
    ">=",
];

pub(super) struct Reader<'p, 'a> {
    pub(super) problems: &'p mut Problems<'a>,
}

impl Reader<'_, '_> {
    pub(super) fn object(
        &mut self,
        view: View<'_>,
        path: &[Box<str>],
        in_or: bool,
        place: &Place<'_>,
    ) -> Conditions {
        let mut conditions = Vec::new();
        if view.kind() != Kind::Object {
            self.problems.add(place, "must be an object of fields");
            return conditions;
        }
        if view.is_empty_container() {
            self.problems.add(place, "must not be empty");
        }
        for member in view.children() {
            let name = member.key();
            let place = place.key(&name);
            if name == "$or" {
                conditions.push(self.or(member, path, &place));
                continue;
            }
            if in_or && OPERATORS.contains(&&*name) {
                self.problems
                    .add(&place, "is an operator; $or must contain objects of fields");
                continue;
            }
            if let Some(reason) = misplaced(path, &name, member.kind()) {
                self.problems.add(&place, reason);
                continue;
            }
            let mut path = path.to_vec();
            path.push(name.as_ref().into());
            match member.kind() {
                Kind::Object => conditions.append(&mut self.object(member, &path, in_or, &place)),
                Kind::Array => conditions.push(self.field(member, path, &place)),
                _ => self
                    .problems
                    .add(&place, "must be a list of values, or an object of fields"),
            }
        }
        conditions
    }

    fn or(&mut self, view: View<'_>, path: &[Box<str>], place: &Place<'_>) -> Condition {
        if view.kind() != Kind::Array || view.children().count() < 2 {
            self.problems
                .add(place, "must be a list of at least two objects");
            return Condition::Or(Vec::new());
        }
        let branches = view.children().enumerate();
        Condition::Or(
            branches
                .map(|(index, branch)| self.object(branch, path, true, &place.index(index)))
                .collect(),
        )
    }

    pub(super) fn field(
        &mut self,
        view: View<'_>,
        path: Vec<Box<str>>,
        place: &Place<'_>,
    ) -> Condition {
        if view.is_empty_container() {
            self.problems.add(place, "must not be empty");
        }
        let (mut absent, mut tests) = (false, Vec::new());
        for (index, value) in view.children().enumerate() {
            let place = place.index(index);
            match value.kind() {
                Kind::Object => match single(value) {
                    Some(operator)
                        if operator.key() == "exists" && operator.as_bool() == Some(false) =>
                    {
                        absent = true
                    }
                    Some(operator) => tests.extend(self.operator(operator, &place)),
                    None => self.problems.add(&place, "must have exactly one operator"),
                },
                Kind::Array => self
                    .problems
                    .add(&place, "must be a value or an operator, not a list"),
                _ => tests.extend(exactly(value)),
            }
        }
        let (path, text) = (Arc::from(path), view.to_json().into());
        let tests = Some(tests.into()).filter(|tests: &Arc<[Test]>| !tests.is_empty());
        let value = tests.map(|tests| Wanted::Any { tests, text });
        let wanted = value.into_iter().chain(absent.then_some(Wanted::Absent));
        let field = |wanted| Field {
            path: Arc::clone(&path),
            wanted,
        };
        Condition::Field(wanted.map(field).collect())
    }

    fn operator(&mut self, view: View<'_>, place: &Place<'_>) -> Option<Test> {
        let name = view.key();
        let place = place.key(&name);
        let read = match &*name {
            "exactly" => text(view).map(|text| Test::Text(text.into())),
            "prefix" => folded_or_text(view).map(|either| either.map_or_else(Test::PrefixFold, Test::Prefix)),
            "suffix" => folded_or_text(view).map(|either| either.map_or_else(Test::SuffixFold, Test::Suffix)),
            "equals-ignore-case" => text(view).map(|text| Test::Equal(Fold::new(&text))),
            "wildcard" => text(view).and_then(|text| wildcard(&text)).map(Test::Wildcard),
            "numeric" => numeric(view).map(Test::Range),
            "cidr" => text(view).and_then(|text| Network::parse(&text)).map(Test::Network),
            "exists" => match view.as_bool() {
                Some(_) => Ok(Test::Exists),
                None => Err("must be true or false".to_owned()),
            },
            "anything-but" => anything_but(view).map(Test::But),
            _ => Err("is not an operator; the operators are anything-but, cidr, equals-ignore-case, exactly, exists, numeric, prefix, suffix and wildcard".to_owned()),
        };
        read.map_err(|reason| self.problems.add(&place, reason))
            .ok()
    }
}

/// The reason why a name can never be in a change.
fn misplaced(path: &[Box<str>], name: &str, kind: Kind) -> Option<String> {
    let path: Vec<&str> = path.iter().map(|step| &**step).collect();
    let list = kind == Kind::Array;
    match path.as_slice() {
        [] => match Root::parse(name) {
            None => {
                let names: Vec<_> = Root::ALL.iter().map(|(name, _)| *name).collect();
                Some(format!(
                    "cannot be matched; the names are {}",
                    names.join(", ")
                ))
            }
            Some(root) if root.is_scalar() && !list => {
                Some("is a single value: must be a list of values".to_owned())
            }
            Some(root) if !root.is_scalar() && list => {
                Some("is an object: name the fields in it".to_owned())
            }
            Some(_) => None,
        },
        ["diff"] if !["added", "updated", "removed"].contains(&name) => {
            Some("is not in a diff; the names are added, updated and removed".to_owned())
        }
        ["diff"] if list => Some("is an object: name the JSON Pointers in it".to_owned()),
        ["diff", _] if !name.starts_with('/') => {
            Some("must be a JSON Pointer such as \"/temp\"".to_owned())
        }
        ["diff", "updated"] if list => Some("is an object with old and new".to_owned()),
        ["diff", "updated", _] if !["old", "new"].contains(&name) => {
            Some("must be old or new".to_owned())
        }
        _ => None,
    }
}

fn single(view: View<'_>) -> Option<View<'_>> {
    let mut members = view.children();
    let first = members.next()?;
    members.next().is_none().then_some(first)
}

fn exactly(view: View<'_>) -> Option<Test> {
    Some(match view.kind() {
        Kind::Null => Test::Null,
        Kind::Bool => Test::Bool(view.as_bool()?),
        Kind::Number => Test::Number(view.raw().into()),
        _ => {
            let text = view.as_str()?;
            match Address::parse(&text) {
                Some(address) => Test::Address(address),
                None => Test::Text(text.into()),
            }
        }
    })
}

fn text(view: View<'_>) -> Result<String, String> {
    view.as_str()
        .map(Into::into)
        .ok_or_else(|| "must be a string".to_owned())
}

fn folded_or_text(view: View<'_>) -> Result<Result<Box<str>, Fold>, String> {
    if view.kind() != Kind::Object {
        return text(view)
            .map(|text| Ok(text.into()))
            .map_err(|_| "must be a string, or an object with equals-ignore-case".to_owned());
    }
    match single(view) {
        Some(inner) if inner.key() == "equals-ignore-case" => {
            text(inner).map(|text| Err(Fold::new(&text)))
        }
        _ => Err("must be a string, or an object with equals-ignore-case".to_owned()),
    }
}

/// Parses a wildcard: `*` is any text, `\*` an asterisk and `\\` a backslash.
pub(crate) fn wildcard(text: &str) -> Result<Glob, String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let literal = match c {
            '*' if characters.peek() == Some(&'*') => {
                return Err("must not have two wildcards in a row".to_owned());
            }
            '*' => {
                parts.push(String::new());
                continue;
            }
            '\\' => match characters.next() {
                Some(escaped @ ('*' | '\\')) => escaped,
                _ => {
                    return Err(
                        "a backslash must be followed by an asterisk or a backslash".to_owned()
                    );
                }
            },
            c => c,
        };
        if let Some(part) = parts.last_mut() {
            part.push(literal);
        }
    }
    Ok(Glob::new(parts))
}

fn numeric(view: View<'_>) -> Result<Range, String> {
    const SHAPE: &str = "must be a comparison and a number, such as [\">\", 0], or a range, such as [\">=\", 0, \"<\", 10]";
    if view.kind() != Kind::Array {
        return Err(SHAPE.to_owned());
    }
    let terms: Vec<_> = view.children().collect();
    let mut ends = Vec::new();
    for pair in terms.chunks(2) {
        let [comparison, number] = pair else {
            return Err(SHAPE.to_owned());
        };
        match (comparison.as_str(), number.as_number()) {
            (Some(comparison), Some(number)) => ends.push((comparison, number)),
            _ => return Err(SHAPE.to_owned()),
        }
    }
    let end = |number: &str, included| {
        Some(End {
            number: number.into(),
            included,
        })
    };
    let ends: Vec<_> = ends
        .iter()
        .map(|(comparison, number)| (&**comparison, *number))
        .collect();
    match ends.as_slice() {
        [("=", number)] => Ok(Range {
            low: end(number, true),
            high: end(number, true),
        }),
        [(low @ (">" | ">="), number)] => Ok(Range {
            low: end(number, *low == ">="),
            high: None,
        }),
        [(high @ ("<" | "<="), number)] => Ok(Range {
            low: None,
            high: end(number, *high == "<="),
        }),
        [(low @ (">" | ">="), bottom), (high @ ("<" | "<="), top)] => {
            if decimal::compare(bottom, top).is_ge() {
                return Err(format!("the range from {bottom} to {top} is empty"));
            }
            Ok(Range {
                low: end(bottom, *low == ">="),
                high: end(top, *high == "<="),
            })
        }
        _ => Err(SHAPE.to_owned()),
    }
}

fn anything_but(view: View<'_>) -> Result<But, String> {
    if view.kind() == Kind::Object {
        let Some(inner) = single(view) else {
            return Err("must have exactly one operator".to_owned());
        };
        let texts = texts(inner)?;
        let filled = |texts: Box<[Box<str>]>| match texts.iter().any(|text| text.is_empty()) {
            true => Err("must not be empty: that would exclude every string".to_owned()),
            false => Ok(texts),
        };
        return match &*inner.key() {
            "prefix" => filled(texts).map(But::Prefixes),
            "suffix" => filled(texts).map(But::Suffixes),
            "equals-ignore-case" => Ok(But::Equal(
                texts.iter().map(|text| Fold::new(text)).collect(),
            )),
            "wildcard" => texts
                .iter()
                .map(|text| wildcard(text))
                .collect::<Result<_, _>>()
                .map(But::Wildcards),
            other => Err(format!(
                "{other:?} cannot be combined with it; use prefix, suffix, equals-ignore-case or wildcard"
            )),
        };
    }
    let numbers = match view.kind() {
        Kind::Number => return Ok(But::Numbers([view.raw().into()].into())),
        Kind::Array => view
            .children()
            .map(|value| value.as_number().map(Into::into))
            .collect::<Option<Box<[Box<str>]>>>(),
        _ => None,
    };
    match numbers {
        Some(numbers) if !numbers.is_empty() => Ok(But::Numbers(numbers)),
        _ => texts(view).map(But::Texts).map_err(|_| {
            "must be a string, a number, or a list of only strings or only numbers".to_owned()
        }),
    }
}

fn texts(view: View<'_>) -> Result<Box<[Box<str>]>, String> {
    let texts = match view.kind() {
        Kind::Array => view
            .children()
            .map(|value| value.as_str().map(Into::into))
            .collect::<Option<Box<[Box<str>]>>>(),
        _ => view.as_str().map(|text| [text.into()].into()),
    };
    texts
        .filter(|texts| !texts.is_empty())
        .ok_or_else(|| "must be a string or a list of strings".to_owned())
}
