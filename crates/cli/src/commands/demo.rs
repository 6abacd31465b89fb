//! `antumbra demo`: a checked tour of the whole product on real wire protocols, in under a minute.
//!
//! Any result that differs from the expected one makes it fail, so the demo is a test too.

mod access;
mod fleet;
mod history;
mod inbox;
mod notifications;
mod report;
mod sensors;
mod shadow_mqtt;
mod shadows;
mod stack;

use std::time::Duration;

use antumbra_local::function::{Function, HandlerError};
use antumbra_wire::topic_prefix::TopicPrefix;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use tokio::sync::watch;

use crate::connection::Connection;
use crate::error::CliError;
use crate::output::{FAINT, STRONG, json, print, styled};
use report::{DemoFailure, DemoReport, DemoResult, Step};
use stack::{DemoStack, Timeout};

/// Timeout of a step: long, since the machine may be busy.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// The functions of the stack. The demo calls all of them.
const FUNCTIONS: [&str; 13] = [
    "history-writer",
    "http-api",
    "liveness-sweep",
    "message-delete",
    "message-get",
    "message-ingest",
    "message-next",
    "message-query",
    "message-send",
    "sensor-ingest",
    "shadow-requests",
    "stream-listener",
    "webhook-deliver",
];

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// Make a function fail at every call, to show that the demo notices.
    #[arg(long = "break", value_name = "FUNCTION", value_parser = PossibleValuesParser::new(FUNCTIONS))]
    broken: Option<String>,
    /// Let a small fleet live in the running local stack instead, to look at in its console.
    #[arg(long, conflicts_with = "broken")]
    pub(crate) into_local: bool,
    /// Time for which that fleet reports.
    #[arg(
        long,
        default_value_t = 300,
        value_name = "SECONDS",
        requires = "into_local"
    )]
    seconds: u64,
}

pub(crate) async fn run(
    arguments: DemoArguments,
    connection: &Connection,
    as_json: bool,
) -> Result<(), CliError> {
    if arguments.into_local {
        return fleet::run(connection, arguments.seconds).await;
    }
    let topic_prefix = &connection.topic_prefix();
    let mut report = DemoReport::new(!as_json);
    report.print(&format!(
        "{} Everything runs in this process and in memory; every step is checked.\n{}",
        styled(STRONG, "A tour of Antumbra."),
        styled(
            FAINT,
            "DynamoDB, SQS, SNS, MQTT and HTTP run over their wire protocols, as on AWS."
        ),
    ));
    let outcome = run_chapters(&mut report, topic_prefix, STEP_TIMEOUT, arguments.broken).await;
    report.finish(outcome.as_ref().err());
    if as_json {
        print(&report_json(&report.steps, outcome.as_ref().err()))?;
    }
    outcome.map_err(|DemoFailure(reason)| CliError::failed(format!("the demo failed: {reason}")))
}

/// Runs all chapters in order; later chapters depend on earlier ones.
async fn run_chapters(
    report: &mut DemoReport,
    topic_prefix: &TopicPrefix,
    longest: Duration,
    broken: Option<String>,
) -> DemoResult {
    let (fails, failed) = watch::channel(false);
    let timeout = Timeout {
        longest,
        failed: broken.is_some().then_some(failed),
    };
    let stack = DemoStack::start(timeout, topic_prefix, move |function| {
        if broken.as_deref() == Some(function.name()) {
            failing(&function, fails.clone())
        } else {
            function
        }
    })
    .await?;
    shadows::report(&stack, report).await?;
    shadows::conflict(&stack, report).await?;
    shadows::acknowledge(&stack, report).await?;
    notifications::run(&stack, report).await?;
    shadow_mqtt::run(&stack, report).await?;
    inbox::run(&stack, report).await?;
    let endpoint = sensors::change(&stack, report).await?;
    sensors::silence(&stack, report, endpoint).await?;
    history::run(&stack, report).await?;
    access::run(&stack, report).await?;
    stack.stack.stop().await;
    Ok(())
}

/// Returns a function of the same name that fails at every call and reports it.
fn failing(function: &Function, fails: watch::Sender<bool>) -> Function {
    Function::new(function.name(), Duration::from_secs(1), move |_| {
        fails.send_replace(true);
        async { Err(HandlerError("broken by --break".to_owned())) }
    })
}

fn report_json(steps: &[Step], failure: Option<&DemoFailure>) -> String {
    #[derive(Serialize)]
    struct Report<'a> {
        passed: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<&'a str>,
        steps: &'a [Step],
    }
    json(&Report {
        passed: failure.is_none(),
        failure: failure.map(|DemoFailure(reason)| reason.as_str()),
        steps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn all_checks_of_the_demo_pass() {
        let mut report = DemoReport::new(false);
        let outcome = run_chapters(&mut report, &"tour/".parse().unwrap(), VERY_LONG, None).await;
        assert!(outcome.is_ok(), "{outcome:?} after {:#?}", report.steps);
    }

    /// The machine may build and test other things meanwhile.
    const VERY_LONG: Duration = Duration::from_secs(120);

    #[tokio::test]
    async fn the_demo_lists_every_function() {
        let (calls, mut called) = tokio::sync::mpsc::unbounded_channel();
        let timeout = Timeout {
            longest: STEP_TIMEOUT,
            failed: None,
        };
        let none = TopicPrefix::default();
        let stack = DemoStack::start(timeout, &none, move |function| {
            calls.send(function.name().to_owned()).unwrap();
            function
        });
        stack.await.unwrap().stack.stop().await;
        let mut names = Vec::new();
        while let Ok(name) = called.try_recv() {
            names.push(name);
        }
        names.sort();
        names.dedup();
        assert_eq!(names, FUNCTIONS);
    }

    /// Returns the chapter in which a broken function is noticed.
    fn chapter(function: &str) -> &'static str {
        match function {
            "stream-listener" => "Registrations send notifications",
            "shadow-requests" => "A device speaks AWS IoT Device Shadow",
            "http-api" | "sensor-ingest" | "webhook-deliver" => {
                "A lock changes, and a webhook is called"
            }
            "liveness-sweep" => "The lock is lost and restored",
            "history-writer" => "The past of a cold room",
            _ => "The inbox",
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_demo_notices_every_broken_function() {
        // All at once: most of the time is spent waiting for a timeout.
        let demos = FUNCTIONS.iter().map(|function| {
            Box::pin(async move {
                let mut report = DemoReport::new(false);
                let outcome = run_chapters(
                    &mut report,
                    &TopicPrefix::default(),
                    VERY_LONG,
                    Some((*function).to_owned()),
                )
                .await;
                assert!(outcome.is_err(), "{function} is broken and the demo passes");
                assert_eq!(
                    report.current_chapter(),
                    chapter(function),
                    "{function}: {outcome:?}"
                );
            })
        });
        futures_util::future::join_all(demos).await;
    }
}
