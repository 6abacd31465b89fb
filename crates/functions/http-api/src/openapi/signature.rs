//! Descriptions of handlers, from the types of their arguments and responses.

use antumbra_shadow::Document;
use axum::Extension;
use axum::extract::State;
use axum::response::NoContent;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder};
use utoipa::{IntoParams, ToSchema};

use crate::access::CallerGrants;
use crate::conditions::{Conditions, IfMatch};
use crate::extract::{FromPath, Path, PathParameter, Query, RawBody};
use crate::problem::{CONTENT, Problem};
use crate::respond::{Accepted, Created, ETag, Either, HoldsSecretOf, Json};
use crate::routes::changes::{EventStream, StreamRequest};

/// The parts of an operation that a handler's signature shows.
#[derive(Default)]
pub(crate) struct Description {
    path: &'static [PathParameter],
    query: Vec<Parameter>,
    headers: Vec<Parameter>,
    pub(super) request_body: Option<RequestBody>,
    /// The handler takes `If-Match`.
    pub(super) conditional: bool,
    success: Vec<(u16, ResponseBuilder)>,
    pub(super) tagged: bool,
    pub(super) schemas: Vec<(String, RefOr<Schema>)>,
}

impl Description {
    /// Returns the parameters of a route with this path. A tagged representation can be read conditionally.
    pub(super) fn parameters_of(&self, path: &str, writes: bool) -> Vec<Parameter> {
        let in_path =
            |parameter: &&PathParameter| path.contains(&format!("{{{}}}", parameter.name));
        let mut parameters: Vec<Parameter> = self
            .path
            .iter()
            .filter(in_path)
            .map(path_parameter)
            .collect();
        parameters.extend(self.query.clone());
        parameters.extend(self.headers.clone());
        if self.tagged && !writes {
            parameters.extend([if_match(), if_none_match()]);
        }
        parameters
    }

    pub(super) fn responses_of(&mut self, writes: bool) -> Vec<(u16, Response)> {
        let success = std::mem::take(&mut self.success).into_iter();
        let success = success.map(|(status, response)| match self.tagged {
            true => (status, response.header("ETag", text_header(None)).build()),
            false => (status, response.build()),
        });
        let mut responses: Vec<_> = success.collect();
        if self.tagged && !writes {
            let unchanged = "Not modified: `If-None-Match` names the current version.";
            responses.push((304, response(unchanged).build()));
        }
        responses
    }

    /// Adds a schema with those it refers to, and returns a reference to it.
    fn schema<T: ToSchema>(&mut self) -> Ref {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        Ref::from_schema_name(T::name())
    }

    fn body(&mut self, schema: Ref) {
        let body = RequestBodyBuilder::new().content("application/json", json(schema));
        self.request_body = Some(body.required(Some(Required::True)).build());
    }
}

pub(crate) fn describe<H: DescribeHandler<A>, A>(_: H) -> Description {
    H::description()
}

pub(crate) trait DescribeHandler<Arguments> {
    fn description() -> Description;
}

macro_rules! describe_handler {
    ($($argument:ident),*) => {
        impl<H, F, R, $($argument),*> DescribeHandler<($($argument,)*)> for H
        where
            H: Fn($($argument),*) -> F,
            F: Future<Output = Result<R, Problem>>,
            R: DescribeResponse,
            $($argument: DescribeArgument),*
        {
            fn description() -> Description {
                let mut description = Description::default();
                $($argument::describe(&mut description);)*
                R::describe(&mut description);
                description
            }
        }
    };
}

describe_handler!();
describe_handler!(A);
describe_handler!(A, B);
describe_handler!(A, B, C);
describe_handler!(A, B, C, D);
describe_handler!(A, B, C, D, E);
describe_handler!(A, B, C, D, E, G);

pub(crate) trait DescribeArgument {
    fn describe(into: &mut Description);
}

impl<S> DescribeArgument for State<S> {
    fn describe(_: &mut Description) {}
}

impl<T> DescribeArgument for Option<Extension<T>> {
    fn describe(_: &mut Description) {}
}

impl DescribeArgument for CallerGrants {
    fn describe(_: &mut Description) {}
}

/// Only where responses can be streams.
impl DescribeArgument for StreamRequest {
    fn describe(_: &mut Description) {}
}

impl<T: FromPath> DescribeArgument for Path<T> {
    fn describe(into: &mut Description) {
        into.path = T::PARAMETERS;
    }
}

impl<T: IntoParams> DescribeArgument for Query<T> {
    fn describe(into: &mut Description) {
        into.query = T::into_params(|| Some(ParameterIn::Query));
    }
}

impl<T: ToSchema> DescribeArgument for Json<T> {
    fn describe(into: &mut Description) {
        let schema = into.schema::<T>();
        into.body(schema);
    }
}

impl DescribeArgument for RawBody {
    fn describe(into: &mut Description) {
        let schema = into.schema::<DocumentBody>();
        into.body(schema);
    }
}

impl DescribeArgument for IfMatch {
    fn describe(into: &mut Description) {
        into.conditional = true;
        into.headers.push(if_match());
    }
}

impl DescribeArgument for Conditions {
    fn describe(into: &mut Description) {
        IfMatch::describe(into);
        into.headers.push(if_none_match());
    }
}

pub(crate) trait DescribeResponse {
    fn describe(into: &mut Description);
}

impl DescribeResponse for NoContent {
    fn describe(into: &mut Description) {
        into.success.push((204, response("Done.")));
    }
}

impl<T: ToSchema> DescribeResponse for Json<T> {
    fn describe(into: &mut Description) {
        let schema = into.schema::<T>();
        let success = response("Success.").content("application/json", json(schema));
        into.success.push((200, success));
    }
}

impl DescribeResponse for EventStream {
    fn describe(_: &mut Description) {}
}

impl<R: DescribeResponse> DescribeResponse for (ETag, R) {
    fn describe(into: &mut Description) {
        into.tagged = true;
        R::describe(into);
    }
}

impl<R: DescribeResponse> DescribeResponse for (Option<ETag>, R) {
    fn describe(into: &mut Description) {
        <(ETag, R)>::describe(into);
    }
}

impl<R: DescribeResponse> DescribeResponse for (HoldsSecretOf, R) {
    fn describe(into: &mut Description) {
        R::describe(into);
    }
}

impl<R: DescribeResponse> DescribeResponse for Created<R> {
    fn describe(into: &mut Description) {
        R::describe(into);
        if let Some((status, success)) = into.success.pop() {
            debug_assert_eq!(status, 200);
            let created = success.description("Created.");
            into.success
                .push((201, created.header("Location", text_header(None))));
        }
    }
}

impl<R: DescribeResponse> DescribeResponse for Accepted<R> {
    fn describe(into: &mut Description) {
        R::describe(into);
        if let Some((_, success)) = into.success.pop() {
            into.success.push((202, success.description("Queued.")));
        }
    }
}

impl<A: DescribeResponse, B: DescribeResponse> DescribeResponse for Either<A, B> {
    fn describe(into: &mut Description) {
        A::describe(into);
        B::describe(into);
    }
}

/// A document: a JSON object of at most 32 levels. Its numbers are exact, up to 38 digits.
#[derive(ToSchema)]
#[schema(value_type = Object, example = json!({
    "led": {"value": "on", "timestamp": "2026-01-31T12:00:00Z"},
}))]
#[allow(dead_code)]
struct DocumentBody(Document);

fn path_parameter(parameter: &PathParameter) -> Parameter {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(parameter.max_length))
        .pattern(parameter.pattern);
    ParameterBuilder::new()
        .name(parameter.name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(parameter.description))
        .schema(Some(schema))
        .example(parameter.example.map(Into::into))
        .build()
}

fn if_match() -> Parameter {
    header_parameter(
        "If-Match",
        "Entity tag of an earlier response, or `*`: read or write only if this version, or any, is stored.",
    )
}

fn if_none_match() -> Parameter {
    header_parameter(
        "If-None-Match",
        "Read only if another version is stored than this entity tag. A write takes only `*`: write only if \
         nothing is stored.",
    )
}

fn header_parameter(name: &str, text: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(text))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .example(Some("\"3\"".into()))
        .build()
}

fn text_header(text: Option<&str>) -> utoipa::openapi::Header {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new()
        .schema(Some(schema))
        .description(text)
        .build()
}

fn json(schema: Ref) -> utoipa::openapi::Content {
    ContentBuilder::new().schema(Some(schema)).build()
}

pub(super) fn response(text: &str) -> ResponseBuilder {
    ResponseBuilder::new().description(text)
}

pub(super) fn problem(text: &str) -> Response {
    response(text)
        .content(CONTENT, json(Ref::from_schema_name("Problem")))
        .build()
}

pub(super) fn problem_with_header(text: &str, name: &str, meaning: &str) -> Response {
    let problem = response(text).content(CONTENT, json(Ref::from_schema_name("Problem")));
    problem.header(name, text_header(Some(meaning))).build()
}
