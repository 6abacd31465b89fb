//! The target `mqtt`: a topic of AWS IoT Core, or of the local stack's broker.

use antumbra_shadow::View;

use super::{MessageOptions, TargetKind};
use crate::problem::Place;
use crate::read::{Fields, Reader};
use crate::template::TopicTemplate;

/// An MQTT topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mqtt {
    /// The topic, with `${id}`, `${name}`, `${state}`, `${operation}`, `${shadow}`, `${key:ATTRIBUTE}` and `${env:NAME}`.
    pub topic: TopicTemplate,
    /// Quality of service: 0, at most once, or 1, at least once.
    pub qos: QualityOfService,
}

/// MQTT quality of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QualityOfService {
    /// 0
    AtMostOnce,
    /// 1
    #[default]
    AtLeastOnce,
}

impl TargetKind for Mqtt {
    fn topic(&self) -> Option<&TopicTemplate> {
        Some(&self.topic)
    }

    fn options(&self) -> MessageOptions<'_> {
        MessageOptions {
            qos: self.qos as u8,
            ..MessageOptions::default()
        }
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
