//! Hooks for incoming messages: reject those beyond the limits, pass the others to subscribers in the process.

#![expect(
    elided_lifetimes_in_paths,
    reason = "the broker's trait elides it, and async_trait wants the same of us"
)]

use async_trait::async_trait;
use rmqtt::{
    codec::types::QoS,
    context::ServerContext,
    hook::{Handler, HookResult, Parameter, ReturnType, Type},
    types::{Publish, PublishAclResult},
};

use super::{limits, message::Message, subscriptions::Subscriptions};

pub(super) async fn register(context: &ServerContext, subscriptions: Subscriptions) {
    let hooks = context.extends.hook_mgr().register();
    hooks
        .add(Type::MessagePublish, Box::new(Offer(subscriptions)))
        .await;
    hooks
        .add(Type::MessagePublishCheckAcl, Box::new(LimitCheck))
        .await;
    hooks.start().await;
}

/// Passes incoming messages to subscriptions, including last wills. The broker calls this hook before the other one,
/// so it checks the limits too.
struct Offer(Subscriptions);

#[async_trait]
impl Handler for Offer {
    async fn hook(&self, parameter: &Parameter, before: Option<HookResult>) -> ReturnType {
        if let Parameter::MessagePublish(_, sender, publish) = parameter
            && rejection(publish).is_none()
        {
            self.0.offer(&Message::received(sender, publish));
        }
        (true, before)
    }
}

/// Ends the connection of a device that exceeds the limits, as IoT Core does.
struct LimitCheck;

#[async_trait]
impl Handler for LimitCheck {
    async fn hook(&self, parameter: &Parameter, before: Option<HookResult>) -> ReturnType {
        if let Parameter::MessagePublishCheckAcl(session, publish) = parameter
            && let Some(reason) = rejection(publish)
        {
            tracing::warn!(client = %session.id.client_id, reason, "message rejected");
            let rejected = PublishAclResult::rejected(true, Some(reason.into()));
            return (false, Some(HookResult::PublishAclResult(rejected)));
        }
        (true, before)
    }
}

fn rejection(publish: &Publish) -> Option<String> {
    if publish.qos == QoS::ExactlyOnce {
        return Some("QoS 2 is not supported".to_owned());
    }
    let checked = limits::check(&publish.topic, &publish.payload);
    checked.err().map(|limit| limit.to_string())
}
