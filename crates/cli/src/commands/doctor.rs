//! `antumbra doctor`: checks everything a command needs, and says how to fix what is wrong.

use std::time::Duration;

use antumbra_dynamodb::{MAIN, secrets_table, stream_of};
use antumbra_lambda_kit::functions::queues;
use antumbra_publish::queue_url;
use clap::Args;
use serde::Serialize;

use crate::commands::messages::BrokerArguments;
use crate::commands::registrations::Directory;
use crate::connection::{Connection, Service};
use crate::error::CliError;
use crate::mqtt::new_client_id;
use crate::output::{self, BAD, FAINT, GOOD, styled, table};

#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    #[command(flatten)]
    broker: BrokerArguments,
    #[command(flatten)]
    registrations: Directory,
    /// Table of the inbox [default: that of the deployment]
    #[arg(long, value_name = "TABLE")]
    messages_table: Option<String>,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    status: &'static str,
    /// The finding, or the problem and how to fix it.
    detail: String,
}

impl Check {
    fn new(name: &'static str, result: Result<String, CliError>) -> Check {
        let (status, detail) = match result {
            Ok(detail) => ("ok", detail),
            Err(error) => ("failed", error.reason),
        };
        Check {
            name,
            status,
            detail,
        }
    }

    fn skipped(name: &'static str, reason: &str) -> Check {
        Check {
            name,
            status: "skipped",
            detail: reason.to_owned(),
        }
    }
}

pub(crate) async fn run(
    arguments: DoctorArguments,
    connection: &Connection,
    json: bool,
) -> Result<(), CliError> {
    let checks = checks(&arguments, connection).await;
    if json {
        #[derive(Serialize)]
        struct All<'a> {
            checks: &'a [Check],
        }
        output::print(&output::json(&All { checks: &checks }))?;
    } else {
        let row = |check: &Check| {
            let style = match check.status {
                "ok" => GOOD,
                "failed" => BAD,
                _ => FAINT,
            };
            let status = styled(style, check.status);
            vec![status, check.name.to_owned(), check.detail.clone()]
        };
        let rows: Vec<Vec<String>> = checks.iter().map(row).collect();
        output::print(&table(&rows))?;
    }
    match checks.iter().filter(|one| one.status == "failed").count() {
        0 => Ok(()),
        failed => Err(CliError::failed(format!(
            "{failed} of {} checks failed; fix the first one and run `antumbra doctor` again",
            checks.len()
        ))),
    }
}

async fn checks(arguments: &DoctorArguments, connection: &Connection) -> Vec<Check> {
    let mut checks = vec![
        Check::new("configuration", Ok(connection.description())),
        Check::new("version", connection.check_version()),
    ];
    let registrations = arguments.registrations.load();
    let registrations = registrations.map(|all| format!("{} registrations", all.len()));
    checks.push(match arguments.registrations.is_absent() {
        true => Check::skipped("registrations", "there is no directory registrations here"),
        false => Check::new("registrations", registrations),
    });
    let credentials = connection.check_credentials().await;
    let usable = credentials.is_ok();
    checks.push(Check::new("credentials", credentials));
    let reason = "needs credentials";
    if !usable {
        let names = ["DynamoDB", "tables", "SQS", "queues", "broker"];
        checks.extend(names.map(|name| Check::skipped(name, reason)));
        return checks;
    }
    let dynamodb = connection.check(Service::DynamoDb).await;
    let reachable = dynamodb.is_ok();
    checks.push(Check::new(
        "DynamoDB",
        dynamodb.map(|()| "reachable".to_owned()),
    ));
    checks.push(match reachable {
        true => Check::new("tables", tables(arguments, connection).await),
        false => Check::skipped("tables", "needs DynamoDB"),
    });
    let sqs = connection.check(Service::Sqs).await;
    let reachable = sqs.is_ok();
    checks.push(Check::new("SQS", sqs.map(|()| "reachable".to_owned())));
    checks.push(match reachable {
        true => Check::new("queues", check_queues(connection).await),
        false => Check::skipped("queues", "needs SQS"),
    });
    checks.push(match arguments.broker.is_given(connection) {
        true => Check::new("broker", broker(arguments, connection).await),
        false => Check::skipped("broker", "give --iot-endpoint or --mqtt-url to check it"),
    });
    checks
}

/// Checks that the tables exist and have streams, except that of the secrets.
async fn tables(arguments: &DoctorArguments, connection: &Connection) -> Result<String, CliError> {
    let client = antumbra_dynamodb::client(&connection.sdk_config().await);
    let main = connection.table();
    let messages = arguments.messages_table.clone();
    let messages = messages.unwrap_or_else(|| connection.messages_table());
    for (table, option) in [(main, "--table"), (messages.as_str(), "--messages-table")] {
        let stream = stream_of(&client, table).await.map_err(CliError::from);
        let stream = stream.map_err(|error| connection.explain_table(error, table, option))?;
        if stream.is_none() {
            return Err(CliError::failed(format!(
                "the table {table} has no stream, so that nothing is notified; enable it with old and new images"
            )));
        }
    }
    let secrets = secrets_table(main);
    let stream = stream_of(&client, &secrets).await.map_err(CliError::from);
    let stream = stream.map_err(|error| connection.explain_table(error, &secrets, "--table"))?;
    if stream.is_some() {
        return Err(CliError::failed(format!(
            "the table {secrets} has a stream, which shows signing secrets to its readers; disable it"
        )));
    }
    let default = if main == MAIN.name { "" } else { " (--table)" };
    Ok(format!(
        "{main}{default} and {messages} with streams, {secrets} without"
    ))
}

async fn check_queues(connection: &Connection) -> Result<String, CliError> {
    let sqs = aws_sdk_sqs::Client::new(&connection.aws().await);
    let names = [
        queues::INBOUND,
        queues::OUTBOUND,
        queues::SIGNALS,
        queues::DELIVERIES,
        queues::DELIVERIES_FIFO,
        queues::DELIVERIES_DEAD,
        queues::DELIVERIES_DEAD_FIFO,
        queues::QUARANTINE,
        queues::UNDELIVERABLE,
        queues::SPILL,
    ];
    for name in names {
        queue_url(&sqs, &connection.queue(name)).await?;
    }
    Ok(format!("{} queues", names.len()))
}

async fn broker(arguments: &DoctorArguments, connection: &Connection) -> Result<String, CliError> {
    let client_id = new_client_id();
    let opening = arguments.broker.open(connection, &client_id);
    let opened = tokio::time::timeout(Duration::from_secs(5), opening).await;
    let session = opened.map_err(|_| {
        CliError::unavailable("the broker does not answer; check its address and the network")
    })??;
    session.close().await;
    Ok("connected".to_owned())
}
