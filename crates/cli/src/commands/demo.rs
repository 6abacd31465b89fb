//! `antumbra demo`: the whole product in a minute, on real wire protocols, every step looked at.
//!
//! It fails when anything is not as it should be, so that it is a test as much as a tour.

mod inbox;
mod notifications;
mod receiver;
mod sensors;
mod shadows;
mod stage;
mod story;
mod vocabulary;

use std::time::Duration;

use antumbra_local::function::{Function, HandlerError};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;
use tokio::sync::watch;

use crate::error::CliError;
use crate::output::{FAINT, STRONG, json, print, styled};
use stage::{DemoStack, Patience};
use story::{DemoFailure, DemoReport, DemoResult, Step};

/// How long a step may take: long, since a machine may be busy.
const LONGEST: Duration = Duration::from_secs(20);

/// The functions of the stack, all of which the tour calls.
const FUNCTIONS: [&str; 12] = [
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
    /// Let a function fail whenever it is called, to see that the tour notices.
    #[arg(long = "break", value_name = "FUNCTION", value_parser = PossibleValuesParser::new(FUNCTIONS))]
    broken: Option<String>,
}

pub(crate) async fn run(arguments: DemoArguments, as_json: bool) -> Result<(), CliError> {
    let mut story = DemoReport::begin(!as_json);
    story.say(&format!(
        "{} Everything runs in this process, in memory; every step is checked.\n{}",
        styled(STRONG, "A tour of Antumbra."),
        styled(
            FAINT,
            "DynamoDB, SQS, SNS and MQTT are spoken to over the wire, as on AWS."
        ),
    ));
    let outcome = tell(&mut story, LONGEST, arguments.broken).await;
    story.ends(outcome.as_ref().err());
    if as_json {
        print(&told(&story.steps, outcome.as_ref().err()))?;
    }
    outcome
        .map_err(|DemoFailure(reason)| CliError::failed(format!("the tour ended early: {reason}")))
}

/// All chapters, in order: each builds on those before it.
async fn tell(story: &mut DemoReport, longest: Duration, broken: Option<String>) -> DemoResult {
    let (fails, failed) = watch::channel(false);
    let patience = Patience {
        longest,
        failed: broken.is_some().then_some(failed),
    };
    let stage = DemoStack::set(patience, move |function| {
        if broken.as_deref() == Some(function.name()) {
            failing(&function, fails.clone())
        } else {
            function
        }
    })
    .await?;
    shadows::report(&stage, story).await?;
    shadows::conflict(&stage, story).await?;
    shadows::wish(&stage, story).await?;
    notifications::fire(&stage, story).await?;
    vocabulary::speak(&stage, story).await?;
    inbox::read(&stage, story).await?;
    let watched = sensors::change(&stage, story).await?;
    sensors::silence(&stage, story, watched).await?;
    stage.stack.stop().await;
    Ok(())
}

/// A function of the same name that fails whenever it is called, and says so.
fn failing(function: &Function, fails: watch::Sender<bool>) -> Function {
    Function::new(function.name(), Duration::from_secs(1), move |_| {
        fails.send_replace(true);
        async { Err(HandlerError("broken to order".to_owned())) }
    })
}

fn told(steps: &[Step], surprise: Option<&DemoFailure>) -> String {
    #[derive(Serialize)]
    struct Told<'a> {
        passed: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        surprise: Option<&'a str>,
        steps: &'a [Step],
    }
    json(&Told {
        passed: surprise.is_none(),
        surprise: surprise.map(|DemoFailure(reason)| reason.as_str()),
        steps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_tour_shows_what_it_should() {
        let mut story = DemoReport::begin(false);
        let outcome = tell(&mut story, VERY_LONG, None).await;
        assert!(outcome.is_ok(), "{outcome:?} after {:#?}", story.steps);
    }

    /// The machine may build and test other things meanwhile.
    const VERY_LONG: Duration = Duration::from_secs(120);

    #[tokio::test]
    async fn the_tour_knows_every_function_there_is() {
        let (calls, mut called) = tokio::sync::mpsc::unbounded_channel();
        let patience = Patience {
            longest: LONGEST,
            failed: None,
        };
        let stage = DemoStack::set(patience, move |function| {
            calls.send(function.name().to_owned()).unwrap();
            function
        });
        stage.await.unwrap().stack.stop().await;
        let mut names = Vec::new();
        while let Ok(name) = called.try_recv() {
            names.push(name);
        }
        names.sort();
        names.dedup();
        assert_eq!(names, FUNCTIONS);
    }

    /// Where the lack of a function shows.
    fn chapter(function: &str) -> &'static str {
        match function {
            "stream-listener" => "Registrations fire",
            "shadow-requests" => "A device speaks AWS IoT Device Shadow",
            "http-api" | "sensor-ingest" | "webhook-deliver" => {
                "A lock changes, and a webhook hears of it"
            }
            "liveness-sweep" => "It falls silent, and comes back",
            _ => "A message waits in the inbox",
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_tour_notices_any_function_that_is_broken() {
        // Several at once: most of the time is spent on waiting for what does not come.
        for some in FUNCTIONS.chunks(8) {
            let tours = some.iter().map(|function| {
                Box::pin(async move {
                    let mut story = DemoReport::begin(false);
                    let outcome = tell(&mut story, VERY_LONG, Some((*function).to_owned())).await;
                    assert!(outcome.is_err(), "{function} is not missed");
                    assert_eq!(story.told(), chapter(function), "{function}: {outcome:?}");
                })
            });
            futures_util::future::join_all(tours).await;
        }
    }
}
