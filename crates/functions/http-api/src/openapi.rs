//! The OpenAPI 3.1 document, from the table of routes and the signatures of their handlers.
//!
//! [`signature`] describes a handler's arguments and response. This module adds the parts that routes
//! share: credentials, `Idempotency-Key` and error responses. `annotations.json` (a JSON merge patch) adds
//! the limits and examples of single schema properties.

mod signature;

use antumbra_service::access::{Grant, SCOPE_PREFIX};
use serde_json::Value;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, HttpMethod, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths, Required,
};
use utoipa::{PartialSchema, ToSchema};

use crate::access::Access;
use crate::problem::{Code, ProblemBody};
use crate::routes::{Route, described};
pub(crate) use signature::{Description, describe};
use signature::{problem, problem_with_header, response};

const DESCRIPTION: &str = "Shadows, messages, sensors, clients and deliveries of a fleet of devices.\n\n\
    Path parameters are percent-encoded. API Gateway decodes a path once before the function sees it: \
    through API Gateway, encode an id that contains `/`, `?` or `%` twice. Encoding every id twice is safe there.\n\n\
    Lists take `limit` and `cursor` and return `nextCursor` unless the page is the last. Writes take \
    `Idempotency-Key`, and where a resource has a version, `If-Match`. Errors are `application/problem+json` \
    with a stable `code`.\n\n\
    Each operation names the grants that it requires, `resource:verb`: as scopes `antumbra/resource:verb` of a JWT, and as \
    roles of the other kinds of credentials. A grant can be limited to ids by a prefix, `resource:verb:prefix`.";

const TAGS: [(&str, &str); 10] = [
    ("shadows", "Reported and desired state of devices."),
    ("changes", "The change feed of all shadows."),
    ("messages", "The inbox: messages by source."),
    ("sensors", "Sensors by location, their states and readings."),
    ("clients", "Webhook clients and their links to sensors."),
    ("deliveries", "Webhook deliveries and their attempts."),
    ("registrations", "Rules that send changes to targets."),
    (
        "queues",
        "Failed messages: undeliverable, quarantined and dead-lettered.",
    ),
    ("description", "The description of the API."),
    ("health", "Health of the API."),
];

/// Limits and examples of schema properties.
const ANNOTATIONS: &str = include_str!("openapi/annotations.json");

pub fn document() -> Value {
    let mut document = serde_json::to_value(generated()).unwrap_or_default();
    let schemas = &mut document["components"]["schemas"];
    // Optional members are absent rather than null.
    remove_null(schemas);
    merge(
        schemas,
        serde_json::from_str(ANNOTATIONS).unwrap_or_default(),
    );
    document
}

fn generated() -> OpenApi {
    let mut components = Components::new();
    let mut paths = Paths::new();
    for (route, mut description) in described() {
        components
            .schemas
            .extend(std::mem::take(&mut description.schemas));
        let method = http_method(route.method);
        paths.add_path_operation(route.path, vec![method], operation(&route, description));
    }
    components
        .schemas
        .insert("Problem".to_owned(), ProblemBody::schema());
    components
        .schemas
        .insert(Code::name().into_owned(), Code::schema());
    for (name, scheme) in schemes() {
        components.add_security_scheme(name, scheme);
    }
    let licence = LicenseBuilder::new().name("Apache-2.0 OR MIT").build();
    let info = InfoBuilder::new()
        .title("Antumbra")
        .version("1")
        .description(Some(DESCRIPTION))
        .license(Some(licence));
    let tag = |(name, description): (&str, &str)| {
        TagBuilder::new()
            .name(name)
            .description(Some(description))
            .build()
    };
    OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .components(Some(components))
        .tags(Some(TAGS.map(tag)))
        .build()
}

fn operation(route: &Route, mut description: Description) -> OperationBuilder {
    let open = matches!(route.access, Access::Open);
    let writes = route.method != "get";
    let mut operation = OperationBuilder::new()
        .tag(tag(route.access))
        .summary(Some(route.summary))
        .operation_id(Some(route.operation_id));
    operation = operation.securities(Some(security(route.access)));
    for parameter in description.parameters_of(route.path, writes) {
        operation = operation.parameter(parameter);
    }
    if writes {
        operation = operation.parameter(idempotency_key());
    }
    let mut errors = vec![500];
    errors.extend(route.errors);
    if !open {
        errors.extend([400, 401, 403, 503]);
    }
    if description.request_body.is_some() {
        errors.push(415);
    }
    if description.conditional || (description.tagged && !writes) {
        errors.push(412);
    }
    if writes {
        errors.extend([409, 413, 422]);
    }
    for (status, success) in description.responses_of(writes) {
        operation = operation.response(status.to_string(), success);
    }
    // The server itself sends this, before the request is routed.
    operation = operation.response("414", response("The URL is too long.").build());
    for status in errors {
        operation = operation.response(status.to_string(), error(status));
    }
    operation.request_body(description.request_body)
}

fn tag(access: Access) -> &'static str {
    match access {
        Access::Open => "health",
        Access::AnyGrant => "description",
        Access::Requires(requirements) => requirements[0].resource.as_str(),
    }
}

/// The kinds of credentials, each with the grants that the operation requires: as scopes of a JWT, as roles otherwise.
fn security(access: Access) -> Vec<SecurityRequirement> {
    let requirements = match access {
        Access::Open => return vec![SecurityRequirement::default()],
        Access::AnyGrant => &[],
        Access::Requires(requirements) => requirements,
    };
    let grants = |prefix: &str| -> Vec<String> {
        let grants = requirements.iter();
        let grants = grants.map(|one| Grant::new(one.resource, one.verb, None));
        grants.map(|grant| format!("{prefix}{grant}")).collect()
    };
    [("token", ""), ("jwt", SCOPE_PREFIX), ("iam", "")]
        .map(|(scheme, prefix)| SecurityRequirement::new(scheme, grants(prefix)))
        .to_vec()
}

fn http_method(name: &str) -> HttpMethod {
    match name {
        "post" => HttpMethod::Post,
        "put" => HttpMethod::Put,
        "patch" => HttpMethod::Patch,
        "delete" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn error(status: u16) -> utoipa::openapi::Response {
    match status {
        400 => problem("The path, the query, a header or the body is invalid."),
        401 => problem_with_header(
            "Credentials are missing or invalid.",
            "WWW-Authenticate",
            "The expected kind of credentials.",
        ),
        403 => problem("The caller lacks a grant, which the detail names."),
        404 => problem("The resource does not exist."),
        409 => problem(
            "Concurrent writes were faster, the resource exists already or is in use, or a request with the same `Idempotency-Key` is in progress.",
        ),
        412 => problem("The stored version is not the one that the condition names."),
        413 => problem("The body, or the document it leads to, is too large."),
        415 => problem("The content type is not `application/json`."),
        422 => problem("The `Idempotency-Key` belongs to another request."),
        503 => problem_with_header(
            "Temporarily unavailable; try again.",
            "Retry-After",
            "Seconds to wait before the next attempt.",
        ),
        _ => problem("Internal error; the log has the reason."),
    }
}

fn idempotency_key() -> ParameterBuilder {
    let key = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(255))
        .pattern(Some("^[!-~]+$"));
    ParameterBuilder::new()
        .name("Idempotency-Key")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(
            "A text of the caller's choice, unique to this request. If the request is sent again with it within \
             a day, the first response is returned and nothing else happens.",
        ))
        .schema(Some(key))
}

fn schemes() -> [(&'static str, SecurityScheme); 3] {
    let bearer = |text: &str| {
        HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(text))
    };
    let token = bearer("Local stack: the token that it prints.").build();
    let jwt = bearer("AWS with a JWT authorizer.")
        .bearer_format("JWT")
        .build();
    let signed = ApiKeyValue::with_description(
        "Authorization",
        "AWS by default: a request signed with Signature Version 4.",
    );
    [
        ("token", SecurityScheme::Http(token)),
        ("jwt", SecurityScheme::Http(jwt)),
        ("iam", SecurityScheme::ApiKey(ApiKey::Header(signed))),
    ]
}

fn remove_null(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    object["type"] = only.clone();
                }
            }
            if let Some(Value::Array(variants)) = object.get_mut("oneOf") {
                variants.retain(|variant| variant["type"] != "null");
                if let [Value::Object(only)] = &variants[..] {
                    let only = only.clone();
                    object.remove("oneOf");
                    object.extend(only);
                }
            }
            object.values_mut().for_each(remove_null);
        }
        Value::Array(array) => array.iter_mut().for_each(remove_null),
        _ => {}
    }
}

/// Applies a JSON merge patch (RFC 7396) that deletes nothing.
fn merge(target: &mut Value, patch: Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (name, value) in patch {
                merge(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch,
    }
}
