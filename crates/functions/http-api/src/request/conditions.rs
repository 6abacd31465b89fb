//! `If-Match` and `If-None-Match`: a version as an entity tag.

use axum::extract::FromRequestParts;
use axum::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};

use crate::problem::{Code, Problem};

/// What a condition names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Match {
    /// Whatever is there.
    Any,
    /// One of these tags, without their quotes. A weak tag matches no version, as RFC 9110 says of
    /// `If-Match`, and is left out.
    Tags(Vec<String>),
}

/// The conditions of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) if_match: Option<Match>,
    pub(crate) if_none_match: Option<Match>,
}

impl<S: Send + Sync> FromRequestParts<S> for Conditions {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Conditions {
            if_match: read(&parts.headers, &IF_MATCH, false)?,
            if_none_match: read(&parts.headers, &IF_NONE_MATCH, true)?,
        })
    }
}

impl Conditions {
    /// Whether the caller has what it asks for already.
    pub(crate) fn has(&self, tag: &str) -> bool {
        self.if_none_match
            .as_ref()
            .is_some_and(|none| matches(none, tag))
    }

    /// For writes that make no use of it.
    pub(crate) fn no_if_none_match(&self) -> Result<(), Problem> {
        match self.if_none_match {
            None => Ok(()),
            Some(_) => Err(Problem::new(
                Code::InvalidHeader,
                "this route does not take If-None-Match",
            )),
        }
    }
}

impl Conditions {
    /// The version that must be stored, of what has one number for all of it. Where several are named,
    /// `stored` tells which it is; that something is there is for the write to find.
    pub(crate) async fn version(
        &self,
        stored: impl AsyncFnOnce() -> Result<u64, Problem>,
    ) -> Result<Option<u64>, Problem> {
        self.no_if_none_match()?;
        match &self.if_match {
            None | Some(Match::Any) => Ok(None),
            Some(Match::Tags(tags)) => {
                let mut versions = tags.iter().filter_map(|tag| number(tag));
                match (versions.next(), versions.next()) {
                    (None, _) => Err(other_version()),
                    (only, None) => Ok(only),
                    (first, second) => {
                        let stored = stored().await?;
                        let mut named = first.into_iter().chain(second).chain(versions);
                        let named = named.any(|version| version == stored);
                        named.then_some(Some(stored)).ok_or_else(other_version)
                    }
                }
            }
        }
    }
}

/// The version a tag stands for; what is not there has none.
pub(crate) fn number(tag: &str) -> Option<u64> {
    let version: u64 = tag.parse().ok().filter(|version| *version > 0)?;
    (version.to_string() == tag).then_some(version)
}

/// What `If-Match` names is not what is there.
pub(crate) fn other_version() -> Problem {
    Problem::new(
        Code::PreconditionFailed,
        "what is stored is not what If-Match names",
    )
}

/// Whether a tag is among those named.
pub(crate) fn matches(named: &Match, tag: &str) -> bool {
    match named {
        Match::Any => true,
        Match::Tags(tags) => tags.iter().any(|named| named == tag),
    }
}

fn read(headers: &HeaderMap, name: &HeaderName, weak: bool) -> Result<Option<Match>, Problem> {
    let mut tags = Vec::new();
    let mut any = false;
    let mut there = false;
    for value in headers.get_all(name) {
        there = true;
        match value.to_str().map(str::trim) {
            Ok("*") => any = true,
            Ok(text) => parse(text, weak, &mut tags).ok_or_else(|| unreadable(name, value))?,
            Err(_) => return Err(unreadable(name, value)),
        }
    }
    Ok(match (there, any) {
        (false, _) => None,
        (true, true) if tags.is_empty() => Some(Match::Any),
        (true, true) => return Err(unreadable(name, &HeaderValue::from_static("*"))),
        (true, false) => Some(Match::Tags(tags)),
    })
}

fn unreadable(name: &HeaderName, value: &HeaderValue) -> Problem {
    let detail = format!("{name} is * or a list of quoted versions such as \"3\", not {value:?}");
    Problem::new(Code::InvalidHeader, detail)
}

/// A list of tags; `None` if it is none.
fn parse(mut text: &str, weak: bool, tags: &mut Vec<String>) -> Option<()> {
    loop {
        text = text.trim_start();
        let is_weak = text.starts_with("W/");
        text = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"')?;
        let (tag, rest) = text.split_once('"')?;
        if tag.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return None;
        }
        if weak || !is_weak {
            tags.push(tag.to_owned());
        }
        text = rest.trim_start();
        match text.strip_prefix(',') {
            Some(rest) => text = rest,
            None => return text.is_empty().then_some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Match> {
        let mut headers = HeaderMap::new();
        headers.insert(IF_MATCH, HeaderValue::from_str(text).unwrap());
        read(&headers, &IF_MATCH, false).ok().flatten()
    }

    fn tags(tags: &[&str]) -> Option<Match> {
        Some(Match::Tags(
            tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ))
    }

    #[test]
    fn tags_are_read_as_rfc_9110_writes_them() {
        assert_eq!(of("*"), Some(Match::Any));
        assert_eq!(of("\"3\""), tags(&["3"]));
        assert_eq!(of(" \"3\" ,\"r1.d2\",\"\""), tags(&["3", "r1.d2", ""]));
        assert_eq!(of("W/\"3\", \"4\""), tags(&["4"]));
        for bad in [
            "",
            "3",
            "\"3",
            "\"3\" \"4\"",
            "\"3\",",
            "*, \"3\"",
            "\"a b\"",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
        assert_eq!(read(&HeaderMap::new(), &IF_MATCH, false), Ok(None));
    }
}
