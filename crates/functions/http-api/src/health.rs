//! Whether the API is up. The one route that is open to all, so it says nothing and costs nothing.

use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::problem::Problem;

pub(crate) const PATH: &str = "/health";

/// That the API is up.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Whether the API is up.
#[utoipa::path(
    get, path = "/health", tag = "health", security(()),
    responses((status = 200, description = "It is.", body = Health)),
)]
pub(crate) async fn get() -> Result<Answer, Problem> {
    Answer::ok(&Health { status: "ok" })
}
