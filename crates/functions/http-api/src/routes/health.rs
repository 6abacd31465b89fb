//! `/health`: the only route without authentication.

use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::respond::Json;

pub(crate) const PATH: &str = "/health";

/// Health of the API.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

pub(crate) async fn get() -> Result<Json<Health>, Problem> {
    Ok(Json(Health { status: "ok" }))
}
