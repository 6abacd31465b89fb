//! `devices`: lists known sources with the hour of their last message, a page at a time. One read.

use antumbra_service::inbox::Sources;
use antumbra_service::paging::Cursor;
use antumbra_wire::inbox_request::ParsedRequest;
use serde::Serialize;

use super::{page_limit, respond};
use crate::{OperationError, RequestContext};

/// Maximum length of a page: fits in a response, however long the names are.
const MAX_DEVICES: usize = 400;

#[derive(Serialize)]
struct DevicesResponse<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    devices: Vec<Device<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Device<'a> {
    last_contact: String,
    uuid: &'a str,
}

pub(crate) async fn devices(
    sources: &impl Sources,
    request: &ParsedRequest<'_>,
    _: &RequestContext,
) -> Result<String, OperationError> {
    let parameters = request.payload.list()?;
    let limit = page_limit(parameters.limit, MAX_DEVICES)?;
    let cursor = parameters.cursor.map(Cursor);
    let page = sources.sources(limit, cursor.as_ref()).await?;
    let devices = page.rows.iter().map(|contact| Device {
        last_contact: contact.last_contact.to_string(),
        uuid: contact.source.as_str(),
    });
    respond(&DevicesResponse {
        cursor: page.next.as_ref().map(|cursor| cursor.0.as_str()),
        devices: devices.collect(),
    })
}
