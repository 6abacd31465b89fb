//! The way of answers.

use std::sync::Arc;

use antumbra_publish::IotChannel;
use antumbra_service::notifications::Channel;
use aws_config::SdkConfig;

/// AWS IoT's data plane, at the account's own endpoint if given.
pub fn answers(sdk: &SdkConfig, iot_endpoint: Option<&str>) -> Arc<dyn Channel> {
    let mut iot = aws_sdk_iotdataplane::config::Builder::from(sdk);
    if let Some(endpoint) = iot_endpoint {
        let scheme = if endpoint.contains("://") {
            ""
        } else {
            "https://"
        };
        iot = iot.endpoint_url(format!("{scheme}{endpoint}"));
    }
    let client = aws_sdk_iotdataplane::Client::from_conf(iot.build());
    Arc::new(IotChannel::new(&client))
}
