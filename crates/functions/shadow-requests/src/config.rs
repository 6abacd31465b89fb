//! What the function is told by its environment.

use antumbra_lambda_kit::environment::Environment;
use antumbra_service::shadows::Layout;
use antumbra_shadow::Model;

/// What the function is told.
#[allow(missing_docs)]
pub struct Config {
    pub table: String,
    pub layout: Layout,
    /// Whether a device reaches its own shadows alone.
    pub own_only: bool,
    pub model: Model,
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
}

impl antumbra_lambda_kit::config::FunctionConfig for Config {
    fn read(environment: &mut Environment) -> Config {
        let otherwise = Model::default();
        Config {
            table: environment.required("TABLE"),
            layout: match environment.or("COMBINED", false) {
                true => Layout::Combined,
                false => Layout::Separate,
            },
            own_only: environment.or("OWN_SHADOWS_ONLY", false),
            model: Model {
                timestamp_field: environment.or("TIMESTAMP_FIELD", otherwise.timestamp_field),
                id_field: environment.or("ID_FIELD", otherwise.id_field),
                ..Model::default()
            },
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
        }
    }
}
