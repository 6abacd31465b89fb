//! `/login`: exchanges the token of a printed URL for a session.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::Method;
use axum::response::Response;
use serde::Deserialize;

use crate::security::start_session;
use crate::state::Console;
use crate::view::logged_out;

#[derive(Deserialize)]
pub(super) struct Login {
    #[serde(default)]
    token: String,
}

pub(super) async fn get(
    State(console): State<Arc<Console>>,
    method: Method,
    Query(login): Query<Login>,
) -> Response {
    // A HEAD request of a link preview must not use the token up.
    let id = (method == Method::GET).then(|| console.logins.log_in(&login.token, console.now()));
    match id.flatten() {
        Some(id) => start_session(&console, &id),
        None => logged_out(),
    }
}
