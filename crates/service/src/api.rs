//! JSON representations of every resource, as the HTTP API and `antumbra … --json` show them.
//!
//! Names are camelCase, times are RFC 3339 in UTC, absent values are left out, and a page carries
//! `nextCursor` unless it is the last. With the feature `openapi` every type also has an OpenAPI schema.

macro_rules! page {
    ($(#[$doc:meta])* $page:ident { $rows:ident: $row:ident } from $source:ty) => {
        $(#[$doc])*
        #[derive(Debug, serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
        pub struct $page {
            /// The entries of this page.
            pub $rows: Vec<$row>,
            /// The cursor of the next page; absent on the last page.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub next_cursor: Option<String>,
        }

        impl From<crate::paging::Page<$source>> for $page {
            fn from(page: crate::paging::Page<$source>) -> $page {
                $page {
                    $rows: page.rows.into_iter().map($row::from).collect(),
                    next_cursor: page.next.map(|cursor| cursor.0),
                }
            }
        }
    };
}

use antumbra_shadow::Timestamp;

mod clients;
mod deliveries;
mod history;
mod messages;
mod queues;
mod registrations;
mod sensors;
mod shadows;

pub use crate::clients::ClientPatch;
pub use clients::{Client, ClientPage, CreatedClient, Link, LinkPage, NewClient, RotatedSecret};
pub use deliveries::{
    Attempt, Delivery, DeliveryPage, EnabledClient, QueuedDelivery, RedeliveryProgress,
};
pub use history::{
    ChangePage, FeedEntry, HistoryEntry, HistoryPage, ShadowDifference, ValueChange,
};
pub use messages::{
    Message, MessageEntry, MessagePage, MessageSource, OutboundMessage, SentMessage, SourcePage,
};
pub use queues::{
    FailedMessage, FailedMessages, FailedQueue, FailedQueues, RedriveResult, RedriveResults,
};
pub use registrations::{Registration, RegistrationPage, RegistrationSummary};
pub use sensors::{
    Location, NewReading, NewReadings, NewSensor, NewSignals, Reading, ReadingPage, Scalar, Sensor,
    SensorData, SensorDescription, SensorPage, SensorPatch, SensorState, SensorSummary,
    SignalResult, SignalResults,
};
pub use shadows::{
    BulkError, BulkResult, BulkResults, Delta, DocumentPage, DocumentSummary, DocumentUpdate,
    Shadow, ShadowName, ShadowPage, ShadowUpdate, StoredDocument, UpdateResult, Verdict,
};

/// A time, written in RFC 3339 with the offset `Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub Timestamp);

impl From<Timestamp> for Time {
    fn from(time: Timestamp) -> Time {
        Time(time)
    }
}

impl serde::Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Time {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        use utoipa::openapi::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        let date_time = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        let time = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(date_time));
        time.description(Some("A time in RFC 3339.")).into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Time {}
