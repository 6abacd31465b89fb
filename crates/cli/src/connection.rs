//! Connection options: AWS by the usual configuration, or the local stack.

use antumbra_dynamodb::{DynamoDbSensors, DynamoDbShadows, SensorConfig, ShadowTableConfig};
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::{Layout, Shadows};
use antumbra_wire::topic_prefix::TopicPrefix;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use clap::{Args, ValueEnum};

use crate::error::{CliError, ExitStatus};

/// DynamoDB of the local stack.
const LOCAL_DYNAMODB: &str = "http://127.0.0.1:8000";
/// SQS of the local stack.
const LOCAL_AWS: &str = "http://127.0.0.1:4566";
const LOCAL_REGION: &str = "us-east-1";
/// Timeout of the check whether an endpoint is reachable.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Connection {
    /// Use the local stack on its default ports.
    #[arg(long, global = true, conflicts_with = "endpoint_url")]
    local: bool,
    /// DynamoDB endpoint.
    #[arg(long, global = true, value_name = "URL", value_parser = endpoint, env = "ANTUMBRA_ENDPOINT_URL")]
    endpoint_url: Option<String>,
    /// SQS endpoint.
    #[arg(long, global = true, value_name = "URL", value_parser = endpoint, env = "ANTUMBRA_AWS_URL", alias = "queue-endpoint")]
    aws_url: Option<String>,
    /// AWS region.
    #[arg(long, global = true)]
    region: Option<String>,
    /// Profile of the AWS configuration.
    #[arg(long, global = true)]
    profile: Option<String>,
    /// Table of shadows, sensors and clients.
    #[arg(
        long,
        global = true,
        default_value = "antumbra",
        env = "ANTUMBRA_TABLE"
    )]
    table: String,
    /// Layout of shadows in the table.
    #[arg(long, global = true, value_enum, default_value_t = LayoutWord::Separate, env = "ANTUMBRA_LAYOUT")]
    layout: LayoutWord,
    /// Prefix of all MQTT topics of the deployment, such as prod/; topics on the command line have none.
    #[arg(
        long,
        global = true,
        default_value_t,
        value_name = "PREFIX",
        env = "ANTUMBRA_TOPIC_PREFIX"
    )]
    topic_prefix: TopicPrefix,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LayoutWord {
    Separate,
    Combined,
}

impl Connection {
    pub(crate) async fn shadows(&self) -> Shadows<DynamoDbShadows> {
        let (sdk, table) = (self.sdk_config().await, self.shadow_table());
        Shadows::new(DynamoDbShadows::connect(&sdk, table))
    }

    pub(crate) fn shadow_table(&self) -> ShadowTableConfig {
        let layout = match self.layout {
            LayoutWord::Separate => Layout::Separate,
            LayoutWord::Combined => Layout::Combined,
        };
        ShadowTableConfig::new(&self.table).layout(layout)
    }

    pub(crate) async fn sensors(&self) -> Sensors<DynamoDbSensors> {
        let config = SensorConfig::new(&self.table);
        Sensors::new(DynamoDbSensors::connect(&self.sdk_config().await, config))
    }

    /// Adds the endpoint to an error of DynamoDB, and a hint if nothing listens there.
    pub(crate) fn explain(&self, error: CliError) -> CliError {
        let local = self.local.then_some(LOCAL_DYNAMODB);
        match local.or(self.endpoint_url.as_deref()) {
            Some(endpoint) if error.status == ExitStatus::Unavailable => {
                let hint = match is_listening(endpoint) {
                    true => "",
                    false => "; nothing listens there: start `antumbra local`",
                };
                CliError::unavailable(format!("{} (endpoint {endpoint}){hint}", error.reason))
            }
            _ => error,
        }
    }

    pub(crate) fn is_local(&self) -> bool {
        self.local
    }

    /// Configuration for all AWS services except DynamoDB.
    pub(crate) async fn aws(&self) -> SdkConfig {
        let local = self.local.then_some(LOCAL_AWS);
        self.load(self.aws_url.as_deref().or(local)).await
    }

    pub(crate) fn topic_prefix(&self) -> &TopicPrefix {
        &self.topic_prefix
    }

    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// Configuration for DynamoDB.
    pub(crate) async fn sdk_config(&self) -> SdkConfig {
        let local = self.local.then_some(LOCAL_DYNAMODB);
        self.load(self.endpoint_url.as_deref().or(local)).await
    }

    async fn load(&self, endpoint: Option<&str>) -> SdkConfig {
        let mut loader = aws_config::defaults(BehaviorVersion::latest());
        if self.local {
            // The emulators accept any credentials; looking for real ones can take seconds.
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

fn is_listening(endpoint: &str) -> bool {
    let Some((scheme, rest)) = endpoint.split_once("://") else {
        return false;
    };
    let host = rest.split('/').next().unwrap_or_default();
    let host = match host.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:{}", if scheme == "https" { 443 } else { 80 }),
    };
    let addresses = std::net::ToSocketAddrs::to_socket_addrs(&host);
    addresses.is_ok_and(|mut all| {
        all.any(|address| std::net::TcpStream::connect_timeout(&address, CONNECT).is_ok())
    })
}

/// Checks that an endpoint has a scheme and a host.
fn endpoint(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with(['/', ':']) => Ok(text.to_owned()),
        _ => Err("an endpoint must start with http:// or https:// and name a host".to_owned()),
    }
}
