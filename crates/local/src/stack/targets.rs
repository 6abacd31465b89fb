//! Queues and topics of registrations.

use std::collections::BTreeSet;

use antumbra_registration::{Registrations, Target};

use super::StackError;
use crate::{ACCOUNT, REGION};

/// Creates the queues and topics that registrations name, which would exist on AWS.
pub(super) async fn ensure(
    registrations: &Registrations,
    sqs: &aws_sdk_sqs::Client,
    sns: &aws_sdk_sns::Client,
) -> Result<(), StackError> {
    let mut made = BTreeSet::new();
    let in_force = registrations
        .iter()
        .map(|(_, registration)| registration)
        .filter(|registration| registration.enabled);
    for target in in_force.map(|registration| &registration.to) {
        let (address, prefix) = match target {
            Target::Sqs(sqs) => (
                sqs.queue.as_str(),
                format!("arn:aws:sqs:{REGION}:{ACCOUNT}:"),
            ),
            Target::Sns(sns) => (
                sns.topic.as_str(),
                format!("arn:aws:sns:{REGION}:{ACCOUNT}:"),
            ),
            _ => continue,
        };
        let name = address.strip_prefix(&prefix).unwrap_or(address);
        // A full address in another account or region is not ours to create.
        if name.contains([':', '/']) || !made.insert((target.kind(), name.to_owned())) {
            continue;
        }
        let fifo = name.ends_with(".fifo").then_some("true");
        let outcome = match target {
            Target::Sqs(_) => {
                let attribute = fifo.map(|yes| {
                    (
                        aws_sdk_sqs::types::QueueAttributeName::FifoQueue,
                        yes.to_owned(),
                    )
                });
                let request = sqs
                    .create_queue()
                    .queue_name(name)
                    .set_attributes(attribute.map(|pair| [pair].into()));
                request
                    .send()
                    .await
                    .map(drop)
                    .map_err(|error| error.into_service_error().to_string())
            }
            _ => {
                let attribute = fifo.map(|yes| ("FifoTopic".to_owned(), yes.to_owned()));
                let request = sns
                    .create_topic()
                    .name(name)
                    .set_attributes(attribute.map(|pair| [pair].into()));
                request
                    .send()
                    .await
                    .map(drop)
                    .map_err(|error| error.into_service_error().to_string())
            }
        };
        outcome.map_err(|reason| StackError::Target {
            target: name.to_owned(),
            reason,
        })?;
    }
    Ok(())
}
