//! The five functions and the operations they serve, one file per operation: parameters, call and response.
//!
//! A function holds the ports that its role allows and passes each request to its operation.

mod delete;
mod devices;
mod get;
mod list;
mod query;
mod send;
mod step;

use std::future::Future;
use std::sync::Arc;

use antumbra_service::clock::Clock;
use antumbra_service::inbox::{
    MessageDeleter, MessageId, MessageIndex, MessageReader, Source, Sources,
};
use antumbra_service::notifications::Channel;
use antumbra_shadow::Timestamp;
use antumbra_wire::inbox_request::ParsedRequest;
use antumbra_wire::inbox_response::InboxErrorResponse;
use antumbra_wire::rules::Operation;
use serde::Serialize;

use crate::OperationError;

/// One invocation.
#[derive(Debug, Clone)]
pub struct RequestContext {
    /// Start of the invocation.
    pub now: Timestamp,
    /// Deadline for serving the request.
    pub until: Timestamp,
    /// Unique id of the invocation.
    pub id: String,
}

/// A Lambda function that serves inbox operations.
pub trait InboxFunction: Send + Sync {
    /// Name of the function, as in the table of operations.
    const NAME: &'static str;

    /// Serves a request and returns the payload of the response. It calls nothing but its ports.
    fn serve(
        &self,
        request: &ParsedRequest<'_>,
        context: &RequestContext,
    ) -> impl Future<Output = Result<String, OperationError>> + Send;
}

/// Serves `get`.
#[derive(Debug, Clone)]
pub struct GetFunction<P>(pub P);

impl<P: MessageReader> InboxFunction for GetFunction<P> {
    const NAME: &'static str = "message-get";

    async fn serve(
        &self,
        request: &ParsedRequest<'_>,
        _: &RequestContext,
    ) -> Result<String, OperationError> {
        match request.operation {
            Operation::Get => get::get(&self.0, request).await,
            other => Err(not_served(Self::NAME, other)),
        }
    }
}

/// Serves `query`, `list` and `devices`.
#[derive(Debug, Clone)]
pub struct QueryFunction<P>(pub P);

impl<P: MessageIndex + MessageReader + Sources> InboxFunction for QueryFunction<P> {
    const NAME: &'static str = "message-query";

    async fn serve(
        &self,
        request: &ParsedRequest<'_>,
        _: &RequestContext,
    ) -> Result<String, OperationError> {
        match request.operation {
            Operation::Query => query::query(&self.0, request).await,
            Operation::List => list::list(&self.0, request).await,
            Operation::Devices => devices::devices(&self.0, request).await,
            other => Err(not_served(Self::NAME, other)),
        }
    }
}

/// Serves `next` and `prev`.
#[derive(Debug, Clone)]
pub struct NextFunction<P>(pub P);

impl<P: MessageIndex> InboxFunction for NextFunction<P> {
    const NAME: &'static str = "message-next";

    async fn serve(
        &self,
        request: &ParsedRequest<'_>,
        _: &RequestContext,
    ) -> Result<String, OperationError> {
        match request.operation {
            Operation::Next => step::next(&self.0, request).await,
            Operation::Prev => step::prev(&self.0, request).await,
            other => Err(not_served(Self::NAME, other)),
        }
    }
}

/// Serves `delete`.
#[derive(Debug, Clone)]
pub struct DeleteFunction<P>(pub P);

impl<P: MessageDeleter> InboxFunction for DeleteFunction<P> {
    const NAME: &'static str = "message-delete";

    async fn serve(
        &self,
        request: &ParsedRequest<'_>,
        context: &RequestContext,
    ) -> Result<String, OperationError> {
        match request.operation {
            Operation::Delete => delete::delete(&self.0, request, context.now).await,
            other => Err(not_served(Self::NAME, other)),
        }
    }
}

/// Serves `send`.
pub struct SendFunction {
    outbound: Arc<dyn Channel>,
    clock: Arc<dyn Clock>,
}

impl SendFunction {
    /// Sends to the queue of this channel.
    pub fn new(outbound: Arc<dyn Channel>, clock: Arc<dyn Clock>) -> SendFunction {
        SendFunction { outbound, clock }
    }
}

impl InboxFunction for SendFunction {
    const NAME: &'static str = "message-send";

    async fn serve(
        &self,
        request: &ParsedRequest<'_>,
        context: &RequestContext,
    ) -> Result<String, OperationError> {
        match request.operation {
            Operation::Send => send::send(&self.outbound, &*self.clock, request, context).await,
            other => Err(not_served(Self::NAME, other)),
        }
    }
}

fn not_served(function: &str, operation: Operation) -> OperationError {
    OperationError::Internal(format!("{function} does not serve {}", operation.word()))
}

fn source(request: &ParsedRequest<'_>) -> Result<Source, OperationError> {
    Ok(Source::new(request.names.uuid)?)
}

fn message_id(request: &ParsedRequest<'_>) -> Result<MessageId, OperationError> {
    Ok(MessageId::new(request.names.message_id)?)
}

fn respond(response: &impl Serialize) -> Result<String, OperationError> {
    Ok(serde_json::to_string(response)?)
}

/// The response if there is no such message: an error without a code.
fn respond_none(response: InboxErrorResponse<'_>) -> Result<String, OperationError> {
    Ok(response.to_json())
}
