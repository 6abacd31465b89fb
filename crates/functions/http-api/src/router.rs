//! The router: every route, and what stands before all of them.

use std::any::Any;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;
use crate::door::{Door, guard};
use crate::idempotency::once;
use crate::problem::{Problem, method_not_allowed, no_such_route};
use crate::request::check_path;
use crate::{
    clients, deliveries, health, links, locations, messages, openapi, readings, sensors, shadows,
};

/// The API as a service of HTTP requests.
pub fn router(api: Api, door: Door) -> Router {
    let (router, _) = all_routes().split_for_parts();
    router
        // Of routes alone: what nobody serves is no request that a key could belong to.
        .route_layer(from_fn_with_state(api.clone(), once))
        .fallback(no_such_route)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn(check_path))
        .layer(from_fn_with_state((door, api.clone()), guard))
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(api)
}

/// The API's description.
pub fn document() -> OpenApi {
    openapi::complete(all_routes().into_openapi())
}

fn all_routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(health::get))
        .routes(routes!(shadows::get_main, shadows::delete_main))
        .routes(routes!(shadows::get_named, shadows::delete_named))
        .routes(routes!(shadows::report_main))
        .routes(routes!(shadows::report_named))
        .routes(routes!(shadows::desire_main))
        .routes(routes!(shadows::desire_named))
        .routes(routes!(shadows::delta_main))
        .routes(routes!(shadows::delta_named))
        .routes(routes!(messages::list))
        .routes(routes!(messages::get, messages::delete))
        .routes(routes!(sensors::list, sensors::register))
        .routes(routes!(sensors::get, sensors::update, sensors::unregister))
        .routes(routes!(sensors::move_to))
        .routes(routes!(sensors::state))
        .routes(routes!(readings::list, readings::save))
        .routes(routes!(deliveries::of_sensor))
        .routes(routes!(links::of_sensor))
        .routes(routes!(locations::of_city))
        .routes(routes!(locations::of_building))
        .routes(routes!(locations::of_floor))
        .routes(routes!(locations::of_room))
        .routes(routes!(clients::list, clients::create))
        .routes(routes!(clients::get, clients::update, clients::delete))
        .routes(routes!(clients::rotate_secret))
        .routes(routes!(deliveries::test))
        .routes(routes!(deliveries::enable))
        .routes(routes!(deliveries::of_client))
        .routes(routes!(deliveries::redeliver))
        .routes(routes!(deliveries::redeliver_since))
        .routes(routes!(links::link, links::unlink))
        .routes(routes!(links::of_client))
}

fn panicked(reason: Box<dyn Any + Send>) -> Response {
    let text = reason.downcast_ref::<&str>().copied();
    let text = text.or(reason.downcast_ref::<String>().map(String::as_str));
    Problem::internal(text.unwrap_or("a panic without a text")).into_response()
}
