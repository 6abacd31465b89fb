//! Which DynamoDB a command talks to: AWS by the usual configuration, or the local stack.

use antumbra_dynamodb::{DynamoDbSensors, DynamoDbShadows, SensorConfig, ShadowTableConfig};
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::{Layout, Shadows};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use clap::{Args, ValueEnum};

use crate::error::{CliError, Kind};

/// Where the local stack serves DynamoDB.
const LOCAL_ENDPOINT: &str = "http://127.0.0.1:8000";
/// Where the local stack serves SQS.
const LOCAL_AWS: &str = "http://127.0.0.1:4566";
const LOCAL_REGION: &str = "us-east-1";

#[derive(Debug, Args)]
pub(crate) struct Connection {
    /// Talk to the local stack on its default port.
    #[arg(long, global = true, conflicts_with = "endpoint_url")]
    local: bool,
    /// Talk to this DynamoDB endpoint.
    #[arg(long, global = true, value_name = "URL", value_parser = endpoint, env = "ANTUMBRA_ENDPOINT_URL")]
    endpoint_url: Option<String>,
    /// Talk to this SQS endpoint.
    #[arg(long, global = true, value_name = "URL", value_parser = endpoint, env = "ANTUMBRA_AWS_URL", alias = "queue-endpoint")]
    aws_url: Option<String>,
    /// The AWS region.
    #[arg(long, global = true)]
    region: Option<String>,
    /// The profile of the AWS configuration.
    #[arg(long, global = true)]
    profile: Option<String>,
    /// The table that holds shadows and sensors.
    #[arg(
        long,
        global = true,
        default_value = "antumbra",
        env = "ANTUMBRA_TABLE"
    )]
    table: String,
    /// How the table keeps the two documents of a shadow.
    #[arg(long, global = true, value_enum, default_value_t = LayoutWord::Separate, env = "ANTUMBRA_LAYOUT")]
    layout: LayoutWord,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LayoutWord {
    Separate,
    Combined,
}

impl Connection {
    pub(crate) async fn shadows(&self) -> Shadows<DynamoDbShadows> {
        let layout = match self.layout {
            LayoutWord::Separate => Layout::Separate,
            LayoutWord::Combined => Layout::Combined,
        };
        let config = ShadowTableConfig::new(&self.table).layout(layout);
        Shadows::new(DynamoDbShadows::connect(&self.sdk_config().await, config))
    }

    pub(crate) async fn sensors(&self) -> Sensors<DynamoDbSensors> {
        let config = SensorConfig::new(&self.table);
        Sensors::new(DynamoDbSensors::connect(&self.sdk_config().await, config))
    }

    /// A failure to reach anybody, with who it was that could not be reached.
    pub(crate) fn explained(&self, failure: CliError) -> CliError {
        let endpoint = self.local.then_some(LOCAL_ENDPOINT);
        let endpoint = endpoint.or(self.endpoint_url.as_deref());
        match endpoint {
            Some(endpoint) if failure.kind == Kind::Unavailable => CliError {
                reason: format!(
                    "{}, asking {endpoint}; is `antumbra local` running there?",
                    failure.reason
                ),
                ..failure
            },
            _ => failure,
        }
    }

    /// Whether the local stack is meant.
    pub(crate) fn is_local(&self) -> bool {
        self.local
    }

    /// The way to all of AWS but DynamoDB, at an endpoint of its own if given.
    pub(crate) async fn aws(&self) -> SdkConfig {
        let local = self.local.then_some(LOCAL_AWS);
        self.load(self.aws_url.as_deref().or(local)).await
    }

    /// The table everything but messages is in.
    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    pub(crate) async fn sdk_config(&self) -> SdkConfig {
        let local = self.local.then_some(LOCAL_ENDPOINT);
        self.load(self.endpoint_url.as_deref().or(local)).await
    }

    async fn load(&self, endpoint: Option<&str>) -> SdkConfig {
        let mut loader = aws_config::defaults(BehaviorVersion::latest());
        if self.local {
            // The emulator takes any credentials; asking the machine for some could take seconds.
            loader = loader.region(Region::new(LOCAL_REGION)).test_credentials();
        }
        if let Some(url) = endpoint {
            loader = loader.endpoint_url(url);
        }
        if let Some(region) = &self.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(profile) = &self.profile {
            loader = loader.profile_name(profile);
        }
        loader.load().await
    }
}

/// An endpoint as the SDK can use it: a scheme and a host.
fn endpoint(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with(['/', ':']) => Ok(text.to_owned()),
        _ => Err("an endpoint begins with http:// or https:// and names a host".to_owned()),
    }
}
