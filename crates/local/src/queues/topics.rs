//! SNS with its two ends that are ours: what a subscription says about raw
//! delivery, and the way from a topic to a queue.

use std::{future::Future, pin::Pin, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Response;
use rustack_sns_core::{
    handler::RustackSnsHandler,
    provider::RustackSns,
    publisher::{DeliveryError, SqsPublisher},
};
use rustack_sns_http::{
    body::SnsResponseBody, dispatch::SnsHandler, request::get_optional_param,
    request::parse_form_params,
};
use rustack_sns_model::{
    error::SnsError, input::GetSubscriptionAttributesInput, operations::SnsOperation,
};
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_model::input::SendMessageInput;

use super::raw::RawSubscriptions;

const RAW: &str = "RawMessageDelivery";

/// The SNS operations, with raw delivery kept by us; see [`super::raw`].
pub(super) struct Topics {
    inner: Arc<RustackSnsHandler>,
    provider: Arc<RustackSns>,
    raw: RawSubscriptions,
}

type Answer = Result<Response<SnsResponseBody>, SnsError>;

impl Topics {
    pub(super) fn new(provider: Arc<RustackSns>, raw: RawSubscriptions) -> Self {
        Self {
            inner: Arc::new(RustackSnsHandler::new(Arc::clone(&provider))),
            provider,
            raw,
        }
    }

    /// Topic and queue of a subscription.
    fn ends(&self, subscription: &str) -> Option<(String, String)> {
        let input = GetSubscriptionAttributesInput {
            subscription_arn: subscription.to_owned(),
        };
        let mut found = self
            .provider
            .get_subscription_attributes(&input)
            .ok()?
            .attributes;
        Some((found.remove("TopicArn")?, found.remove("Endpoint")?))
    }

    /// Notes what a request says about raw delivery, and says the opposite to
    /// the embedded SNS.
    fn note(&self, op: SnsOperation, body: Bytes) -> Bytes {
        let mut params = parse_form_params(&body);
        let param = |name: &str| get_optional_param(&params, name).map(str::to_owned);
        let value_at = match op {
            SnsOperation::Subscribe => {
                let key = params
                    .iter()
                    .find(|(name, value)| name.starts_with("Attributes.entry.") && value == RAW);
                let value =
                    key.and_then(|(name, _)| Some(format!("{}.value", name.strip_suffix(".key")?)));
                let said = value.as_deref().and_then(param);
                if let (Some(topic), Some(queue)) = (param("TopicArn"), param("Endpoint")) {
                    self.raw
                        .set(&topic, &queue, said.as_deref() == Some("true"));
                }
                value
            }
            SnsOperation::SetSubscriptionAttributes
                if param("AttributeName").as_deref() == Some(RAW) =>
            {
                let said = param("AttributeValue");
                let ends = param("SubscriptionArn").and_then(|arn| self.ends(&arn));
                if let Some((topic, queue)) = ends {
                    self.raw
                        .set(&topic, &queue, said.as_deref() == Some("true"));
                }
                Some("AttributeValue".to_owned())
            }
            _ => None,
        };
        let Some(value_at) = value_at else {
            return body;
        };
        for (name, value) in &mut params {
            if *name == value_at && value == "true" {
                "false".clone_into(value);
            }
        }
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(params).finish().into()
    }
}

impl SnsHandler for Topics {
    fn handle_operation(
        &self,
        op: SnsOperation,
        body: Bytes,
    ) -> Pin<Box<dyn Future<Output = Answer> + Send>> {
        match op {
            SnsOperation::Subscribe | SnsOperation::SetSubscriptionAttributes => {
                self.inner.handle_operation(op, self.note(op, body))
            }
            SnsOperation::GetSubscriptionAttributes => {
                let params = parse_form_params(&body);
                let subscription = get_optional_param(&params, "SubscriptionArn");
                let raw = subscription
                    .and_then(|arn| self.ends(arn))
                    .is_some_and(|(topic, queue)| self.raw.contains(&topic, &queue));
                let answer = self.inner.handle_operation(op, body);
                if raw {
                    Box::pin(say_raw(answer))
                } else {
                    answer
                }
            }
            _ => self.inner.handle_operation(op, body),
        }
    }
}

/// Puts the truth about raw delivery back into an answer.
async fn say_raw(answer: impl Future<Output = Answer>) -> Answer {
    let (parts, body) = answer.await?.into_parts();
    let broken = |error: std::io::Error| SnsError::internal_error(error.to_string());
    let bytes = body.collect().await.map_err(broken)?.to_bytes();
    let text = String::from_utf8_lossy(&bytes).replace(
        "<key>RawMessageDelivery</key><value>false</value>",
        "<key>RawMessageDelivery</key><value>true</value>",
    );
    let mut parts = parts;
    parts.headers.remove(hyper::header::CONTENT_LENGTH);
    Ok(Response::from_parts(
        parts,
        SnsResponseBody::from_bytes(text),
    ))
}

/// The way from a topic to a queue.
#[derive(Debug)]
pub(super) struct ToQueues {
    sqs: Arc<RustackSqs>,
    raw: RawSubscriptions,
}

impl ToQueues {
    pub(super) fn new(sqs: Arc<RustackSqs>, raw: RawSubscriptions) -> Self {
        Self { sqs, raw }
    }
}

#[async_trait]
impl SqsPublisher for ToQueues {
    fn validate(&self, queue_arn: &str) -> Result<(), DeliveryError> {
        let url = self.sqs.queue_url_for_arn(queue_arn);
        url.map(drop)
            .map_err(|error| failed(queue_arn, &error.to_string()))
    }

    async fn send_message(
        &self,
        queue_arn: &str,
        message_body: &str,
        message_group_id: Option<&str>,
        message_deduplication_id: Option<&str>,
    ) -> Result<(), DeliveryError> {
        let reason =
            |error: rustack_sqs_model::error::SqsError| failed(queue_arn, &error.to_string());
        let delivery = self.raw.open(queue_arn, message_body);
        let input = SendMessageInput {
            queue_url: self.sqs.queue_url_for_arn(queue_arn).map_err(reason)?,
            message_body: delivery.body,
            message_attributes: delivery.attributes,
            message_group_id: message_group_id.map(str::to_owned),
            message_deduplication_id: message_deduplication_id.map(str::to_owned),
            ..SendMessageInput::default()
        };
        self.sqs.send_message(input).await.map(drop).map_err(reason)
    }
}

fn failed(queue_arn: &str, reason: &str) -> DeliveryError {
    DeliveryError::SqsDeliveryFailed {
        queue_arn: queue_arn.to_owned(),
        reason: reason.to_owned(),
    }
}
