//! The router: every route, and what stands before all of them.

use std::any::Any;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::Api;
use crate::auth::{AuthMode, authenticate};
use crate::idempotency::once;
use crate::problem::{Problem, method_not_allowed, no_such_route};
use crate::request::check_path;
use crate::{
    clients, deliveries, health, links, locations, messages, openapi, readings, sensors, shadows,
};

/// The API as a service of HTTP requests.
pub fn router(api: Api, door: AuthMode) -> Router {
    served()
        // Of routes alone: what nobody serves is no request that a key could belong to.
        .route_layer(from_fn_with_state(api.clone(), once))
        .fallback(no_such_route)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn(check_path))
        .layer(from_fn_with_state((door, api.clone()), authenticate))
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(api)
}

/// The API's description.
pub fn document() -> OpenApi {
    openapi::complete(described().into_openapi())
}

/// Every route once, for both: as it is served, and as it is described. Gathering the description is most of
/// what making a router costs, and a function that starts has no use for it.
macro_rules! routes_served_and_described {
    ($($path:literal: $($method:ident $module:ident::$handler:ident),+;)+) => {
        fn served() -> Router<Api> {
            Router::new()$(.route($path, MethodRouter::new()$(.$method($module::$handler))+))+
        }

        fn described() -> OpenApiRouter<Api> {
            OpenApiRouter::new()$(.routes(routes!($($module::$handler),+)))+
        }
    };
}

routes_served_and_described! {
    "/health": get health::get;
    "/v1/shadows/{id}": get shadows::get_main, delete shadows::delete_main;
    "/v1/shadows/{id}/{name}": get shadows::get_named, delete shadows::delete_named;
    "/v1/shadows/{id}/reported": patch shadows::report_main;
    "/v1/shadows/{id}/{name}/reported": patch shadows::report_named;
    "/v1/shadows/{id}/desired": patch shadows::desire_main;
    "/v1/shadows/{id}/{name}/desired": patch shadows::desire_named;
    "/v1/shadows/{id}/delta": get shadows::delta_main;
    "/v1/shadows/{id}/{name}/delta": get shadows::delta_named;
    "/v1/messages/{uuid}": get messages::list;
    "/v1/messages/{uuid}/{messageId}": get messages::get, delete messages::delete;
    "/v1/sensors": get sensors::list, post sensors::register;
    "/v1/sensors/{id}": get sensors::get, patch sensors::update, delete sensors::unregister;
    "/v1/sensors/{id}/move": post sensors::move_to;
    "/v1/sensors/{id}/state": get sensors::state;
    "/v1/sensors/{id}/readings": get readings::list, post readings::save;
    "/v1/sensors/{id}/history": get deliveries::of_sensor;
    "/v1/sensors/{id}/clients": get links::of_sensor;
    "/v1/locations/{city}/sensors": get locations::of_city;
    "/v1/locations/{city}/{building}/sensors": get locations::of_building;
    "/v1/locations/{city}/{building}/{floor}/sensors": get locations::of_floor;
    "/v1/locations/{city}/{building}/{floor}/{room}/sensors": get locations::of_room;
    "/v1/clients": get clients::list, post clients::create;
    "/v1/clients/{id}": get clients::get, patch clients::update, delete clients::delete;
    "/v1/clients/{id}/rotate-secret": post clients::rotate_secret;
    "/v1/clients/{id}/test": post deliveries::test;
    "/v1/clients/{id}/enable": post deliveries::enable;
    "/v1/clients/{id}/deliveries": get deliveries::of_client;
    "/v1/deliveries/{id}/redeliver": post deliveries::redeliver;
    "/v1/clients/{id}/redeliver": post deliveries::redeliver_since;
    "/v1/clients/{id}/sensors/{sensor}": put links::link, delete links::unlink;
    "/v1/clients/{id}/sensors": get links::of_client;
}

fn panicked(reason: Box<dyn Any + Send>) -> Response {
    let text = reason.downcast_ref::<&str>().copied();
    let text = text.or(reason.downcast_ref::<String>().map(String::as_str));
    Problem::internal(text.unwrap_or("a panic without a text")).into_response()
}
