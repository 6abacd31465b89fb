//! Configuration from the environment.

use antumbra_lambda_kit::config::FunctionConfig;
use antumbra_lambda_kit::environment::Environment;
use antumbra_service::shadows::Layout;
use antumbra_shadow::Model;

#[derive(Debug, Clone)]
pub struct Config {
    pub table: String,
    pub layout: Layout,
    /// A device can reach only the shadows of the thing named like its client id.
    pub own_shadows_only: bool,
    pub model: Model,
    /// The account's own endpoint of AWS IoT.
    pub iot_endpoint: Option<String>,
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        let default = Model::default();
        Config {
            table: environment.required("TABLE"),
            layout: match environment.or("COMBINED", false) {
                true => Layout::Combined,
                false => Layout::Separate,
            },
            own_shadows_only: environment.or("OWN_SHADOWS_ONLY", false),
            model: Model {
                timestamp_field: environment.or("TIMESTAMP_FIELD", default.timestamp_field),
                id_field: environment.or("ID_FIELD", default.id_field),
                ..Model::default()
            },
            iot_endpoint: environment.optional("IOT_ENDPOINT"),
        }
    }
}
