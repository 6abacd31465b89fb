//! `devices`: who was heard of, and in which hour last.

use antumbra_service::inbox::Sources;
use antumbra_service::paging::Cursor;
use antumbra_wire::inbox_request::{Operation, ParsedRequest};
use antumbra_wire::inbox_response::{Device, InboxResponse};

use crate::serve::{InboxOperation, OperationError, RequestContext};

/// Devices in a page unless asked for otherwise.
const DEFAULT_LIMIT: usize = 100;
/// Devices in a page: as many as fit in an answer, whatever their names.
const MAX_DEVICES: usize = 400;

/// One read.
#[derive(Debug, Clone)]
pub struct ListDevices<P>(pub P);

impl<P: Sources> InboxOperation for ListDevices<P> {
    fn operation(&self) -> Operation {
        Operation::Devices
    }

    async fn serve(
        &self,
        asked: &ParsedRequest<'_>,
        _: &RequestContext,
    ) -> Result<String, OperationError> {
        let members = asked.members.list()?;
        let limit = members.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_DEVICES).contains(&limit) {
            return Err(OperationError::Bad(format!(
                "limit must be 1 to {MAX_DEVICES}"
            )));
        }
        let cursor = members.cursor.map(Cursor);
        let page = self.0.sources(limit, cursor.as_ref()).await?;
        let contacts = page.rows.iter();
        let hours: Vec<String> = contacts
            .map(|contact| contact.last_contact.to_string())
            .collect();
        let devices: Vec<Device<'_>> = page
            .rows
            .iter()
            .zip(&hours)
            .map(|(contact, hour)| Device {
                last_contact: hour,
                uuid: contact.source.as_str(),
            })
            .collect();
        Ok(InboxResponse::Devices {
            cursor: page.next.as_ref().map(|cursor| cursor.0.as_str()),
            devices: &devices,
        }
        .to_json())
    }
}
