//! The SNS API of the local stack, in the AWS query protocol: requests are forms, responses are XML.
//!
//! Topics deliver to SQS queues of the same [`Queues`], before the call to publish returns.

mod form;
mod publication;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use antumbra_registration::Pattern;
use bytes::Bytes;
use http::{Response, StatusCode};

use crate::error::ApiError;
use crate::queue::{NewMessage, is_name};
use crate::service::{Queues, State, now_ms};
use crate::topics::{Subscription, Topic, Topics};
use form::Form;
use publication::Publication;

/// XML inside the element `<…Result>` of a response; empty if the action has no result.
type ActionResult = Result<String, ApiError>;

impl Queues {
    /// Serves one request of the query protocol.
    pub fn sns(&self, body: &[u8]) -> Response<Bytes> {
        let form = Form::read(body);
        let action = form.get("Action").unwrap_or_default().to_owned();
        let id = uuid::Uuid::new_v4();
        let (status, xml) = match self.run_action(&action, &form) {
            Ok(content) => {
                let result = match content.is_empty() {
                    true => String::new(),
                    false => format!("<{action}Result>{content}</{action}Result>"),
                };
                let xml = format!(
                    "<{action}Response xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\">{result}\
                     <ResponseMetadata><RequestId>{id}</RequestId></ResponseMetadata></{action}Response>"
                );
                (StatusCode::OK, xml)
            }
            Err(error) => {
                let fault_type = if error.sender { "Sender" } else { "Receiver" };
                let xml = format!(
                    "<ErrorResponse xmlns=\"http://sns.amazonaws.com/doc/2010-03-31/\"><Error><Type>{fault_type}</Type>\
                     <Code>{}</Code><Message>{}</Message></Error><RequestId>{id}</RequestId></ErrorResponse>",
                    error.query_code,
                    escape(&error.message),
                );
                (error.status(), xml)
            }
        };
        let response = Response::builder().header("content-type", "text/xml");
        let response = response.status(status).body(xml.into());
        // Status and header are always valid.
        response.unwrap_or_default()
    }

    fn run_action(&self, action: &str, form: &Form) -> ActionResult {
        match action {
            "CreateTopic" => self.create_topic(form),
            "DeleteTopic" => self.delete_topic(form),
            "ListTopics" => Ok(self.list_topics()),
            "GetTopicAttributes" => self.topic_attributes(form),
            "SetTopicAttributes" => self.set_topic_attribute(form),
            "Subscribe" => self.subscribe(form),
            "Unsubscribe" => self.unsubscribe(form),
            "ListSubscriptions" => Ok(self.list_subscriptions(|_| true)),
            "ListSubscriptionsByTopic" => {
                let arn = form.required("TopicArn")?;
                find_topic(&self.lock().topics, arn)?;
                Ok(self.list_subscriptions(|subscription| subscription.topic_arn == arn))
            }
            "GetSubscriptionAttributes" => self.subscription_attributes(form),
            "SetSubscriptionAttributes" => self.set_subscription_attribute(form),
            "Publish" => self.publish_one(form),
            "PublishBatch" => self.publish_batch(form),
            "TagResource" | "UntagResource" => self.change_topic_tags(form),
            "ListTagsForResource" => self.list_topic_tags(form),
            other => {
                let text = format!("the local SNS does not support {other:?}");
                Err(ApiError::new("InvalidAction", text))
            }
        }
    }

    fn create_topic(&self, form: &Form) -> ActionResult {
        let name = form.required("Name")?;
        let attributes = form.map("Attributes.entry", "key", "value");
        let is_fifo = attributes
            .get("FifoTopic")
            .is_some_and(|fifo| fifo == "true");
        let base = name.strip_suffix(".fifo").unwrap_or(name);
        if name.len() > 256 || !is_name(base) || is_fifo != name.ends_with(".fifo") {
            return Err(ApiError::parameter("Topic Name"));
        }
        let arn = self.topic_arn(name);
        let tags = form.map("Tags.member", "Key", "Value");
        self.change_topics(|topics| {
            topics
                .topics
                .entry(arn.clone())
                .or_insert(Topic { attributes, tags });
            Ok(format!("<TopicArn>{arn}</TopicArn>"))
        })
    }

    fn delete_topic(&self, form: &Form) -> ActionResult {
        let arn = form.required("TopicArn")?;
        self.change_topics(|topics| {
            topics.topics.remove(arn);
            topics
                .subscriptions
                .retain(|_, subscription| subscription.topic_arn != arn);
            Ok(String::new())
        })
    }

    fn list_topics(&self) -> String {
        let member = |arn: &String| format!("<member><TopicArn>{arn}</TopicArn></member>");
        let members: String = self.lock().topics.topics.keys().map(member).collect();
        format!("<Topics>{members}</Topics>")
    }

    fn topic_attributes(&self, form: &Form) -> ActionResult {
        let arn = form.required("TopicArn")?;
        let state = self.lock();
        let mut attributes = find_topic(&state.topics, arn)?.attributes.clone();
        attributes.insert("TopicArn".to_owned(), arn.to_owned());
        attributes.insert("Owner".to_owned(), self.config().account.clone());
        let count = subscriptions_of(&state.topics, arn).count().to_string();
        attributes.insert("SubscriptionsConfirmed".to_owned(), count);
        Ok(entries("Attributes", &attributes))
    }

    fn set_topic_attribute(&self, form: &Form) -> ActionResult {
        let (arn, name) = (form.required("TopicArn")?, form.required("AttributeName")?);
        let value = form.get("AttributeValue").unwrap_or_default().to_owned();
        self.change_topics(|topics| {
            let topic = topics.topics.get_mut(arn).ok_or_else(no_topic)?;
            topic.attributes.insert(name.to_owned(), value);
            Ok(String::new())
        })
    }

    /// Subscribes a queue. A second subscription of a queue to the same topic replaces the first and keeps its ARN.
    fn subscribe(&self, form: &Form) -> ActionResult {
        let topic_arn = form.required("TopicArn")?.to_owned();
        let (protocol, endpoint) = (form.required("Protocol")?, form.required("Endpoint")?);
        if protocol != "sqs" {
            let text = format!("the local SNS delivers to sqs, not to {protocol}");
            return Err(ApiError::parameter(text));
        }
        let attributes = form.map("Attributes.entry", "key", "value");
        check_filter_policy(&attributes)?;
        let subscription = Subscription {
            topic_arn: topic_arn.clone(),
            protocol: protocol.to_owned(),
            endpoint: endpoint.to_owned(),
            attributes,
        };
        self.change_topics(|topics| {
            find_topic(topics, &topic_arn)?;
            let is_same = |(_, found): &(&String, &Subscription)| {
                found.topic_arn == topic_arn && found.endpoint == subscription.endpoint
            };
            let known = topics
                .subscriptions
                .iter()
                .find(is_same)
                .map(|(arn, _)| arn.clone());
            let arn = known.unwrap_or_else(|| format!("{topic_arn}:{}", uuid::Uuid::new_v4()));
            topics.subscriptions.insert(arn.clone(), subscription);
            Ok(format!("<SubscriptionArn>{arn}</SubscriptionArn>"))
        })
    }

    fn unsubscribe(&self, form: &Form) -> ActionResult {
        let arn = form.required("SubscriptionArn")?;
        self.change_topics(|topics| {
            topics.subscriptions.remove(arn);
            Ok(String::new())
        })
    }

    fn list_subscriptions(&self, wanted: impl Fn(&Subscription) -> bool) -> String {
        let state = self.lock();
        let found = state
            .topics
            .subscriptions
            .iter()
            .filter(|(_, subscription)| wanted(subscription));
        let member = |(arn, subscription): (&String, &Subscription)| {
            format!(
                "<member><SubscriptionArn>{arn}</SubscriptionArn><TopicArn>{}</TopicArn><Protocol>{}</Protocol>\
                 <Endpoint>{}</Endpoint><Owner>{}</Owner></member>",
                subscription.topic_arn,
                subscription.protocol,
                escape(&subscription.endpoint),
                self.config().account,
            )
        };
        format!(
            "<Subscriptions>{}</Subscriptions>",
            found.map(member).collect::<String>()
        )
    }

    fn subscription_attributes(&self, form: &Form) -> ActionResult {
        let arn = form.required("SubscriptionArn")?;
        let state = self.lock();
        let subscription = state
            .topics
            .subscriptions
            .get(arn)
            .ok_or_else(no_subscription)?;
        let mut attributes = subscription.attributes.clone();
        let raw = subscription.is_raw().to_string();
        attributes.extend([
            ("SubscriptionArn".to_owned(), arn.to_owned()),
            ("TopicArn".to_owned(), subscription.topic_arn.clone()),
            ("Endpoint".to_owned(), subscription.endpoint.clone()),
            ("Protocol".to_owned(), subscription.protocol.clone()),
            ("Owner".to_owned(), self.config().account.clone()),
            ("RawMessageDelivery".to_owned(), raw),
            ("PendingConfirmation".to_owned(), "false".to_owned()),
        ]);
        Ok(entries("Attributes", &attributes))
    }

    fn set_subscription_attribute(&self, form: &Form) -> ActionResult {
        let (arn, name) = (
            form.required("SubscriptionArn")?,
            form.required("AttributeName")?,
        );
        let value = form.get("AttributeValue").unwrap_or_default().to_owned();
        self.change_topics(|topics| {
            let found = topics.subscriptions.get_mut(arn);
            let subscription = found.ok_or_else(no_subscription)?;
            subscription.attributes.insert(name.to_owned(), value);
            check_filter_policy(&subscription.attributes)?;
            Ok(String::new())
        })
    }

    /// Adds the tags and removes the tag keys of a request, which has only one of them.
    fn change_topic_tags(&self, form: &Form) -> ActionResult {
        let arn = form.required("ResourceArn")?;
        let added = form.map("Tags.member", "Key", "Value");
        let removed = form.list("TagKeys.member");
        self.change_topics(|topics| {
            let topic = topics.topics.get_mut(arn).ok_or_else(no_topic)?;
            topic.tags.extend(added);
            topic.tags.retain(|key, _| !removed.contains(key));
            Ok(String::new())
        })
    }

    fn list_topic_tags(&self, form: &Form) -> ActionResult {
        let state = self.lock();
        let topic = find_topic(&state.topics, form.required("ResourceArn")?)?;
        let member = |(key, value): (&String, &String)| {
            format!(
                "<member><Key>{}</Key><Value>{}</Value></member>",
                escape(key),
                escape(value)
            )
        };
        Ok(format!(
            "<Tags>{}</Tags>",
            topic.tags.iter().map(member).collect::<String>()
        ))
    }

    /// Changes a copy of the topics and stores it, so that a change that fails has no effect.
    fn change_topics(&self, change: impl FnOnce(&mut Topics) -> ActionResult) -> ActionResult {
        let mut state = self.lock();
        let mut topics = state.topics.clone();
        let result = change(&mut topics)?;
        state.put_topics(topics)?;
        Ok(result)
    }

    fn publish_one(&self, form: &Form) -> ActionResult {
        let arn = form.get("TopicArn").or_else(|| form.get("TargetArn"));
        let arn = arn.ok_or_else(|| ApiError::parameter("TopicArn"))?;
        let published = self.publish(&mut self.lock(), arn, &Publication::read(form, "")?)?;
        Ok(published.xml())
    }

    fn publish_batch(&self, form: &Form) -> ActionResult {
        let arn = form.required("TopicArn")?;
        let mut state = self.lock();
        find_topic(&state.topics, arn)?;
        let (mut successful, mut failed) = (String::new(), String::new());
        let prefix = "PublishBatchRequestEntries.member";
        // Counting to 11 is enough to detect more than ten entries.
        let numbers = (1..=11).take_while(|n| form.get(&format!("{prefix}.{n}.Id")).is_some());
        let numbers: Vec<usize> = numbers.collect();
        if numbers.is_empty() || numbers.len() > 10 {
            let code = if numbers.is_empty() {
                "EmptyBatchRequest"
            } else {
                "TooManyEntriesInBatchRequest"
            };
            return Err(ApiError::new(code, "A batch has one to ten entries."));
        }
        for n in numbers {
            let prefix = format!("{prefix}.{n}.");
            let id = escape(form.get(&format!("{prefix}Id")).unwrap_or_default());
            let published = Publication::read(form, &prefix)
                .and_then(|publication| self.publish(&mut state, arn, &publication));
            match published {
                Ok(published) => {
                    let xml = published.xml();
                    let _ = write!(successful, "<member><Id>{id}</Id>{xml}</member>");
                }
                Err(error) => {
                    let _ = write!(
                        failed,
                        "<member><Id>{id}</Id><Code>{}</Code><Message>{}</Message><SenderFault>{}</SenderFault></member>",
                        error.query_code,
                        escape(&error.message),
                        error.sender,
                    );
                }
            }
        }
        Ok(format!(
            "<Successful>{successful}</Successful><Failed>{failed}</Failed>"
        ))
    }

    /// Sends a message to all queues whose subscription accepts it. A queue that cannot take it does not fail the call.
    fn publish(
        &self,
        state: &mut State,
        arn: &str,
        publication: &Publication,
    ) -> Result<Published, ApiError> {
        let topic = find_topic(&state.topics, arn)?;
        let is_fifo = arn.ends_with(".fifo");
        let content_based = topic
            .attributes
            .get("ContentBasedDeduplication")
            .is_some_and(|v| v == "true");
        if is_fifo && publication.group.is_none() {
            return Err(ApiError::parameter(
                "The MessageGroupId parameter is required for FIFO topics",
            ));
        }
        if is_fifo && publication.deduplication_id.is_none() && !content_based {
            return Err(ApiError::parameter(
                "The topic should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
            ));
        }
        let id = uuid::Uuid::new_v4().to_string();
        let subscriptions: Vec<Subscription> =
            subscriptions_of(&state.topics, arn).cloned().collect();
        for subscription in subscriptions {
            if !subscription.accepts(&publication.message, &publication.attributes) {
                continue;
            }
            let message = match subscription.is_raw() {
                true => publication.raw(),
                false => publication.in_envelope(&id, arn),
            };
            // The last part of the queue's ARN is its name.
            let queue = subscription.endpoint.rsplit(':').next().unwrap_or_default();
            let to_fifo = queue.ends_with(".fifo");
            let message = NewMessage {
                group: publication.group.clone(),
                deduplication_id: to_fifo.then(|| publication.deduplication_key(&id)),
                ..message
            };
            if let Err(error) = state.send(queue, message) {
                tracing::warn!(topic = arn, queue, %error, "a notification was not delivered");
            }
        }
        Ok(Published { id, is_fifo })
    }
}

struct Published {
    id: String,
    is_fifo: bool,
}

impl Published {
    fn xml(&self) -> String {
        let sequence_number = match self.is_fifo {
            true => format!("<SequenceNumber>{:020}</SequenceNumber>", now_ms()),
            false => String::new(),
        };
        format!("<MessageId>{}</MessageId>{sequence_number}", self.id)
    }
}

fn find_topic<'a>(topics: &'a Topics, arn: &str) -> Result<&'a Topic, ApiError> {
    topics.topics.get(arn).ok_or_else(no_topic)
}

fn subscriptions_of<'a>(
    topics: &'a Topics,
    arn: &'a str,
) -> impl Iterator<Item = &'a Subscription> {
    topics
        .subscriptions
        .values()
        .filter(move |subscription| subscription.topic_arn == arn)
}

fn no_topic() -> ApiError {
    ApiError::new("NotFound", "Topic does not exist")
}

fn no_subscription() -> ApiError {
    ApiError::new("NotFound", "Subscription does not exist")
}

fn check_filter_policy(attributes: &BTreeMap<String, String>) -> Result<(), ApiError> {
    match attributes.get("FilterPolicy").map(String::as_str) {
        None | Some("" | "{}") => Ok(()),
        Some(policy) => match policy.parse::<Pattern>() {
            Ok(_) => Ok(()),
            Err(error) => Err(ApiError::parameter(format!("FilterPolicy: {error}"))),
        },
    }
}

/// Formats a map as an XML element with one `<entry>` per key.
fn entries(name: &str, map: &BTreeMap<String, String>) -> String {
    let entry = |(key, value): (&String, &String)| {
        format!(
            "<entry><key>{}</key><value>{}</value></entry>",
            escape(key),
            escape(value)
        )
    };
    format!(
        "<{name}>{}</{name}>",
        map.iter().map(entry).collect::<String>()
    )
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
