//! The OpenAPI 3.1 document, from the table of routes and the signatures of their handlers.
//!
//! [`signature`] describes a handler's arguments and response. This module adds the parts that routes
//! share: credentials, `Idempotency-Key` and error responses. `annotations.json` (a JSON merge patch) adds
//! the limits and examples of single schema properties.

mod signature;

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

use crate::problem::{Code, ProblemBody};
use crate::routes::{Resource, Route, described};
pub(crate) use signature::{Description, describe};
use signature::{problem, problem_with_header, response};

const DESCRIPTION: &str = "Shadows, messages, sensors, clients and deliveries of a fleet of devices.\n\n\
    Path parameters are percent-encoded. API Gateway decodes a path once before the function sees it: \
    through API Gateway, encode an id that contains `/`, `?` or `%` twice. Encoding every id twice is safe there.\n\n\
    Lists take `limit` and `cursor` and return `nextCursor` unless the page is the last. Writes take \
    `Idempotency-Key`, and where a resource has a version, `If-Match`. Errors are `application/problem+json` \
    with a stable `code`.";

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
    let tag = |resource: &Resource| {
        TagBuilder::new()
            .name(resource.as_str())
            .description(Some(resource.description()))
            .build()
    };
    let requirement = |scheme| SecurityRequirement::new(scheme, Vec::<String>::new());
    OpenApiBuilder::new()
        .info(info)
        .paths(paths)
        .components(Some(components))
        .security(Some(["token", "jwt", "iam"].map(requirement)))
        .tags(Some(Resource::ALL.iter().map(tag)))
        .build()
}

fn operation(route: &Route, mut description: Description) -> OperationBuilder {
    let open = route.resource == Resource::Health;
    let writes = route.method != "get";
    let mut operation = OperationBuilder::new()
        .tag(route.resource.as_str())
        .summary(Some(route.summary))
        .operation_id(Some(route.operation_id));
    if open {
        operation = operation.security(SecurityRequirement::default());
    }
    for parameter in description.parameters_of(route.path, writes) {
        operation = operation.parameter(parameter);
    }
    if writes {
        operation = operation.parameter(idempotency_key());
    }
    let mut errors = vec![500];
    errors.extend(route.errors);
    if !open {
        errors.extend([400, 401, 503]);
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
