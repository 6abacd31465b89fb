//! The layers in front of all pages.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt as _, Limited};

use super::host::loopback_host;
use super::logins::SessionState;
use crate::live;
use crate::pages::{LOGIN, is_read_by_post};
use crate::state::Console;
use crate::view::{logged_out, refused};

/// Largest form: more than a document that can be stored, encoded.
const FORM_BYTES: usize = 2 * 1024 * 1024;

/// Scripts and styles come from this server, and nothing else is loaded from anywhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The session that a request belongs to.
pub(crate) type Session = Arc<SessionState>;

impl Console {
    /// Name of the cookie. Cookies are shared by all ports of a host, so it holds the port.
    pub(crate) fn cookie_name(&self) -> String {
        format!("antumbra-console-{}", self.port)
    }
}

/// Adds the headers that every response of the console has.
pub(crate) async fn headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    // `no-referrer` would make browsers send `Origin: null` with forms.
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let stored = HeaderValue::from_static("no-store");
    headers.entry(CACHE_CONTROL).or_insert(stored);
    response
}

/// Lets requests of this machine's user through, with their session.
pub(crate) async fn guard(
    State(console): State<Arc<Console>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(host) = loopback_host(request.headers()) else {
        return refused(
            StatusCode::FORBIDDEN,
            "The console answers to loopback names only, such as 127.0.0.1.",
        );
    };
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path();
    if (!is_read || path == live::PATH) && !is_same_origin(request.headers(), host) {
        return refused(
            StatusCode::FORBIDDEN,
            "The request does not come from a page of this console.",
        );
    }
    if path == LOGIN || path.starts_with(crate::assets::PREFIX) {
        return next.run(request).await;
    }
    let session = session_cookie(request.headers(), &console.cookie_name())
        .and_then(|id| console.logins.session(id));
    let Some(session) = session else {
        return logged_out();
    };
    if !is_read {
        request = match checked_form(&console, &session, request).await {
            Ok(request) => request,
            Err(refusal) => return refusal,
        };
    }
    request.extensions_mut().insert(session);
    next.run(request).await
}

/// Returns whether a browser says that a page of this server sends the request.
fn is_same_origin(headers: &HeaderMap, host: &str) -> bool {
    let site = headers.get("sec-fetch-site");
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = origins.next();
    let own = format!("http://{host}");
    let is_own = |origin: &HeaderValue| origin.as_bytes() == own.as_bytes();
    match (site, origin) {
        (None, None) => false,
        (site, origin) => {
            site.is_none_or(|site| site == "same-origin")
                && origin.is_none_or(is_own)
                && origins.next().is_none()
        }
    }
}

fn session_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter();
    let cookies = lines.filter_map(|line| line.to_str().ok());
    let mut cookies = cookies.flat_map(|line| line.split(';'));
    cookies.find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Reads the form of a write and compares its token. Every write passes here, whatever its handler does.
async fn checked_form(
    console: &Console,
    session: &SessionState,
    request: Request,
) -> Result<Request, Response> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, FORM_BYTES).collect().await;
    let body = match body {
        Ok(body) => body.to_bytes(),
        Err(_) => {
            return Err(refused(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The form is larger than 2 MB.",
            ));
        }
    };
    let token = form_urlencoded::parse(&body).find(|(name, _)| name == "csrf");
    if !token.is_some_and(|(_, token)| session.is_csrf(&token)) {
        return Err(refused(
            StatusCode::FORBIDDEN,
            "The form has no valid token. Go back, reload the page and send it again.",
        ));
    }
    if !console.write && !is_read_by_post(head.uri.path()) {
        return Err(refused(
            StatusCode::FORBIDDEN,
            "The console is read-only; start it with --write to change anything.",
        ));
    }
    Ok(Request::from_parts(head, Body::from(body)))
}

/// Sets the cookie of a session and opens the first page.
pub(crate) fn start_session(console: &Console, id: &super::SessionId) -> Response {
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict",
        console.cookie_name(),
        id.0
    );
    let headers = [("set-cookie", cookie), ("location", "/".to_owned())];
    (StatusCode::SEE_OTHER, headers).into_response()
}
