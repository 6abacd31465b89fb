//! What a broker's refusals mean.

use rumqttc::v5::mqttbytes::v5::{ConnectReturnCode, DisconnectReasonCode, PubAckReason};
use rumqttc::v5::{ConnectionError, StateError};

use crate::classify::Retryability;

/// Why a broker did not take a message.
pub(super) type Refusal = PubAckReason;

/// Whether an acknowledgement says that the message was taken. With nobody subscribed it was.
pub(super) fn of_answer(reason: PubAckReason) -> Result<(), Refusal> {
    match reason {
        PubAckReason::Success | PubAckReason::NoMatchingSubscribers => Ok(()),
        refusal => Err(refusal),
    }
}

pub(super) fn of_refusal(refusal: Refusal) -> Retryability {
    match refusal {
        PubAckReason::NotAuthorized
        | PubAckReason::TopicNameInvalid
        | PubAckReason::PayloadFormatInvalid => Retryability::Permanent,
        _ => Retryability::Retry,
    }
}

/// A broker that is away or in trouble is worth another try, one that does not let us in or will
/// not have the message is not.
pub(super) fn of_error(error: &ConnectionError) -> Retryability {
    use ConnectReturnCode as Connect;
    use DisconnectReasonCode as Disconnect;
    let permanent = match error {
        ConnectionError::ConnectionRefused(code) => matches!(
            code,
            Connect::BadAuthenticationMethod
                | Connect::BadClientId
                | Connect::BadUserNamePassword
                | Connect::Banned
                | Connect::ClientIdentifierNotValid
                | Connect::NotAuthorized
                | Connect::RefusedProtocolVersion
                | Connect::UnsupportedProtocolVersion
        ),
        ConnectionError::MqttState(StateError::OutgoingPacketTooLarge { .. }) => true,
        ConnectionError::MqttState(StateError::ServerDisconnect { reason_code, .. }) => matches!(
            reason_code,
            Disconnect::NotAuthorized
                | Disconnect::PacketTooLarge
                | Disconnect::PayloadFormatInvalid
                | Disconnect::QoSNotSupported
                | Disconnect::TopicNameInvalid
        ),
        _ => false,
    };
    if permanent {
        Retryability::Permanent
    } else {
        Retryability::Retry
    }
}
