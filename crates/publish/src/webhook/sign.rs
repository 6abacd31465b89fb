//! Signatures according to Standard Webhooks.

use antumbra_service::clients::Secret;
use standardwebhooks::{Webhook, WebhookError};

/// Returns the value of `webhook-signature`: one signature per secret, separated by spaces, each over
/// `id.timestamp.body`.
pub fn sign(
    secrets: &[&Secret],
    id: &str,
    seconds: i64,
    body: &str,
) -> Result<String, WebhookError> {
    let sign = |secret: &&Secret| Webhook::new(secret.reveal())?.sign(id, seconds, body.as_bytes());
    let signatures: Vec<String> = secrets.iter().map(sign).collect::<Result<_, _>>()?;
    Ok(signatures.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example is published with the specification's reference libraries.
    #[test]
    fn the_published_example_has_the_published_signature() {
        let secret = Secret::new("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
        let signature = sign(
            &[&secret],
            "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
            1_649_367_553,
            r#"{"email":"test@example.com","username":"test_user"}"#,
        );
        assert_eq!(
            signature.unwrap(),
            "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="
        );
    }
}
