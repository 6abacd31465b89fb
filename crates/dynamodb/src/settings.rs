//! The settings item of the main table: what every program that uses the table must do in the same way.
//!
//! The first program that starts writes it; all others compare theirs with it and refuse to work with other settings, which
//! would store shadows where nobody else looks for them, or merge them differently. Nothing changes it later.

use antumbra_service::shadows::Layout;
use antumbra_service::store::StoreError;
use antumbra_shadow::Model;
use antumbra_wire::items::ItemKind;
use aws_sdk_dynamodb::Client;
use serde::{Deserialize, Serialize};

use crate::table::{ABSENT, Key, Outcome, Table, Write};
use crate::tables::{MAIN, client};
use crate::value::from_item;

/// Settings that all programs which use a table share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableSettings {
    /// Layout of the two documents of a shadow.
    pub layout: Layout,
    /// The members that make an object a timestamped value, separated by commas.
    pub timestamp_fields: String,
    /// The member by which elements of an array are matched.
    pub id_field: String,
}

/// A table that cannot be used with some settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The table has other settings.
    #[error(
        "the table {table} has {stored}, but {given} is configured; configure what the table has, or use another table"
    )]
    Mismatch {
        /// The table.
        table: String,
        /// The differing settings of the table.
        stored: String,
        /// The same settings as they are configured.
        given: String,
    },
    /// The settings of the table cannot be read or written.
    #[error("the settings of the table {table} cannot be read: {source}")]
    Store {
        /// The table.
        table: String,
        /// The failed call.
        source: StoreError,
    },
}

impl TableSettings {
    /// The settings of a program with this layout and model.
    pub fn new(layout: Layout, model: &Model) -> TableSettings {
        TableSettings {
            layout,
            timestamp_fields: model.timestamp_fields.join(","),
            id_field: model.id_field.clone(),
        }
    }

    /// A model with these fields and the other properties of another one.
    pub fn model(&self, other: Model) -> Model {
        Model {
            timestamp_fields: self
                .timestamp_fields
                .split(',')
                .map(str::to_owned)
                .collect(),
            id_field: self.id_field.clone(),
            ..other
        }
    }

    /// Describes the settings that differ from others.
    fn differing_from(&self, other: &TableSettings) -> String {
        let settings = [
            ("the layout", self.layout.as_str(), other.layout.as_str()),
            (
                "the timestamp fields",
                &self.timestamp_fields,
                &other.timestamp_fields,
            ),
            ("the id field", &self.id_field, &other.id_field),
        ];
        let differing = settings.iter().filter(|(_, own, other)| own != other);
        let described = differing.map(|(name, own, _)| format!("{name} {own}"));
        described.collect::<Vec<_>>().join(" and ")
    }
}

impl Default for TableSettings {
    fn default() -> TableSettings {
        TableSettings::new(Layout::default(), &Model::default())
    }
}

/// The settings item in a DynamoDB table.
#[derive(Debug, Clone)]
pub struct DynamoDbSettings {
    table: Table,
    name: String,
}

impl DynamoDbSettings {
    /// Uses an existing table.
    pub fn new(client: Client, table: impl Into<String>) -> DynamoDbSettings {
        let name = table.into();
        DynamoDbSettings {
            table: Table::new(client, &name, MAIN),
            name,
        }
    }

    /// Uses an existing table through a client of this configuration.
    pub fn connect(sdk: &aws_types::SdkConfig, table: impl Into<String>) -> DynamoDbSettings {
        DynamoDbSettings::new(client(sdk), table)
    }

    /// Returns the settings of the table; `None` if no program has recorded any.
    pub async fn read(&self) -> Result<Option<TableSettings>, StoreError> {
        let item = self.table.get(&key()).await?;
        item.map(|item| from_item("settings item", item))
            .transpose()
    }

    /// Records settings if the table has none, and fails if it has others.
    ///
    /// Any number of programs may start at the same time: one of them records its settings, the others are compared.
    pub async fn ensure(&self, settings: &TableSettings) -> Result<(), SettingsError> {
        let stored = self.stored_or_recorded(settings).await;
        let stored = stored.map_err(|source| SettingsError::Store {
            table: self.name.clone(),
            source,
        })?;
        match stored == *settings {
            true => Ok(()),
            false => Err(SettingsError::Mismatch {
                table: self.name.clone(),
                stored: stored.differing_from(settings),
                given: settings.differing_from(&stored),
            }),
        }
    }

    async fn stored_or_recorded(
        &self,
        settings: &TableSettings,
    ) -> Result<TableSettings, StoreError> {
        if let Some(stored) = self.read().await? {
            return Ok(stored);
        }
        let put = Write::put(self.table.item(&key(), settings)?);
        let put = put.condition(ABSENT);
        match self.table.write(put).await? {
            Outcome::Applied(_) => Ok(settings.clone()),
            // Another program was faster.
            Outcome::Refused(_) => {
                let missing = || StoreError::Unavailable("the settings item is missing".to_owned());
                self.read().await?.ok_or_else(missing)
            }
        }
    }
}

fn key() -> Key {
    Key::new(ItemKind::Settings, "", "")
}
