//! The table of all routes, and the router made from it.
//!
//! A line of the table is all that a route needs beside its handler: the router serves it, the layer in front of it
//! checks the caller's grants, and the OpenAPI document takes parameters, bodies and responses from the handler's
//! signature. Columns: method, path, handler, grants that the route requires (resource, verb, place of the ids), operation
//! id, error statuses that the signature does not show, summary.

pub(crate) mod changes;
mod clients;
mod deliveries;
mod description;
pub(crate) mod health;
mod history;
mod messages;
mod queues;
mod registrations;
mod sensors;
mod shadows;

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;

use antumbra_service::access::{Resource, Verb};
use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;

use crate::access::{Access, Ids, Requirement, Rule, authorize};
use crate::auth::{AuthMode, authenticate};
use crate::extract::{PathParameters, check_path};
use crate::idempotency::run_once;
use crate::openapi::{Description, describe};
use crate::problem::{Problem, method_not_allowed, no_such_route};
use crate::respond::cache_control;
use crate::services::Services;

#[derive(Debug, Clone)]
pub struct Route {
    /// Method in lower case.
    pub method: &'static str,
    pub path: &'static str,
    pub access: Access,
    pub operation_id: &'static str,
    pub summary: &'static str,
    /// Error statuses beside those of every route.
    pub errors: &'static [u16],
}

/// The access that a route needs: `open` for none, `[]` for any grant, or for each resource a verb and the place of its ids,
/// with `if "parameter" Verb` if a query parameter makes a request need another verb.
macro_rules! access {
    (open) => { Access::Open };
    ([]) => { Access::AnyGrant };
    ([$($resource:ident $verb:ident $ids:tt $(if $parameter:literal $raised:ident)?),+]) => {
        Access::Requires(const { &[$(Requirement {
            resource: Resource::$resource,
            verb: Verb::$verb,
            ids: ids!($ids),
            raised_by: raised_by!($($parameter $raised)?),
        }),+] })
    };
}

/// A query parameter and the verb that requests with it need.
macro_rules! raised_by {
    () => {
        None
    };
    ($parameter:literal $verb:ident) => {
        Some(($parameter, Verb::$verb))
    };
}

/// A path parameter, `delivery`, the function that reads ids from the body, `listed` or `all`.
macro_rules! ids {
    (listed) => {
        Ids::Listed
    };
    (all) => {
        Ids::All
    };
    (delivery) => {
        Ids::Delivery
    };
    (($read:path)) => {
        Ids::Body($read)
    };
    ($parameter:literal) => {
        Ids::Path($parameter)
    };
}

macro_rules! routes {
    ($($method:ident $path:literal $handler:path, $access:tt, $id:literal, $errors:expr, $summary:literal;)+) => {
        static ENDPOINTS: &[Endpoint] = &[$(Endpoint {
            method: stringify!($method),
            path: $path,
            rule: Rule {
                operation: $id,
                writes: !matches!(stringify!($method).as_bytes(), b"get"),
                access: access!($access),
            },
            handler: |request, services| Handler::call($handler, request, services),
        }),+];

        /// Returns every route with the description of its handler.
        pub(crate) fn described() -> Vec<(Route, Description)> {
            vec![$((
                Route {
                    method: stringify!($method),
                    path: $path,
                    access: access!($access),
                    operation_id: $id,
                    summary: $summary,
                    errors: &$errors,
                },
                describe($handler),
            )),+]
        }
    };
}

#[rustfmt::skip]
routes! {
    get "/health" health::get, open, "get_health", [], "Returns `ok` while the API is up.";
    get "/v1/openapi.json" description::get, [], "get_openapi", [], "Returns this document.";

    get "/v1/shadows" shadows::list, [Shadows Read listed], "list_shadows", [], "Lists the shadows that the caller may read, ordered by id and name. A shadow created or deleted a moment ago may be missing or listed.";
    get "/v1/shadows/{id}" shadows::get, [Shadows Read "id"], "get_shadow", [404, 410], "Reads the main shadow of a device; with `at` as it was at a time.";
    get "/v1/shadows/{id}/name/{name}" shadows::get, [Shadows Read "id"], "get_named_shadow", [404, 410], "Reads a named shadow of a device; with `at` as it was at a time.";
    get "/v1/shadows/{id}/history" history::changes, [Shadows Read "id"], "get_history", [404], "Lists recorded changes of the main shadow, newest first.";
    get "/v1/shadows/{id}/name/{name}/history" history::changes, [Shadows Read "id"], "get_named_history", [404], "Lists recorded changes of a named shadow, newest first.";
    get "/v1/shadows/{id}/diff" history::difference, [Shadows Read "id"], "get_difference", [404, 410], "Compares the main shadow at two times.";
    get "/v1/shadows/{id}/name/{name}/diff" history::difference, [Shadows Read "id"], "get_named_difference", [404, 410], "Compares a named shadow at two times.";
    patch "/v1/shadows/{id}" shadows::merge_both, [Shadows Write "id"], "update_shadow", [], "Merges reported and desired documents into the main shadow of a device, in one write.";
    patch "/v1/shadows/{id}/name/{name}" shadows::merge_both, [Shadows Write "id"], "update_named_shadow", [], "Merges reported and desired documents into a named shadow of a device, in one write.";
    delete "/v1/shadows/{id}" shadows::delete, [Shadows Write "id" if "purge" Admin], "delete_shadow", [404], "Deletes the main shadow of a device. Deleting a shadow that does not exist succeeds. With `purge` its past is deleted too, in the background, which requires the grant `shadows:admin`.";
    delete "/v1/shadows/{id}/name/{name}" shadows::delete, [Shadows Write "id" if "purge" Admin], "delete_named_shadow", [404], "Deletes a named shadow of a device. Deleting a shadow that does not exist succeeds. With `purge` its past is deleted too, in the background, which requires the grant `shadows:admin`.";
    patch "/v1/shadows/{id}/reported" shadows::merge::<false>, [Shadows Write "id"], "report", [], "Merges a document into the reported document of the main shadow.";
    patch "/v1/shadows/{id}/name/{name}/reported" shadows::merge::<false>, [Shadows Write "id"], "report_named", [], "Merges a document into the reported document of a named shadow.";
    delete "/v1/shadows/{id}/reported" shadows::delete_document::<false>, [Shadows Write "id"], "delete_reported", [], "Deletes the reported document of the main shadow. Not where both documents are one item.";
    delete "/v1/shadows/{id}/name/{name}/reported" shadows::delete_document::<false>, [Shadows Write "id"], "delete_named_reported", [], "Deletes the reported document of a named shadow. Not where both documents are one item.";
    patch "/v1/shadows/{id}/desired" shadows::merge::<true>, [Shadows Write "id"], "desire", [], "Merges a document into the desired document of the main shadow.";
    patch "/v1/shadows/{id}/name/{name}/desired" shadows::merge::<true>, [Shadows Write "id"], "desire_named", [], "Merges a document into the desired document of a named shadow.";
    delete "/v1/shadows/{id}/desired" shadows::delete_document::<true>, [Shadows Write "id"], "delete_desired", [], "Deletes the desired document of the main shadow. Not where both documents are one item.";
    delete "/v1/shadows/{id}/name/{name}/desired" shadows::delete_document::<true>, [Shadows Write "id"], "delete_named_desired", [], "Deletes the desired document of a named shadow. Not where both documents are one item.";
    get "/v1/shadows/{id}/delta" shadows::delta, [Shadows Read "id"], "get_delta", [404], "Reads the delta of the main shadow.";
    get "/v1/shadows/{id}/name/{name}/delta" shadows::delta, [Shadows Read "id"], "get_named_delta", [404], "Reads the delta of a named shadow.";
    get "/v1/changes" changes::list, [Changes Read listed], "list_changes", [404, 410], "Reads the change feed: every change of the shadows that the caller may follow, in order per document, from a cursor on. A change can come again, with the same `changeId`.";
    post "/v1/reports" shadows::report_many, [Shadows Write (shadows::reported_ids)], "report_many", [], "Updates up to 100 shadows. Each has its own result; one that fails does not affect the others.";

    get "/v1/messages" messages::sources, [Messages Read all], "list_sources", [], "Lists the sources of messages with the hour of their last message.";
    get "/v1/messages/{uuid}" messages::list, [Messages Read "uuid"], "list_messages", [], "Lists the messages of a source, ordered by message id.";
    post "/v1/messages/{uuid}" messages::send, [Messages Write "uuid"], "send_message", [], "Sends a message to a device: puts it into the outbound queue.";
    get "/v1/messages/{uuid}/{messageId}" messages::get, [Messages Read "uuid"], "get_message", [404], "Reads a message.";
    delete "/v1/messages/{uuid}/{messageId}" messages::delete, [Messages Write "uuid"], "delete_message", [], "Deletes a message. Deleting a message that does not exist succeeds.";

    post "/v1/sensors" sensors::register, [Sensors Write (sensors::registered_id)], "register_sensor", [], "Registers a sensor. A sensor that is registered already is refused, also with the same data.";
    get "/v1/sensors" sensors::list, [Sensors Read listed], "list_sensors", [], "Lists the sensors that the caller may read, ordered by id. A sensor registered a moment ago may be missing.";
    get "/v1/sensors/{id}" sensors::get, [Sensors Read "id"], "get_sensor", [404], "Reads a sensor.";
    put "/v1/sensors/{id}" sensors::put, [Sensors Write "id"], "put_sensor", [404], "Replaces the data of a sensor, or registers it. With `If-Match` it must be registered.";
    patch "/v1/sensors/{id}" sensors::update, [Sensors Write "id"], "update_sensor", [404], "Changes a sensor, except for its location.";
    delete "/v1/sensors/{id}" sensors::unregister, [Sensors Write "id"], "unregister_sensor", [404], "Unregisters a sensor and deletes its state and links. Its readings are deleted later.";
    post "/v1/sensors/{id}/move" sensors::move_to, [Sensors Write "id"], "move_sensor", [404], "Moves a sensor to another location.";
    get "/v1/sensors/{id}/state" sensors::state, [Sensors Read "id"], "get_sensor_state", [404], "Reads the latest state of a sensor.";
    get "/v1/sensors/{id}/readings" sensors::list_readings, [Sensors Read "id"], "list_readings", [404], "Reads a sensor and its latest readings, newest first; with `from` or `to` the readings of a time range, oldest first or, with `newestFirst`, newest first.";
    post "/v1/sensors/{id}/readings" sensors::save_readings, [Sensors Write "id"], "save_readings", [404], "Saves readings of a sensor. Saving a reading of the same time and sequence again changes nothing.";
    get "/v1/sensors/{id}/deliveries" deliveries::of_sensor, [Deliveries Read all], "list_deliveries_of_sensor", [404], "Lists deliveries about a sensor. An update of a moment ago may be missing.";
    get "/v1/sensors/{id}/clients" clients::links_of_sensor, [Clients Read all], "list_links_of_sensor", [404], "Lists the clients that are linked to a sensor.";
    post "/v1/signals" sensors::record_signals, [Sensors Write (sensors::signalled_ids)], "record_signals", [], "Records signals of sensors with their readings, as the messages of the signals queue. Each has its own result.";
    get "/v1/locations/{city}/sensors" sensors::in_location, [Sensors Read all], "list_sensors_of_city", [], "Lists the sensors of a city. A sensor registered or moved a moment ago may be missing.";
    get "/v1/locations/{city}/{building}/sensors" sensors::in_location, [Sensors Read all], "list_sensors_of_building", [], "Lists the sensors of a building. A sensor registered or moved a moment ago may be missing.";
    get "/v1/locations/{city}/{building}/{floor}/sensors" sensors::in_location, [Sensors Read all], "list_sensors_of_floor", [], "Lists the sensors of a floor. A sensor registered or moved a moment ago may be missing.";
    get "/v1/locations/{city}/{building}/{floor}/{room}/sensors" sensors::in_location, [Sensors Read all], "list_sensors_of_room", [], "Lists the sensors of a room. A sensor registered or moved a moment ago may be missing.";

    post "/v1/clients" clients::create, [Clients Admin (clients::created_id)], "create_client", [], "Creates a client. Only this response shows its signing secret.";
    get "/v1/clients" clients::list, [Clients Read listed], "list_clients", [], "Lists the clients that the caller may read, ordered by id. A client created a moment ago may be missing.";
    get "/v1/clients/{id}" clients::get, [Clients Read "id"], "get_client", [404], "Reads a client, without its secret.";
    patch "/v1/clients/{id}" clients::update, [Clients Admin "id"], "update_client", [404], "Changes a client. A new URL also applies to deliveries that wait for their next attempt.";
    delete "/v1/clients/{id}" clients::delete, [Clients Write "id"], "delete_client", [404], "Deletes a client. A client with links is deleted only with `cascade`.";
    post "/v1/clients/{id}/rotate-secret" clients::rotate_secret, [Clients Admin "id"], "rotate_secret", [404], "Creates a new signing secret, which only this response shows. The previous secret stays valid for a while.";
    post "/v1/clients/{id}/test" deliveries::test, [Deliveries Write "id"], "test_client", [404], "Queues a test delivery to a client.";
    post "/v1/clients/{id}/enable" deliveries::enable, [Clients Write "id"], "enable_client", [404], "Enables a client and queues the deliveries that were held for it.";
    post "/v1/clients/{id}/disable" clients::disable, [Clients Write "id"], "disable_client", [404], "Disables a client: its deliveries are held until it is enabled.";
    get "/v1/clients/{id}/deliveries" deliveries::of_client, [Deliveries Read "id"], "list_deliveries_of_client", [404], "Lists the deliveries to a client, with their attempts.";
    post "/v1/clients/{id}/redeliver" deliveries::redeliver_since, [Deliveries Write "id"], "redeliver_since", [404], "Queues again the deliveries to a client that were not delivered since a time, oldest first. Each request queues a part; repeat it with `nextCursor`.";
    post "/v1/deliveries/{id}/redeliver" deliveries::redeliver, [Deliveries Write delivery], "redeliver", [404], "Queues a delivery again, whatever its status.";
    put "/v1/clients/{id}/sensors/{sensor}" clients::link, [Clients Write "id", Sensors Read "sensor"], "link", [404], "Links a client to a sensor. Linking them again changes nothing.";
    delete "/v1/clients/{id}/sensors/{sensor}" clients::unlink, [Clients Write "id"], "unlink", [404], "Removes the link between a client and a sensor. Its deliveries in progress are skipped.";
    get "/v1/clients/{id}/sensors" clients::links_of_client, [Clients Read "id"], "list_links_of_client", [404], "Lists the sensors that a client is linked to.";

    get "/v1/registrations" registrations::list, [Registrations Read all], "list_registrations", [], "Lists the registrations, ordered by name.";
    get "/v1/registrations/{name}" registrations::get, [Registrations Read all], "get_registration", [404], "Reads a registration.";

    get "/v1/queues" queues::list, [Queues Read all], "list_queues", [], "Lists the queues of failed messages with approximate numbers of messages.";
    get "/v1/queues/{queue}" queues::messages, [Queues Read all], "list_failed_messages", [404], "Shows messages of a queue, in no particular order. They stay there, hidden from a redrive for a moment.";
    post "/v1/queues/{queue}/redrive" queues::redrive, [Queues Admin all], "redrive", [404], "Moves messages back to their source: quarantined messages and dead letters to their queue, notifications to the stream listener, updates over MQTT to their shadow. Each request moves a part; repeat it while `hasMore` is true.";
}

pub fn all() -> Vec<Route> {
    described().into_iter().map(|(route, _)| route).collect()
}

pub fn router(services: impl Into<Arc<Services>>, auth: AuthMode) -> Router {
    let services = services.into();
    let auth = Arc::new(auth);
    Router::new()
        .fallback(serve)
        .layer(from_fn(check_path))
        .layer(from_fn_with_state(
            (auth, Arc::clone(&services)),
            authenticate,
        ))
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(services)
}

pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// The rest of the way of a request: further layers, and the handler.
pub(crate) type Next = Box<dyn FnOnce(Request) -> ResponseFuture + Send>;

/// A route as it is served. The table of all is a constant: a router of axum would be built from it at every start of the
/// function, which took a quarter of the time to the first request.
struct Endpoint {
    method: &'static str,
    path: &'static str,
    rule: Rule,
    handler: fn(Request, Arc<Services>) -> ResponseFuture,
}

impl Endpoint {
    /// A path is served to HEAD as to GET; axum leaves out the body.
    fn serves(&self, method: &Method) -> bool {
        self.method.eq_ignore_ascii_case(method.as_str())
            || (self.method == "get" && *method == Method::HEAD)
    }

    /// Passes a request through the layers of all routes to the handler.
    async fn call(&self, request: Request, services: Arc<Services>) -> Response {
        let (handler, api) = (self.handler, Arc::clone(&services));
        let handler: Next = Box::new(move |request| handler(request, services));
        let cached: Next = Box::new(|request| Box::pin(cache_control(request, handler)));
        let once: Next = Box::new(|request| Box::pin(run_once(api, request, cached)));
        authorize(self.rule, request, once).await
    }
}

/// Finds the route of a request. A request that no route serves passes no layer of routes, and so owns no
/// `Idempotency-Key`.
async fn serve(State(services): State<Arc<Services>>, mut request: Request) -> Response {
    let mut allowed = String::new();
    for endpoint in ENDPOINTS {
        let Some(parameters) = PathParameters::find(endpoint.path, request.uri().path()) else {
            continue;
        };
        if endpoint.serves(request.method()) {
            request.extensions_mut().insert(parameters);
            return endpoint.call(request, services).await;
        }
        let separator = if allowed.is_empty() { "" } else { "," };
        allowed += separator;
        allowed += &endpoint.method.to_ascii_uppercase();
        if endpoint.method == "get" {
            allowed += ",HEAD";
        }
    }
    match allowed.is_empty() {
        true => no_such_route().into_response(),
        false => method_not_allowed(&allowed).into_response(),
    }
}

fn panicked(reason: Box<dyn Any + Send>) -> Response {
    let text = reason.downcast_ref::<&str>().copied();
    let text = text.or(reason.downcast_ref::<String>().map(String::as_str));
    Problem::internal(text.unwrap_or("panic without a message")).into_response()
}
