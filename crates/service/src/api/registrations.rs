//! Registrations, from the texts of their files.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
#[cfg(feature = "openapi")]
use utoipa::ToSchema;

/// A registration within a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct RegistrationSummary {
    /// Name, unique among all registrations.
    pub name: String,
    /// Purpose, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Disabled registrations match nothing.
    pub enabled: bool,
    /// Kind of the target, such as `sqs`.
    pub target: String,
    /// Name of the file.
    pub file: String,
}

/// A registration.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(ToSchema))]
pub struct Registration {
    /// Name, target and file.
    #[serde(flatten)]
    pub summary: RegistrationSummary,
    /// Content of the file. Placeholders such as `${env:NAME}` are not replaced.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub registration: Box<RawValue>,
}

#[derive(Deserialize)]
struct Content {
    name: String,
    description: Option<String>,
    #[serde(default = "yes")]
    enabled: bool,
    to: serde_json::Map<String, serde_json::Value>,
}

fn yes() -> bool {
    true
}

impl Registration {
    /// Reads the text of a file that was checked when it was loaded or deployed.
    pub fn parse(file: &str, text: &str) -> Result<Registration, serde_json::Error> {
        let content: Content = serde_json::from_str(text)?;
        Ok(Registration {
            summary: RegistrationSummary {
                name: content.name,
                description: content.description,
                enabled: content.enabled,
                target: content.to.keys().next().cloned().unwrap_or_default(),
                file: file.to_owned(),
            },
            registration: serde_json::from_str(text)?,
        })
    }
}

page! {
    /// A page of registrations, ordered by name.
    RegistrationPage { registrations: RegistrationSummary } from RegistrationSummary
}
