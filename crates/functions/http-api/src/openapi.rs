//! The API's description: OpenAPI 3.1, gathered from the handlers.
//!
//! A handler says what is its own. What holds for many (credentials, keys of idempotency, what is said of
//! bad requests and of our own faults) is added here, so that no route can forget it.

use std::collections::BTreeMap;

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, LicenseBuilder, OpenApi, Ref, RefOr, Required,
    Response, ResponseBuilder,
};
use utoipa::{IntoParams, IntoResponses, PartialSchema, ToSchema};

use crate::problem::{CONTENT, Code, ProblemBody};

const DESCRIPTION: &str = "Shadows, messages, sensors, clients and deliveries of a fleet of devices.\n\n\
    Parts of a path are percent-encoded. API Gateway decodes a path once before the function sees it, so \
    that through it an id with `/`, `?` or `%` is to be encoded twice; encoding every id twice is right there.\n\n\
    Lists take `limit` and `cursor` and answer with `next` unless the page is the last. Writes take \
    `Idempotency-Key`, and where a thing has a version, `If-Match`. What goes wrong is told as \
    `application/problem+json` with a `code` that does not change.";

const TAGS: [(&str, &str); 6] = [
    (
        "shadows",
        "What devices say of themselves, and what is wanted of them.",
    ),
    ("messages", "The inbox: messages by source."),
    (
        "sensors",
        "Where sensors are, what they read, and whether they are heard.",
    ),
    ("clients", "Who is told of sensors."),
    ("deliveries", "What clients were told, and how that went."),
    ("health", "Whether the API is up."),
];

/// There is no such thing.
pub(crate) struct Missing;

impl IntoResponses for Missing {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        [("404".to_owned(), problem("There is no such thing."))].into()
    }
}

/// Others were faster, or a condition does not hold.
pub(crate) struct Changed;

impl IntoResponses for Changed {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        [
            (
                "409".to_owned(),
                problem("Others were faster, or the same request is under way."),
            ),
            (
                "412".to_owned(),
                problem("What is stored is not what the condition names."),
            ),
        ]
        .into()
    }
}

/// Only if this version is stored.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
pub(crate) struct IfMatch {
    /// Only if this version is stored: the entity tag of an earlier answer, or `*` for any.
    #[param(rename = "If-Match", example = "\"3\"")]
    if_match: Option<String>,
}

/// Only if this version is not stored.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code)]
pub(crate) struct IfNoneMatch {
    /// Only if another version is stored than this. A write takes only `*`, which says that nothing is
    /// there yet.
    #[param(rename = "If-None-Match", example = "\"3\"")]
    if_none_match: Option<String>,
}

/// Completes what the handlers say.
pub(crate) fn complete(mut document: OpenApi) -> OpenApi {
    document.info = InfoBuilder::new()
        .title("Antumbra")
        .version("1")
        .description(Some(DESCRIPTION))
        .license(Some(
            LicenseBuilder::new().name("Apache-2.0 OR MIT").build(),
        ))
        .build();
    document.tags = Some(
        TAGS.iter()
            .map(|(name, what)| {
                TagBuilder::new()
                    .name(*name)
                    .description(Some(*what))
                    .build()
            })
            .collect(),
    );
    document.security = Some(
        ["token", "jwt", "iam"]
            .map(|scheme| SecurityRequirement::new(scheme, Vec::<String>::new()))
            .into(),
    );
    let mut components = ComponentsBuilder::from(document.components.unwrap_or_default())
        .schema("Problem", ProblemBody::schema())
        .schema(Code::name(), Code::schema());
    for (name, scheme) in schemes() {
        components = components.security_scheme(name, scheme);
    }
    document.components = Some(components.build());
    for (path, item) in &mut document.paths.paths {
        operations(item).for_each(|(writes, operation)| {
            add_shared(operation, writes, path == crate::health::PATH);
        });
    }
    document
}

fn schemes() -> [(&'static str, SecurityScheme); 3] {
    let bearer = |what: &str, format: Option<&str>| {
        let mut http = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(what));
        if let Some(format) = format {
            http = http.bearer_format(format);
        }
        SecurityScheme::Http(http.build())
    };
    let signed = ApiKeyValue::with_description(
        "Authorization",
        "On AWS by default: a request signed with Signature Version 4.",
    );
    [
        (
            "token",
            bearer("On the local stack: the token that it prints.", None),
        ),
        ("jwt", bearer("On AWS with a JWT authorizer.", Some("JWT"))),
        ("iam", SecurityScheme::ApiKey(ApiKey::Header(signed))),
    ]
}

/// The operations of a path, and whether they write.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (bool, &mut Operation)> {
    let reads = [&mut item.get]
        .into_iter()
        .map(|operation| (false, operation));
    let writes = [
        &mut item.put,
        &mut item.post,
        &mut item.delete,
        &mut item.patch,
    ];
    reads
        .chain(writes.into_iter().map(|operation| (true, operation)))
        .filter_map(|(writes, operation)| Some((writes, operation.as_mut()?)))
}

fn add_shared(operation: &mut Operation, writes: bool, open: bool) {
    let mut shared = vec![("500", "It is our own fault, and the log says why.")];
    if !open {
        shared.push((
            "400",
            "The path, the query, a header or the body makes no sense.",
        ));
        shared.push(("401", "Credentials are missing or not valid."));
        shared.push(("503", "Not available at the moment; worth trying again."));
    }
    if operation.request_body.is_some() {
        shared.push(("415", "The body is not called `application/json`."));
    }
    if writes {
        shared.push(("409", "The same request is under way."));
        shared.push(("413", "The body, or what it makes, has too many bytes."));
        shared.push(("422", "The `Idempotency-Key` belongs to another request."));
        let key = ParameterBuilder::new()
            .name("Idempotency-Key")
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(
                "A text of the caller's own, for one request: sent again with it within a day, the \
                 request is answered as it was the first time, and does nothing.",
            ))
            .schema(Some(
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .min_length(Some(1))
                    .max_length(Some(255))
                    .pattern(Some("^[!-~]+$")),
            ))
            .build();
        let parameters = operation.parameters.get_or_insert_default();
        parameters.push(key.into());
    }
    // The server's own answer, before there is a request to speak of.
    let too_long = ResponseBuilder::new().description("The URL is longer than a server reads.");
    let responses = &mut operation.responses.responses;
    responses.insert("414".to_owned(), too_long.build().into());
    for (status, what) in shared {
        let responses = &mut operation.responses.responses;
        responses
            .entry(status.to_owned())
            .or_insert_with(|| match status {
                "401" => with_header(what, "WWW-Authenticate", "How to come in."),
                "503" => with_header(what, "Retry-After", "After how many seconds."),
                _ => problem(what),
            });
    }
}

/// An answer that tells of a problem.
pub(crate) fn problem(what: &str) -> RefOr<Response> {
    response(what).build().into()
}

fn with_header(what: &str, name: &str, means: &str) -> RefOr<Response> {
    let header = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .description(Some(means))
        .build();
    response(what).header(name, header).build().into()
}

fn response(what: &str) -> ResponseBuilder {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .build();
    ResponseBuilder::new()
        .description(what)
        .content(CONTENT, content)
}
