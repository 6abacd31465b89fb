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

use antumbra_service::inbox::{
    MessageDeleter, MessageId, MessageIndex, MessageReader, OutboundQueue, Source, Sources,
};
use antumbra_shadow::Timestamp;
use antumbra_wire::inbox_request::ParsedRequest;
use antumbra_wire::inbox_response::InboxErrorResponse;
use antumbra_wire::rules::Operation;
use serde::Serialize;

use crate::OperationError;

#[derive(Debug, Clone)]
pub struct RequestContext {
    pub now: Timestamp,
    /// Deadline for serving the request.
    pub until: Timestamp,
    pub id: String,
}

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

/// Makes the functions from: type, ports, name, and for each operation the module that serves it.
macro_rules! functions {
    ($($function:ident: $($port:ident),+ = $name:literal { $($operation:ident => $serve:path,)+ })+) => {$(
        #[derive(Debug, Clone)]
        pub struct $function<P>(pub P);

        impl<P: $($port +)+> InboxFunction for $function<P> {
            const NAME: &'static str = $name;

            async fn serve(
                &self,
                request: &ParsedRequest<'_>,
                context: &RequestContext,
            ) -> Result<String, OperationError> {
                match request.operation {
                    $(Operation::$operation => $serve(&self.0, request, context).await,)+
                    other => Err(OperationError::Internal(
                        format!("{} does not serve {}", $name, other.word()),
                    )),
                }
            }
        }
    )+};
}

functions! {
    GetFunction: MessageReader = "message-get" {
        Get => get::get,
    }
    QueryFunction: MessageIndex, MessageReader, Sources = "message-query" {
        Query => query::query,
        List => list::list,
        Devices => devices::devices,
    }
    NextFunction: MessageIndex = "message-next" {
        Next => step::next,
        Prev => step::prev,
    }
    DeleteFunction: MessageDeleter = "message-delete" {
        Delete => delete::delete,
    }
    SendFunction: OutboundQueue = "message-send" {
        Send => send::send,
    }
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

fn page_limit(limit: Option<usize>, max: usize) -> Result<usize, OperationError> {
    match limit.unwrap_or(DEFAULT_LIMIT) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        _ => Err(OperationError::Bad(format!("limit must be 1 to {max}"))),
    }
}

const DEFAULT_LIMIT: usize = 100;
