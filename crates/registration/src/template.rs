//! Texts with placeholders: `${env:NAME}`, resolved when registrations load, and in topics `${id}`,
//! `${name}`, `${state}`, `${operation}`, `${shadow}` and `${key:ATTRIBUTE}`, filled in for each change.

use crate::change::Change;
use crate::limits::{TOPIC_BYTES, TOPIC_SLASHES};
use crate::rules::deployed_rules;

/// The name of the default shadow.
const DEFAULT_NAME: &str = "main";
/// Slashes that `${shadow}` can add: `/name/`.
const SHADOW_SLASHES: usize = 2;

/// Looks up an environment variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(Box<str>),
    Id,
    Name,
    State,
    Operation,
    /// The shadow in topics: its id, and `/name/` and its name unless it is the default shadow.
    Shadow,
    /// An attribute of the item's key.
    Key(Box<str>),
}

/// Any text within one level.
const ANY_TEXT: char = '\0';

/// Returns `true` if a level with [`ANY_TEXT`] in it can be this word.
fn can_be(level: &str, word: &str) -> bool {
    match (level.split_once(ANY_TEXT), level.rsplit_once(ANY_TEXT)) {
        (Some((before, _)), Some((_, after))) => {
            word.len() > before.len() + after.len()
                && word.starts_with(before)
                && word.ends_with(after)
        }
        _ => level == word,
    }
}

type Split<'t> = (Vec<(&'t str, &'t str)>, &'t str);

/// Splits at `${...}`: pairs of the text before a placeholder and its inside, and the text after the last one.
fn split(text: &str) -> Result<Split<'_>, String> {
    let (mut pairs, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("${") {
        let inside = &rest[at + 2..];
        let end = inside
            .find('}')
            .ok_or_else(|| format!("the placeholder {:?} has no end", &rest[at..]))?;
        pairs.push((&rest[..at], &inside[..end]));
        rest = &inside[end + 1..];
    }
    Ok((pairs, rest))
}

fn variable(name: &str, env: Environment<'_>) -> Result<String, String> {
    match env(name) {
        Some(value) if !value.is_empty() => Ok(value),
        Some(_) => Err(format!("the environment variable {name} is empty")),
        None => Err(format!("the environment variable {name} is not set")),
    }
}

/// Fills in the placeholders of a text that may only have those of the environment.
pub(crate) fn resolve(text: &str, env: Environment<'_>) -> Result<String, String> {
    let (pairs, rest) = split(text)?;
    let mut out = String::with_capacity(text.len());
    for (before, inside) in pairs {
        out.push_str(before);
        match inside.strip_prefix("env:") {
            Some(name) => out.push_str(&variable(name, env)?),
            None => {
                return Err(format!(
                    "there is no placeholder ${{{inside}}} here; there is ${{env:NAME}}"
                ));
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// An MQTT topic with placeholders that are filled in for each change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicTemplate {
    pieces: Box<[Piece]>,
}

/// The reason why a change has no topic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    #[error("the topic needs the {placeholder} of a shadow, and the item is not a shadow")]
    NotAShadow { placeholder: &'static str },
    #[error("the topic needs the key attribute {attribute}, which the item does not have")]
    NoKeyAttribute { attribute: String },
    #[error("the key attribute {attribute} cannot be a level of a topic")]
    NotALevel { attribute: String },
    #[error("the topic has {bytes} bytes, the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
}

impl TopicTemplate {
    pub(crate) fn parse(text: &str, env: Environment<'_>) -> Result<TopicTemplate, String> {
        let (pairs, rest) = split(text)?;
        let (mut pieces, mut text) = (Vec::new(), String::new());
        let mut literal = String::new();
        let end_literal = |pieces: &mut Vec<Piece>, literal: &mut String| {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(literal).into()));
            }
        };
        for (before, inside) in pairs {
            literal.push_str(before);
            text.push_str(before);
            let piece = match (inside, inside.split_once(':')) {
                ("id", _) => Piece::Id,
                ("name", _) => Piece::Name,
                ("state", _) => Piece::State,
                ("operation", _) => Piece::Operation,
                ("shadow", _) => Piece::Shadow,
                (_, Some(("env", name))) => {
                    let value = variable(name, env)?;
                    literal.push_str(&value);
                    text.push_str(&value);
                    continue;
                }
                (_, Some(("key", name))) if !name.is_empty() => Piece::Key(name.into()),
                _ => {
                    return Err(format!(
                        "there is no placeholder ${{{inside}}}; there are ${{id}}, ${{name}}, ${{state}}, ${{operation}}, ${{shadow}}, ${{key:ATTRIBUTE}} and ${{env:NAME}}"
                    ));
                }
            };
            text.push_str(&format!("${{{inside}}}"));
            end_literal(&mut pieces, &mut literal);
            pieces.push(piece);
        }
        literal.push_str(rest);
        text.push_str(rest);
        end_literal(&mut pieces, &mut literal);
        let template = TopicTemplate {
            pieces: pieces.into(),
        };
        template.check(&text)?;
        Ok(template)
    }

    /// Checks the text of the registration, with environment variables filled in.
    fn check(&self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Err("must not be empty".to_owned());
        }
        let (mut bytes, mut shadow_slashes) = (0, 0);
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => {
                    let invalid = |c: &char| matches!(c, '+' | '#') || c.is_control();
                    if let Some(c) = literal.chars().find(invalid) {
                        return Err(format!("a topic must not contain {c:?}"));
                    }
                    bytes += literal.len();
                }
                Piece::Shadow => shadow_slashes += SHADOW_SLASHES,
                _ => {}
            }
        }
        if text.starts_with('$') && matches!(self.pieces.first(), Some(Piece::Literal(_))) {
            return Err("topics that start with $ are reserved".to_owned());
        }
        if text.split('/').any(str::is_empty) {
            return Err("has an empty level".to_owned());
        }
        // A registration would send requests, and their effects could match it again.
        let shapes = ["", "/name/"].map(|named| self.shape(named));
        let is_request = |filter| shapes.iter().any(|shape| can_match(shape, filter));
        if let Some(rule) = deployed_rules().find(|rule| is_request(rule.filter)) {
            let filter = rule.filter;
            return Err(format!(
                "can be a topic of requests ({filter}), which would cause further changes without end"
            ));
        }
        let slashes = text.matches('/').count() + shadow_slashes;
        if slashes > TOPIC_SLASHES {
            return Err(format!(
                "has {slashes} slashes, the limit is {TOPIC_SLASHES}"
            ));
        }
        if bytes > TOPIC_BYTES {
            return Err(format!("has {bytes} bytes, the limit is {TOPIC_BYTES}"));
        }
        Ok(())
    }

    /// The topic with [`ANY_TEXT`] for each text that a change fills in. `named` precedes the name of a shadow; without it
    /// the shadow has none.
    fn shape(&self, named: &str) -> String {
        let mut shape = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => shape.push_str(text),
                Piece::Id | Piece::Name | Piece::Key(_) => shape.push(ANY_TEXT),
                // Their words are not levels of requests.
                Piece::State | Piece::Operation => shape.push('-'),
                Piece::Shadow => {
                    shape.push(ANY_TEXT);
                    if !named.is_empty() {
                        shape.push_str(named);
                        shape.push(ANY_TEXT);
                    }
                }
            }
        }
        shape
    }

    /// Fills in the topic for a change. A value stays within its level: `/`, `+`, `#`, `%` and control characters become
    /// `%` and two hexadecimal digits per byte. A key attribute is not escaped; it must be a valid level.
    pub fn render(&self, change: &Change<'_>) -> Result<String, TopicError> {
        let mut topic = String::new();
        let needs = |placeholder| change.shadow.ok_or(TopicError::NotAShadow { placeholder });
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => topic.push_str(text),
                Piece::Operation => topic.push_str(change.operation.as_str()),
                Piece::Id => push_escaped(&mut topic, needs("id")?.id),
                Piece::Name => push_escaped(&mut topic, needs("name")?.name),
                Piece::State => topic.push_str(needs("state")?.state.as_str()),
                Piece::Key(name) => topic.push_str(level(change, name)?),
                Piece::Shadow => {
                    let shadow = needs("place")?;
                    push_escaped(&mut topic, shadow.id);
                    if shadow.name != DEFAULT_NAME {
                        topic.push_str("/name/");
                        push_escaped(&mut topic, shadow.name);
                    }
                }
            }
        }
        match topic.len() {
            bytes if bytes > TOPIC_BYTES => Err(TopicError::TooLong {
                bytes,
                limit: TOPIC_BYTES,
            }),
            _ => Ok(topic),
        }
    }
}

/// Returns `true` if a topic of this shape can match the filter.
fn can_match(shape: &str, filter: &str) -> bool {
    let mut levels = shape.split('/');
    for word in filter.split('/') {
        match (word, levels.next()) {
            ("#", Some(_)) => return true,
            (_, None) => return false,
            ("+", Some(_)) => {}
            (word, Some(level)) if can_be(level, word) => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// The value of a key attribute, if it is a valid level of a topic.
fn level<'a>(change: &Change<'a>, name: &str) -> Result<&'a str, TopicError> {
    let attribute = || name.to_owned();
    let value = change.key_attributes.get(name);
    let value = value.ok_or_else(|| TopicError::NoKeyAttribute {
        attribute: attribute(),
    })?;
    let invalid = |c: char| matches!(c, '/' | '+' | '#') || c.is_control();
    if value.is_empty() || value.contains(invalid) {
        return Err(TopicError::NotALevel {
            attribute: attribute(),
        });
    }
    Ok(value)
}

fn push_escaped(topic: &mut String, value: &str) {
    for c in value.chars() {
        if matches!(c, '/' | '+' | '#' | '%') || c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                topic.push_str(&format!("%{byte:02X}"));
            }
        } else {
            topic.push(c);
        }
    }
}
