//! Presigned WebSocket URLs of AWS IoT (Signature Version 4).

use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{
    SessionTokenMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign,
};
use aws_sigv4::sign::v4::SigningParams;

/// Signing name of AWS IoT's MQTT endpoint.
const SERVICE: &str = "iotdevicegateway";
/// Validity of the URL. A connection made with it lasts longer.
const VALIDITY: Duration = Duration::from_secs(60);

/// Returns the URL of the account's data endpoint, signed with the configured credentials.
pub(super) async fn url(endpoint: &str, sdk: &SdkConfig) -> Result<String, String> {
    let region = sdk
        .region()
        .ok_or("no AWS region is configured; use --region")?;
    let provider = sdk
        .credentials_provider()
        .ok_or("no AWS credentials are configured")?;
    let credentials = provider
        .provide_credentials()
        .await
        .map_err(|error| crate::error::chain(&error))?;
    signed(endpoint, region.as_ref(), credentials, SystemTime::now())
}

fn signed(
    endpoint: &str,
    region: &str,
    credentials: Credentials,
    now: SystemTime,
) -> Result<String, String> {
    let text = |error: &dyn std::error::Error| crate::error::chain(error);
    let host = endpoint.trim_start_matches("wss://").trim_matches('/');
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(VALIDITY);
    // AWS IoT expects the session token outside the signature.
    settings.session_token_mode = SessionTokenMode::Exclude;
    let identity = credentials.into();
    let params = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name(SERVICE)
        .time(now)
        .settings(settings)
        .build()
        .map_err(|error| text(&error))?
        .into();
    let url = format!("https://{host}/mqtt");
    let headers = [("host", host)].into_iter();
    let request = SignableRequest::new("GET", &url, headers, SignableBody::Bytes(&[]))
        .map_err(|error| text(&error))?;
    let (instructions, _) = sign(request, &params)
        .map_err(|error| text(&error))?
        .into_parts();
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in instructions.params() {
        query.append_pair(name, value);
    }
    Ok(format!("wss://{host}/mqtt?{}", query.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_signed_as_aws_iot_expects() {
        let credentials = Credentials::new(
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            Some("session/token+=".to_owned()),
            None,
            "test",
        );
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_800);
        let endpoint = "a1b2-ats.iot.eu-west-1.amazonaws.com";
        let url = signed(endpoint, "eu-west-1", credentials, now).unwrap();
        let (before, query) = url.split_once('?').unwrap();
        assert_eq!(before, format!("wss://{endpoint}/mqtt"));
        let mut query: Vec<&str> = query.split('&').collect();
        query.sort_unstable();
        assert_eq!(query, EXPECTED);
    }

    /// Calculated from the definition of the signature, without this library.
    const EXPECTED: [&str; 7] = [
        "X-Amz-Algorithm=AWS4-HMAC-SHA256",
        "X-Amz-Credential=AKIDEXAMPLE%2F20260131%2Feu-west-1%2Fiotdevicegateway%2Faws4_request",
        "X-Amz-Date=20260131T120000Z",
        "X-Amz-Expires=60",
        "X-Amz-Security-Token=session%2Ftoken%2B%3D",
        "X-Amz-Signature=a7f8f50d6ad5cd149d1125af33d917582c3a3cc12734d778defe67d18decac99",
        "X-Amz-SignedHeaders=host",
    ];
}
