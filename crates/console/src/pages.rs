//! The pages, and the router of all of them.
//!
//! A page is one module: a model, a function from it to HTML, handlers, and `routes`. A new page is a module here, a line in
//! [`console`], and an entry of the navigation in `view.rs`.

pub(crate) mod changes;
pub(crate) mod deliveries;
pub(crate) mod device;
pub(crate) mod fleet;
pub(crate) mod inbox;
mod login;
pub(crate) mod queues;
pub(crate) mod registrations;
pub(crate) mod sensors;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use tower_http::catch_panic::CatchPanicLayer;

use crate::compress::compress;
use crate::security::{guard, headers};
use crate::state::Console;
use crate::{assets, live, view};

pub(crate) const LOGIN: &str = "/login";

/// Paths whose forms are sent with POST because they are long, and that change nothing.
const READ_BY_POST: [&str; 1] = ["/registrations/try"];

pub(crate) fn is_read_by_post(path: &str) -> bool {
    READ_BY_POST.contains(&path)
}

/// The console. Paths of no page are left to the caller's fallback.
pub fn console(console: Arc<Console>) -> Router {
    Router::new()
        .route(LOGIN, get(login::get))
        .route("/assets/{name}", get(assets::get))
        .merge(fleet::routes())
        .merge(device::routes())
        .merge(registrations::routes())
        .merge(sensors::routes())
        .merge(deliveries::routes())
        .merge(inbox::routes())
        .merge(queues::routes())
        .merge(changes::routes())
        .route(live::PATH, get(live::events))
        .layer(CatchPanicLayer::custom(view::panicked))
        .layer(from_fn_with_state(Arc::clone(&console), guard))
        .layer(from_fn(compress))
        .layer(from_fn(headers))
        .with_state(console)
}
