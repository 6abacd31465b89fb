//! Connection options: AWS by the usual configuration, or the local stack.

use std::path::PathBuf;

use antumbra_dynamodb::{
    DynamoDbSensors, DynamoDbSettings, DynamoDbShadows, MAIN, SensorConfig, ShadowTableConfig,
    TableSettings,
};
use antumbra_service::sensors::Sensors;
use antumbra_service::shadows::{Layout, Shadows};
use antumbra_shadow::Model;
use antumbra_wire::topic_prefix::TopicPrefix;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::provider::ProvideCredentials as _;
use aws_credential_types::provider::error::CredentialsError;
use clap::{Args, ValueEnum};

use crate::error::{CliError, ExitStatus};
use crate::stacks::{self, RunningStack};

/// Addresses of a local stack with the default ports, for one that left no file in the state directory.
const LOCAL_DYNAMODB: &str = "http://127.0.0.1:8000";
const LOCAL_AWS: &str = "http://127.0.0.1:4566";
const LOCAL_MQTT: &str = "mqtt://127.0.0.1:1883";
const LOCAL_REGION: &str = "us-east-1";
/// Maximum wait for credentials of a profile, which may run a program or call a service.
const SLOW_CREDENTIALS: std::time::Duration = std::time::Duration::from_secs(30);
/// Maximum wait for the metadata service of a virtual machine, and for names.
const METADATA: std::time::Duration = std::time::Duration::from_millis(1_200);
/// Timeout of the check whether an endpoint is reachable.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Connection {
    /// Use the running local stack; with several, the one of this name (`antumbra local --name NAME`).
    #[arg(long, global = true, conflicts_with = "endpoint_url", value_name = "NAME",
        num_args = 0..=1, require_equals = true, value_parser = stacks::name)]
    local: Option<Option<String>>,
    #[arg(skip)]
    stack: Option<RunningStack>,
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
    /// Layout of shadows in a table that has no settings yet [default: separate]
    #[arg(long, global = true, value_enum, env = "ANTUMBRA_LAYOUT")]
    layout: Option<LayoutWord>,
    /// Prefix of all MQTT topics of the deployment, such as prod/; topics on the command line have none.
    #[arg(
        long,
        global = true,
        value_name = "PREFIX",
        env = "ANTUMBRA_TOPIC_PREFIX"
    )]
    topic_prefix: Option<TopicPrefix>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LayoutWord {
    Separate,
    Combined,
}

/// The name of a table without the suffix of a restore.
fn deployment_of(table: &str) -> &str {
    let is_time = |time: &str| time.len() == 14 && time.bytes().all(|byte| byte.is_ascii_digit());
    match table.rsplit_once("-r") {
        Some((name, time)) if is_time(time) => name,
        _ => table,
    }
}

impl Connection {
    /// The shadows of the table, with its settings. `writes` records those of a table that has none.
    pub(crate) async fn shadows(&self, writes: bool) -> Result<Shadows<DynamoDbShadows>, CliError> {
        let settings = self.settings().await?;
        let sdk = self.sdk_config().await;
        if writes {
            let table = DynamoDbSettings::connect(&sdk, &self.table);
            table.ensure(&settings).await.map_err(CliError::failed)?;
        }
        let table = ShadowTableConfig::new(&self.table).layout(settings.layout);
        let shadows = Shadows::new(DynamoDbShadows::connect(&sdk, table));
        Ok(shadows.with_model(settings.model(Model::default())))
    }

    /// The settings of the table, or of a new one.
    pub(crate) async fn settings(&self) -> Result<TableSettings, CliError> {
        let table = DynamoDbSettings::connect(&self.sdk_config().await, &self.table);
        let stored = table
            .read()
            .await
            .map_err(|error| self.explain(error.into()))?;
        match (stored, self.given_layout()) {
            (Some(stored), Some(given)) if stored.layout != given => {
                Err(CliError::invalid(format!(
                    "the table {} has the layout {}, not {}; leave out --layout",
                    self.table,
                    stored.layout.as_str(),
                    given.as_str()
                )))
            }
            (Some(stored), _) => Ok(stored),
            (None, given) => Ok(TableSettings {
                layout: given.unwrap_or_default(),
                ..TableSettings::default()
            }),
        }
    }

    pub(crate) async fn sensors(&self) -> Sensors<DynamoDbSensors> {
        let config = SensorConfig::new(&self.table);
        Sensors::new(DynamoDbSensors::connect(&self.sdk_config().await, config))
    }

    /// Says in an error of DynamoDB what is wrong and what to do, by the code of the response.
    pub(crate) fn explain(&self, error: CliError) -> CliError {
        self.explain_table(error, &self.table, "--table")
    }

    /// The same for another table, which this option names.
    pub(crate) fn explain_table(&self, error: CliError, table: &str, option: &str) -> CliError {
        if error.status != ExitStatus::Unavailable {
            return error;
        }
        let place = self.place(Service::DynamoDb);
        let has = |codes: &[&str]| codes.iter().any(|code| error.reason.contains(code));
        let reason = if has(&["ResourceNotFoundException"]) {
            format!(
                "the table {table} does not exist {place}; name another with {option}, deploy the stack, or use --local"
            )
        } else if has(&["AccessDenied"]) {
            format!(
                "the AWS credentials may not use the table {table} {place}; use those of a role that may, for example with --profile"
            )
        } else if has(&[
            "UnrecognizedClientException",
            "InvalidSignatureException",
            "ExpiredToken",
            "MissingAuthenticationToken",
            "InvalidClientTokenId",
        ]) {
            format!(
                "AWS rejects the credentials {place}; renew them or choose others with --profile"
            )
        } else if has(&["is not one of DynamoDB"]) {
            format!("{} {place}; correct --endpoint-url", error.reason)
        } else {
            format!("{} {place}", error.reason)
        };
        CliError::unavailable(reason)
    }

    /// The address of a service, for error messages.
    fn place(&self, service: Service) -> String {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        let region = self.region.clone();
        let region = region.or_else(|| variable("AWS_REGION").or(variable("AWS_DEFAULT_REGION")));
        match (self.endpoint(service), region) {
            (Some(endpoint), _) => format!("at {endpoint}"),
            (None, Some(region)) => format!("in {region}"),
            (None, None) => "in AWS".to_owned(),
        }
    }

    fn endpoint(&self, service: Service) -> Option<&str> {
        let (given, local) = match service {
            Service::DynamoDb => (
                &self.endpoint_url,
                self.local_address(|stack| &stack.dynamodb, LOCAL_DYNAMODB),
            ),
            Service::Sqs | Service::IotData => (
                &self.aws_url,
                self.local_address(|stack| &stack.aws, LOCAL_AWS),
            ),
        };
        given.as_deref().or(local)
    }

    /// Describes where commands go, for `doctor`.
    pub(crate) fn description(&self) -> String {
        match (&self.stack, self.endpoint(Service::DynamoDb)) {
            (Some(stack), _) => format!(
                "local stack {} (process {}) at {}",
                stack.name, stack.process, stack.dynamodb
            ),
            (None, Some(endpoint)) => format!("DynamoDB at {endpoint}"),
            (None, None) => match self.profile_name() {
                Some(name) => format!("AWS by profile {name}"),
                None => "AWS by the environment and the default profile".to_owned(),
            },
        }
    }

    /// Compares the version of the local stack with that of this command.
    pub(crate) fn check_version(&self) -> Result<String, CliError> {
        let own = env!("CARGO_PKG_VERSION");
        match &self.stack {
            Some(stack) if stack.version != own => Err(CliError::failed(format!(
                "the stack has version {}, this command {own}; restart the stack",
                stack.version
            ))),
            _ => Ok(own.to_owned()),
        }
    }

    fn profile_name(&self) -> Option<String> {
        let variable = std::env::var("AWS_PROFILE").ok();
        let profile = self.profile.clone().or(variable);
        profile.filter(|name| !name.is_empty())
    }

    /// Checks profile, credentials and region, which the SDK would report as a failed connection.
    pub(crate) async fn check_credentials(&self) -> Result<String, CliError> {
        if self.is_local() {
            return Ok("any are accepted by the local stack".to_owned());
        }
        let profile = self.profile_name();
        if let Some(name) = &profile
            && !profile_exists(name)
        {
            return Err(CliError::invalid(format!(
                "the AWS profile {name} does not exist; choose another with --profile or AWS_PROFILE, or add it with `aws configure --profile {name}`"
            )));
        }
        let sdk = self.sdk_config().await;
        // Without any configuration, only the metadata service of a virtual machine is left, which answers at once.
        let limit = match profile.is_some() || has_credential_settings() {
            true => SLOW_CREDENTIALS,
            false => METADATA,
        };
        let found = match sdk.credentials_provider() {
            Some(provider) => tokio::time::timeout(limit, provider.provide_credentials()).await,
            None => Ok(Err(CredentialsError::not_loaded("no provider"))),
        };
        let credentials = match found {
            Ok(Ok(credentials)) => credentials,
            Ok(Err(CredentialsError::CredentialsNotLoaded(_))) | Err(_) => {
                return Err(CliError::unavailable(
                    "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a profile with --profile, or use --local",
                ));
            }
            Ok(Err(error)) => {
                return Err(CliError::unavailable(format!(
                    "the AWS credentials cannot be loaded: {}; check the profile",
                    crate::error::chain(&error)
                )));
            }
        };
        let Some(region) = sdk.region() else {
            return Err(CliError::invalid(
                "no AWS region is set; use --region, AWS_REGION or the region of a profile, or --local",
            ));
        };
        Ok(format!("{} in {region}", credentials.access_key_id()))
    }

    /// Checks that a service can be called: that something listens at its endpoint or that its region exists, and that
    /// there are credentials.
    pub(crate) async fn check(&self, service: Service) -> Result<(), CliError> {
        let (name, host, id, option) = match service {
            Service::DynamoDb => ("DynamoDB", "dynamodb", "DYNAMODB", "--endpoint-url"),
            Service::Sqs => ("SQS", "sqs", "SQS", "--aws-url"),
            Service::IotData => ("AWS IoT", "data-ats.iot", "IOT_DATA_PLANE", "--aws-url"),
        };
        let endpoint = self.endpoint(service);
        if let Some(endpoint) = endpoint.filter(|endpoint| !is_listening(endpoint)) {
            return Err(CliError::unavailable(format!(
                "nothing listens at {endpoint}; start `antumbra local`, or correct {option}"
            )));
        }
        self.check_credentials().await?;
        let variables = [
            "AWS_ENDPOINT_URL".to_owned(),
            format!("AWS_ENDPOINT_URL_{id}"),
        ];
        let is_set = |name: &String| std::env::var_os(name).is_some();
        if endpoint.is_some() || variables.iter().any(is_set) {
            return Ok(());
        }
        let sdk = self.sdk_config().await;
        let region = sdk.region().map(ToString::to_string).unwrap_or_default();
        let address = format!("{host}.{region}.amazonaws.com:443");
        let found = tokio::time::timeout(METADATA, tokio::net::lookup_host(address)).await;
        match found {
            Ok(Ok(_)) => Ok(()),
            _ => Err(CliError::unavailable(format!(
                "there is no {name} in the region {region}, or no network; check --region and the connection"
            ))),
        }
    }

    /// Finds the local stack, if it is to be used.
    pub(crate) fn find_stack(&mut self) -> Result<(), CliError> {
        if let Some(name) = &self.local {
            self.stack = stacks::find(name.as_deref())?;
        }
        Ok(())
    }

    /// Uses the local stack, also if no option says so.
    pub(crate) fn use_local(&mut self) -> Result<(), CliError> {
        self.local.get_or_insert(None);
        self.find_stack()
    }

    pub(crate) fn is_local(&self) -> bool {
        self.local.is_some()
    }

    /// Broker of the local stack, if it is to be used.
    pub(crate) fn local_broker(&self) -> Option<&str> {
        self.local_address(|stack| &stack.mqtt, LOCAL_MQTT)
    }

    fn local_address<'a>(
        &'a self,
        of: impl FnOnce(&'a RunningStack) -> &'a str,
        default: &'a str,
    ) -> Option<&'a str> {
        self.is_local()
            .then(|| self.stack.as_ref().map_or(default, of))
    }

    /// Configuration for all AWS services except DynamoDB.
    pub(crate) async fn aws(&self) -> SdkConfig {
        self.load(self.endpoint(Service::Sqs)).await
    }

    pub(crate) fn topic_prefix(&self) -> TopicPrefix {
        self.topic_prefix.clone().unwrap_or_default()
    }

    /// The prefix, if it is given.
    pub(crate) fn given_topic_prefix(&self) -> Option<&TopicPrefix> {
        self.topic_prefix.as_ref()
    }

    /// The layout, if it is given.
    pub(crate) fn given_layout(&self) -> Option<Layout> {
        self.layout.map(|layout| match layout {
            LayoutWord::Separate => Layout::Separate,
            LayoutWord::Combined => Layout::Combined,
        })
    }

    pub(crate) fn table(&self) -> &str {
        &self.table
    }

    /// Name of the deployment that the table belongs to.
    fn deployment(&self) -> &str {
        deployment_of(&self.table)
    }

    /// Tells whether a table is the main one of the same deployment, restored or not.
    pub(crate) fn is_of_deployment(&self, table: &str) -> bool {
        deployment_of(table) == self.deployment()
    }

    /// The queue of the deployment that has this name in a deployment with the default name.
    pub(crate) fn queue(&self, name: &str) -> String {
        let rest = name.strip_prefix(MAIN.name).unwrap_or(name);
        format!("{}{rest}", self.deployment())
    }

    /// The table of the inbox. A restore replaces it.
    pub(crate) fn messages_table(&self) -> String {
        format!("{}-messages", self.table)
    }

    /// The table of the history. A restore leaves it as it is.
    pub(crate) fn history_table(&self) -> String {
        format!("{}-history", self.deployment())
    }

    /// Configuration for DynamoDB.
    pub(crate) async fn sdk_config(&self) -> SdkConfig {
        self.load(self.endpoint(Service::DynamoDb)).await
    }

    /// The connection to a service that is imported from. Without an endpoint it is AWS, also if the table is in the
    /// local stack; region and profile are those for the table unless they are given.
    pub(crate) fn source(
        &self,
        endpoint: Option<String>,
        region: Option<String>,
        profile: Option<String>,
    ) -> Connection {
        Connection {
            local: None,
            stack: None,
            endpoint_url: endpoint.clone(),
            aws_url: endpoint,
            region: region.or_else(|| self.region.clone()),
            profile: profile.or_else(|| self.profile.clone()),
            table: self.table.clone(),
            layout: self.layout,
            topic_prefix: self.topic_prefix.clone(),
        }
    }

    /// Returns whether both are the same place, as far as the options say.
    pub(crate) fn is_same_place(&self, other: &Connection) -> bool {
        let place = |of: &Connection| {
            let endpoint = of.endpoint(Service::DynamoDb).map(str::to_owned);
            (endpoint, of.region.clone(), of.profile.clone())
        };
        place(self) == place(other)
    }

    async fn load(&self, endpoint: Option<&str>) -> SdkConfig {
        let mut loader = aws_config::defaults(BehaviorVersion::latest());
        if self.is_local() {
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

/// A service that commands call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    DynamoDb,
    Sqs,
    IotData,
}

/// Returns `true` if a profile is in the AWS configuration or credentials file.
fn profile_exists(name: &str) -> bool {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let file = |variable: &str, default: &str| {
        let path = std::env::var_os(variable).map(PathBuf::from);
        let path = path.or_else(|| Some(home.as_ref()?.join(".aws").join(default)))?;
        std::fs::read_to_string(path).ok()
    };
    let texts = [
        file("AWS_CONFIG_FILE", "config"),
        file("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    ];
    let mut lines = texts.iter().flatten().flat_map(|text| text.lines());
    lines.any(|line| {
        let section = line.trim().strip_prefix('[');
        let section = section.and_then(|line| line.split(']').next());
        let section = section.unwrap_or_default().trim();
        let section = section.strip_prefix("profile ").unwrap_or(section);
        section.trim() == name
    })
}

/// Returns `true` if anything but the metadata service can provide credentials.
fn has_credential_settings() -> bool {
    let variables = [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    variables.iter().any(is_set) || profile_exists("default")
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
pub(crate) fn endpoint(text: &str) -> Result<String, String> {
    let host = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    match host {
        Some(host) if !host.is_empty() && !host.starts_with(['/', ':']) => Ok(text.to_owned()),
        _ => Err("an endpoint must start with http:// or https:// and name a host".to_owned()),
    }
}
