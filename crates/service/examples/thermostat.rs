//! Example of the SDK: the shadow of a thermostat as a Rust type, used by the device and by an application.
//!
//! It runs in memory. With `antumbra_dynamodb::DynamoDbShadows` instead of `MemoryShadows` it runs on a table.

use std::error::Error;

use antumbra_memory::MemoryShadows;
use antumbra_service::shadows::{
    ClientToken, DocumentSet, ShadowId, Shadows, State, Update, Version,
};
use antumbra_shadow::Document;
use serde::{Deserialize, Serialize};

/// A timestamped value: value and time are merged as a whole.
#[derive(Debug, Serialize, Deserialize)]
struct Measured<T> {
    value: T,
    timestamp: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Thermostat {
    temperature: Measured<f64>,
    heating: Measured<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    firmware: Option<String>,
}

fn at<T>(value: T, timestamp: &str) -> Measured<T> {
    Measured {
        value,
        timestamp: timestamp.to_owned(),
    }
}

#[tokio::main]
#[allow(clippy::print_stdout)]
async fn main() -> Result<(), Box<dyn Error>> {
    let shadows = Shadows::new(MemoryShadows::default());
    let hall = ShadowId::new("My House#Hall#Thermostat")?;

    // The device reports its measurements.
    let first = Thermostat {
        temperature: at(17.5, "2026-01-31T06:00:00+01:00"),
        heating: at(false, "2026-01-31T06:00:00+01:00"),
        firmware: Some("4.2.0".to_owned()),
    };
    let updated = shadows.report(&hall, &first).await?;
    println!("first report: version {}", updated.version(State::Reported));

    // An application desires that the heating is on.
    shadows
        .desire(&hall, &serde_json::json!({"heating": {"value": true}}))
        .await?;
    let delta = shadows
        .read(&hall, DocumentSet::Both)
        .await?
        .delta
        .unwrap_or_default();
    println!("the device should do: {delta}");

    // The device follows; its report acknowledges the desired value.
    let second = Thermostat {
        temperature: at(17.6, "2026-01-31T06:02:00+01:00"),
        heating: at(true, "2026-01-31T06:02:00+01:00"),
        firmware: None,
    };
    let updated = shadows.report(&hall, &second).await?;
    updated
        .acknowledged
        .for_each(|pointer, value| println!("done: {pointer} = {value}"));

    // A message from before arrives late: nothing is overwritten, and the sender gets the verdict.
    let late = Update::report(hall.clone(), Document::from_value(&first)?)
        .client_token(ClientToken::new("gateway-1")?);
    if let Some(changes) = shadows.update(late).await?.reported_changes {
        changes.for_each(|change| println!("late report: {} {}", change.pointer, change.verdict));
    }

    // Two writers expect the same version: one of them gets a conflict.
    let conditional = Update::report(hall.clone(), Document::parse(r#"{"firmware":"4.3.0"}"#)?)
        .expected(Version(1));
    match shadows.update(conditional).await {
        Err(error) if error.is_conflict() => println!("refused: {error}"),
        other => println!("unexpected: {other:?}"),
    }

    let held = shadows
        .read(&hall, DocumentSet::Reported)
        .await?
        .reported
        .ok_or("reported is there")?;
    let now: Thermostat = held.document.to_value()?;
    println!(
        "now {} degrees, heating {}, version {}",
        now.temperature.value, now.heating.value, held.version
    );
    Ok(())
}
