//! `devices`: lists known sources with the hour of their last message, a page at a time. One read.

use antumbra_service::inbox::Sources;
use antumbra_service::paging::Cursor;
use antumbra_wire::inbox_request::ParsedRequest;
use serde::Serialize;

use super::respond;
use crate::OperationError;

/// Default length of a page.
const DEFAULT_LIMIT: usize = 100;
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
) -> Result<String, OperationError> {
    let parameters = request.payload.list()?;
    let limit = parameters.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_DEVICES).contains(&limit) {
        let error = format!("limit must be 1 to {MAX_DEVICES}");
        return Err(OperationError::Bad(error));
    }
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
