//! The request as the caller sent it, out of what API Gateway makes of it.
//!
//! An HTTP API hands over the path percent-decoded, and `lambda_http` takes that for an encoded one: at a
//! `#` it would end, and another shadow than the caller named would be read or deleted. Here the path is
//! put together again from the gateway's own text, with everything escaped that cannot stand in a path.
//!
//! What cannot be told any more is whether a `/`, a `?` or a `%` was part of an id. Through API Gateway,
//! ids that hold one of these are percent-encoded twice; doing so is right for all ids.

use axum::http::Uri;
use axum::http::uri::PathAndQuery;
use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

/// What cannot stand in a path as it is. A `%` is looked at on its own.
const NOT_IN_PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Puts the path right.
pub fn as_sent(mut request: Request) -> Request {
    let path = request.raw_http_path();
    let path = without_stage(path, request.extensions().get());
    let mut text = escaped(path);
    if let Some(query) = request.uri().query() {
        text.push('?');
        text.push_str(query);
    }
    // What was escaped is a path, and the query was read from a URI.
    if let Ok(path) = text.parse::<PathAndQuery>() {
        *request.uri_mut() = Uri::from(path);
    }
    request
}

/// The path below the stage, which the gateway leaves in front unless it is the default one.
fn without_stage<'a>(path: &'a str, context: Option<&RequestContext>) -> &'a str {
    let stage = match context {
        Some(RequestContext::ApiGatewayV2(context)) => context.stage.as_deref(),
        _ => None,
    };
    stage
        .filter(|stage| !stage.is_empty() && *stage != "$default")
        .and_then(|stage| path.strip_prefix('/')?.strip_prefix(stage))
        .filter(|rest| rest.starts_with('/'))
        .unwrap_or(path)
}

fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        text.push('/');
    }
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        text.extend(utf8_percent_encode(before, NOT_IN_PATH));
        let digits = after.as_bytes().get(..2);
        let sequence = digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        text.push_str(if sequence { "%" } else { "%25" });
        rest = after;
    }
    text.extend(utf8_percent_encode(rest, NOT_IN_PATH));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_path_is_encoded_again_and_an_encoded_one_stays() {
        for (given, path) in [
            (
                "/v1/shadows/My House#Basement",
                "/v1/shadows/My%20House%23Basement",
            ),
            ("/v1/shadows/Poznań", "/v1/shadows/Pozna%C5%84"),
            ("/v1/shadows/a%2Fb%3Fc%25d", "/v1/shadows/a%2Fb%3Fc%25d"),
            ("/v1/shadows/100%", "/v1/shadows/100%25"),
            ("/v1/shadows/100%zz", "/v1/shadows/100%25zz"),
            ("/v1/shadows/..", "/v1/shadows/.."),
            (
                "/v1/shadows/a:b@c!$&'()*+,;=-._~",
                "/v1/shadows/a:b@c!$&'()*+,;=-._~",
            ),
            ("", "/"),
        ] {
            assert_eq!(escaped(given), path, "{given}");
        }
    }
}
