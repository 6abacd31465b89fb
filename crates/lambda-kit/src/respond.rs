//! The skeleton of functions that answer MQTT requests: serve within the deadline, publish one response.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clock::{Clock, Reserve, time_left};
use antumbra_service::notifications::{Channel, Message, SendFailure, dispatch_one};
use antumbra_shadow::Timestamp;

use crate::handler::HandlerError;

/// Time kept back for publishing the response.
const PUBLISH: Reserve = Reserve {
    time: Duration::from_millis(2500),
    share: 4,
};
/// Time kept back for the end of the invocation.
const END: Reserve = Reserve {
    time: Duration::from_millis(300),
    share: 8,
};

pub struct Responder {
    channel: Arc<dyn Channel>,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimes {
    pub now: Timestamp,
    pub serve_until: Timestamp,
    pub publish_until: Timestamp,
}

impl Responder {
    pub fn new(channel: Arc<dyn Channel>, clock: Arc<dyn Clock>) -> Responder {
        Responder { channel, clock }
    }

    /// Divides the time until the invocation's deadline.
    pub fn times(&self, deadline: Timestamp) -> RequestTimes {
        let now = self.clock.now();
        RequestTimes {
            now,
            serve_until: PUBLISH.deadline(deadline, now),
            publish_until: END.deadline(deadline, now),
        }
    }

    /// Runs `serve` until the deadline; `None` if it does not finish.
    pub async fn serve<T>(&self, until: Timestamp, serve: impl Future<Output = T>) -> Option<T> {
        let time = time_left(self.clock.now(), until);
        // Boxed: futures of SDK calls are large types.
        tokio::time::timeout(time, Box::pin(serve)).await.ok()
    }

    /// Publishes one response and retries until the deadline.
    pub async fn publish(
        &self,
        topic: &str,
        body: String,
        correlation_data: Option<String>,
        until: Timestamp,
    ) -> Result<(), SendFailure> {
        let message = Message {
            id: topic.to_owned(),
            key: topic.to_owned(),
            body,
            topic: Some(topic.to_owned()),
            qos: 1,
            correlation_data,
            ..Message::default()
        };
        dispatch_one(Arc::clone(&self.channel), message, until, &*self.clock).await
    }
}

/// Error of an invocation whose response could not be published.
pub fn unpublished(failure: &SendFailure) -> HandlerError {
    HandlerError::new(
        "ResponseNotPublished",
        format_args!("the response could not be published: {failure}"),
    )
}
