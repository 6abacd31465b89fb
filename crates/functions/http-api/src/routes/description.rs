//! `/v1/openapi.json`: the description of this API.

use std::sync::LazyLock;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::respond::Json;

/// The document as [`document`](crate::document) generates it. The code that does so would be a part of the function.
const TEXT: &str = include_str!("../../openapi.json");

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(TEXT).unwrap_or_default());

/// An OpenAPI 3.1 document.
#[derive(Serialize, ToSchema)]
#[schema(value_type = Object)]
pub(crate) struct OpenApiDocument(&'static Value);

pub(crate) async fn get() -> Result<Json<OpenApiDocument>, Problem> {
    Ok(Json(OpenApiDocument(&DOCUMENT)))
}
