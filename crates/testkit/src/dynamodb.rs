//! DynamoDB for tests, over HTTP.
//!
//! One database per test binary, a table per test. Each test's client calls it through an
//! [`Endpoint`], which records the calls and can respond with errors that no emulator produces.

mod endpoint;
mod server;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use antumbra_dynamodb::{MAIN, SECRETS, TableDefinition, secrets_table};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};

pub use endpoint::{Call, Endpoint, Reply, failure};

/// Longer than any response takes, but short enough to end a test that gets none.
const ATTEMPT: Duration = Duration::from_secs(60);
const OPERATION: Duration = Duration::from_secs(120);

/// A client of an endpoint with three attempts per call, almost without backoff.
pub fn client(endpoint: &Endpoint) -> Client {
    let retries = RetryConfig::standard()
        .with_max_attempts(3)
        .with_initial_backoff(Duration::from_millis(1));
    let timeouts = TimeoutConfig::builder()
        .operation_attempt_timeout(ATTEMPT)
        .operation_timeout(OPERATION)
        .build();
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::from_static("eu-north-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .endpoint_url(endpoint.url())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .retry_config(retries)
        .timeout_config(timeouts)
        .build();
    Client::from_conf(config)
}

/// A new table behind an endpoint of its own.
pub struct TestTable {
    pub endpoint: Endpoint,
    pub client: Client,
    pub name: String,
    pub stream_arn: String,
}

impl TestTable {
    /// Creates a table under a new name, and for a main table that of its secrets. Its creation is not among the recorded calls.
    pub async fn create(definition: TableDefinition<'_>) -> TestTable {
        let endpoint = Endpoint::start().await;
        let client = client(&endpoint);
        let name = table_name();
        let table = TableDefinition {
            name: &name,
            ..lasting(definition)
        };
        let created = table.ensure(&client).await.unwrap();
        if definition.name == MAIN.name {
            let secrets = TableDefinition {
                name: &secrets_table(&name),
                ..SECRETS
            };
            secrets.ensure(&client).await.unwrap();
        }
        endpoint.take_calls();
        TestTable {
            endpoint,
            client,
            name,
            stream_arn: created.stream_arn.unwrap(),
        }
    }

    /// Creates another table at the same endpoint and returns its name.
    pub async fn another(&self, definition: TableDefinition<'_>) -> String {
        let name = table_name();
        let table = TableDefinition {
            name: &name,
            ..lasting(definition)
        };
        table.ensure(&self.client).await.unwrap();
        self.endpoint.take_calls();
        name
    }
}

/// The same table without expiry: tests have clocks of their own, and DynamoDB Local deletes what has expired by its clock.
fn lasting(definition: TableDefinition<'_>) -> TableDefinition<'_> {
    TableDefinition {
        expiry: None,
        ..definition
    }
}

/// A table name that no other test has.
pub fn table_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("antumbra-test-{}-{next}", std::process::id())
}
