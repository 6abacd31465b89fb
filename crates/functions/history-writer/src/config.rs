use antumbra_dynamodb::{FeedConfig, HistoryConfig};
use antumbra_lambda_kit::config::{FunctionConfig, feed_days, shadow_model};
use antumbra_lambda_kit::environment::Environment;
use antumbra_service::history::DEFAULT_DAYS;
use antumbra_service::history::feed::DEFAULT_PARTITIONS;
use antumbra_shadow::Model;

/// A reader asks for each partition on its own.
const MAX_PARTITIONS: u32 = 64;

#[derive(Debug, Clone)]
pub struct Config {
    pub history: HistoryConfig,
    /// The change feed, unless it is switched off.
    pub feed: Option<FeedConfig>,
    pub model: Model,
}

impl FunctionConfig for Config {
    fn from_env(environment: &mut Environment) -> Config {
        Config {
            history: HistoryConfig {
                table: environment.required("HISTORY_TABLE"),
                days: environment.or("HISTORY_DAYS", DEFAULT_DAYS),
            },
            feed: feed(environment),
            model: shadow_model(environment),
        }
    }
}

fn feed(environment: &mut Environment) -> Option<FeedConfig> {
    let days = feed_days(environment);
    let partitions = environment.or("FEED_PARTITIONS", DEFAULT_PARTITIONS);
    if !(1..=MAX_PARTITIONS).contains(&partitions) {
        environment.fault(format!("FEED_PARTITIONS must be 1 to {MAX_PARTITIONS}"));
    }
    (days > 0).then_some(FeedConfig { days, partitions })
}
