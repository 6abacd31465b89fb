//! Stylesheet and script, served from memory.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

pub(crate) const PREFIX: &str = "/assets/";

/// Changes with every release, so that browsers may keep what they have read.
pub(crate) const CSS: &str = concat!("/assets/console.css?v=", env!("CARGO_PKG_VERSION"));
pub(crate) const SCRIPT: &str = concat!("/assets/console.js?v=", env!("CARGO_PKG_VERSION"));

const FILES: [(&str, &str, &str); 3] = [
    (
        "console.css",
        "text/css; charset=utf-8",
        include_str!("../assets/console.css"),
    ),
    (
        "console.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/console.js"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><circle fill="#14161a" cx="10" cy="10" r="10"/><circle fill="none" stroke="#e9a820" stroke-width="2" cx="10" cy="10" r="6.5"/></svg>"##,
    ),
];

pub(crate) async fn get(Path(name): Path<String>) -> Response {
    let Some((_, kind, text)) = FILES.iter().find(|(file, _, _)| *file == name) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    // Checked again at every page: the files are small, and a newer version of the command serves others.
    let headers = [(CONTENT_TYPE, *kind), (CACHE_CONTROL, "no-cache")];
    (headers, *text).into_response()
}
