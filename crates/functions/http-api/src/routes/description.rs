//! `/v1/openapi.json`: the description of this API.

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::openapi::document;
use crate::problem::Problem;
use crate::respond::Json;

static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

/// An OpenAPI 3.1 document.
#[derive(Serialize, ToSchema)]
#[schema(value_type = Object)]
pub(crate) struct OpenApiDocument(&'static Value);

pub(crate) async fn get() -> Result<Json<OpenApiDocument>, Problem> {
    Ok(Json(OpenApiDocument(&DOCUMENT)))
}
