use antumbra_dynamodb::HistoryConfig;
use antumbra_lambda_kit::config::{FunctionConfig, shadow_model};
use antumbra_lambda_kit::environment::Environment;
use antumbra_service::history::DEFAULT_DAYS;
use antumbra_shadow::Model;

#[derive(Debug, Clone)]
pub struct Config {
    pub history: HistoryConfig,
    pub model: Model,
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        Config {
            history: HistoryConfig {
                table: environment.required("HISTORY_TABLE"),
                days: environment.or("HISTORY_DAYS", DEFAULT_DAYS),
            },
            model: shadow_model(environment),
        }
    }
}
