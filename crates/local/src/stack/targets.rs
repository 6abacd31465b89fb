//! Queues, topics and buses of registrations.

use std::collections::BTreeSet;

use antumbra_registration::{Registrations, Target};
use aws_sdk_sqs::types::QueueAttributeName;

use super::{LocalServices, StackError};
use crate::{ACCOUNT, REGION};

impl LocalServices {
    /// Creates the queues, topics and buses that registrations name, which would exist on AWS.
    pub(super) async fn ensure_targets(
        &self,
        registrations: &Registrations,
    ) -> Result<(), StackError> {
        let registrations = registrations.iter().map(|(_, registration)| registration);
        let in_force = registrations.filter(|registration| registration.enabled);
        let targets = in_force.filter_map(|registration| local_name(&registration.to));
        // Several registrations may have the same target.
        for (service, name) in targets.collect::<BTreeSet<_>>() {
            let created = self.create(service, name).await;
            created.map_err(|reason| StackError::Target {
                target: name.to_owned(),
                reason,
            })?;
        }
        Ok(())
    }

    async fn create(&self, service: &str, name: &str) -> Result<(), String> {
        let fifo = name.ends_with(".fifo").then(|| "true".to_owned());
        let sdk = self.sdk();
        match service {
            "sqs" => {
                let attribute = fifo.map(|yes| [(QueueAttributeName::FifoQueue, yes)].into());
                let request = aws_sdk_sqs::Client::new(&sdk).create_queue();
                let request = request.queue_name(name).set_attributes(attribute);
                let created = request.send().await;
                created.map_err(|error| error.into_service_error().to_string())?;
            }
            "sns" => {
                let attribute = fifo.map(|yes| [("FifoTopic".to_owned(), yes)].into());
                let request = aws_sdk_sns::Client::new(&sdk).create_topic();
                let request = request.name(name).set_attributes(attribute);
                let created = request.send().await;
                created.map_err(|error| error.into_service_error().to_string())?;
            }
            _ => {
                let created = self.queues.queues().ensure_bus(name);
                created.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }
}

/// Service and name of a target that is in this stack. An ARN of another account or region is not ours to create.
fn local_name(target: &Target) -> Option<(&'static str, &str)> {
    let (service, kind, address) = match target {
        Target::Sqs(sqs) => ("sqs", "", sqs.queue.as_str()),
        Target::Sns(sns) => ("sns", "", sns.topic.as_str()),
        Target::EventBridge(eventbridge) => ("events", "event-bus/", eventbridge.bus.as_str()),
        _ => return None,
    };
    let prefix = format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{kind}");
    let name = address.strip_prefix(&prefix).unwrap_or(address);
    // Buses of partners have slashes in their names.
    let is_elsewhere = name.contains(':') || (service != "events" && name.contains('/'));
    (!is_elsewhere).then_some((service, name))
}
