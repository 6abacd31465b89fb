//! `If-Match` and `If-None-Match`, with versions as entity tags.

use antumbra_service::store::Version;
use axum::extract::FromRequestParts;
use axum::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};

use crate::problem::{Code, Problem};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tags {
    /// `*`: any existing version.
    Any,
    /// Tags without their quotes. `If-Match` ignores weak tags, as RFC 9110 requires.
    List(Vec<String>),
}

impl Tags {
    pub(crate) fn contain(&self, tag: &str) -> bool {
        match self {
            Tags::Any => true,
            Tags::List(tags) => tags.iter().any(|listed| listed == tag),
        }
    }
}

/// Both conditions, for writes that take `If-None-Match: *` to create only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conditions {
    pub(crate) if_match: Option<Tags>,
    pub(crate) if_none_match: Option<Tags>,
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

/// `If-Match`, for writes that do not take `If-None-Match`.
pub(crate) struct IfMatch(pub(crate) Option<Tags>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let conditions = Conditions::from_request_parts(parts, state).await?;
        match conditions.if_none_match {
            None => Ok(IfMatch(conditions.if_match)),
            Some(_) => Err(Problem::new(
                Code::InvalidHeader,
                "this route does not support If-None-Match",
            )),
        }
    }
}

impl IfMatch {
    pub(crate) fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the version that the store must hold. If the header lists several, `stored` reads which of
    /// them it is. With `*` the write itself finds out whether the resource exists.
    pub(crate) async fn version(
        &self,
        stored: impl AsyncFnOnce() -> Result<Version, Problem>,
    ) -> Result<Option<Version>, Problem> {
        let Some(Tags::List(tags)) = &self.0 else {
            return Ok(None);
        };
        let versions: Vec<Version> = tags.iter().filter_map(|tag| version(tag)).collect();
        match versions[..] {
            [] => Err(version_mismatch()),
            [version] => Ok(Some(version)),
            _ => {
                let stored = stored().await?;
                let listed = versions.contains(&stored);
                listed.then_some(Some(stored)).ok_or_else(version_mismatch)
            }
        }
    }

    /// Turns the error of a conditional write into a problem: a version conflict is a failed precondition.
    pub(crate) fn problem(&self, error: impl Into<Problem>) -> Problem {
        let problem = error.into();
        match problem.code() {
            Code::Conflict if self.0.is_some() => {
                Problem::new(Code::PreconditionFailed, problem.detail())
            }
            _ => problem,
        }
    }
}

/// Parses a tag that is a version number.
pub(crate) fn version(tag: &str) -> Option<Version> {
    let version: i64 = tag.parse().ok().filter(|version| *version > 0)?;
    (version.to_string() == tag).then_some(Version(version))
}

pub(crate) fn version_mismatch() -> Problem {
    Problem::new(
        Code::PreconditionFailed,
        "the stored version is not one that If-Match lists; read it again for its current entity tag",
    )
}

/// Checks the conditions of a read. Returns whether the caller has the representation with this tag already.
pub(crate) fn check_read(headers: &HeaderMap, tag: &HeaderValue) -> Result<bool, Problem> {
    let tag = tag.to_str().unwrap_or_default().trim_matches('"');
    let lists = |tags: Tags| tags.contain(tag);
    if read(headers, &IF_MATCH, false)?.is_some_and(|tags| !lists(tags)) {
        return Err(version_mismatch());
    }
    Ok(read(headers, &IF_NONE_MATCH, true)?.is_some_and(lists))
}

fn read(headers: &HeaderMap, name: &HeaderName, weak: bool) -> Result<Option<Tags>, Problem> {
    let mut tags = Vec::new();
    let mut any = false;
    let mut present = false;
    for value in headers.get_all(name) {
        present = true;
        match value.to_str().map(str::trim) {
            Ok("*") => any = true,
            Ok(text) => parse(text, weak, &mut tags).ok_or_else(|| invalid(name, value))?,
            Err(_) => return Err(invalid(name, value)),
        }
    }
    Ok(match (present, any) {
        (false, _) => None,
        (true, true) if tags.is_empty() => Some(Tags::Any),
        (true, true) => return Err(invalid(name, &HeaderValue::from_static("*"))),
        (true, false) => Some(Tags::List(tags)),
    })
}

fn invalid(name: &HeaderName, value: &HeaderValue) -> Problem {
    let value = String::from_utf8_lossy(value.as_bytes());
    let detail = format!(
        "{name} takes * or entity tags in double quotes, as the header etag shows them, such as \"3\"; received: {value}"
    );
    Problem::new(Code::InvalidHeader, detail)
}

/// Parses a list of tags; returns `None` if it is malformed.
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
