//! The target `mqtt`: a topic, through AWS IoT or a plain broker.

use std::borrow::Cow;

use antumbra_shadow::View;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::problem::Place;
use crate::read::{Fields, Reader};
use crate::template::TopicTemplate;

/// An MQTT topic.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase")]
pub struct Mqtt {
    /// The topic, with `${id}`, `${name}`, `${state}`, `${operation}`, `${shadow}`, `${key:ATTRIBUTE}` and `${env:NAME}`.
    pub topic: TopicTemplate,
    /// Quality of service: 0, at most once, or 1, at least once.
    #[schemars(with = "Option<QualityOfService>", extend("default" = 1))]
    pub qos: QualityOfService,
}

/// How hard a broker tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QualityOfService {
    /// 0
    AtMostOnce,
    /// 1
    #[default]
    AtLeastOnce,
}

impl JsonSchema for QualityOfService {
    fn schema_name() -> Cow<'static, str> {
        "QualityOfService".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "enum": [0, 1] })
    }
}

impl Mqtt {
    pub(super) fn read(
        view: View<'_>,
        place: &Place<'_>,
        reader: &mut Reader<'_, '_>,
    ) -> Option<Mqtt> {
        let mut fields = Fields::open(view, place, reader, &["topic", "qos"])?;
        let topic = fields.topic("topic");
        let qos = match fields.whole_number("qos", 1) {
            Some(0) => QualityOfService::AtMostOnce,
            _ => QualityOfService::AtLeastOnce,
        };
        Some(Mqtt { topic: topic?, qos })
    }
}
