//! Objects of an S3 bucket, with requests signed by Signature Version 4. A few operations do not need an SDK.

use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_credential_types::provider::ProvideCredentials as _;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4::SigningParams;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::{Method, Request};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::error::{CliError, chain};

/// Maximum duration of a request.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Objects are listed in pages; a bucket with more pages is not read to its end.
const MOST_PAGES: usize = 1000;

pub(crate) struct Bucket {
    /// URL of the bucket, without a slash at the end.
    url: String,
    sdk: SdkConfig,
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
}

impl Bucket {
    /// Uses a bucket of the configured region, or of another endpoint.
    pub(crate) fn new(
        name: &str,
        endpoint: Option<&str>,
        sdk: SdkConfig,
    ) -> Result<Bucket, CliError> {
        let url = match (endpoint, sdk.region()) {
            (Some(endpoint), _) => format!("{}/{name}", endpoint.trim_end_matches('/')),
            (None, Some(region)) => {
                let suffix = match region.as_ref().starts_with("cn-") {
                    true => "amazonaws.com.cn",
                    false => "amazonaws.com",
                };
                format!("https://{name}.s3.{region}.{suffix}")
            }
            (None, None) => {
                let reason = "no AWS region is configured; use --region";
                return Err(CliError::invalid(reason));
            }
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(antumbra_lambda_kit::certificates::tls())
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Bucket {
            url,
            sdk,
            client: Client::builder(TokioExecutor::new()).build(connector),
        })
    }

    /// Keys of the objects, at most `limit`.
    pub(crate) async fn list(&self, limit: usize) -> Result<Vec<String>, CliError> {
        let (mut keys, mut token) = (Vec::new(), None::<String>);
        for _ in 0..MOST_PAGES {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("encoding-type", "url");
            query.append_pair("list-type", "2");
            if let Some(token) = &token {
                query.append_pair("continuation-token", token);
            }
            let listed = self.request(Method::GET, "/", &query.finish()).await?;
            let listed = String::from_utf8_lossy(&listed).into_owned();
            keys.extend(elements(&listed, "Key").map(|key| decode(&key)));
            token = elements(&listed, "NextContinuationToken").next();
            if token.is_none() || keys.len() >= limit {
                break;
            }
        }
        keys.truncate(limit);
        Ok(keys)
    }

    pub(crate) async fn get(&self, key: &str) -> Result<Bytes, CliError> {
        self.request(Method::GET, &path(key), "").await
    }

    pub(crate) async fn delete(&self, key: &str) -> Result<(), CliError> {
        self.request(Method::DELETE, &path(key), "").await.map(drop)
    }

    async fn request(&self, method: Method, path: &str, query: &str) -> Result<Bytes, CliError> {
        let mut url = format!("{}{path}", self.url);
        if !query.is_empty() {
            url = format!("{url}?{query}");
        }
        let failed = |reason: String| CliError::unavailable(format!("{method} {url}: {reason}"));
        let request = self.signed(&method, &url).await.map_err(failed)?;
        let response = async {
            let response = self.client.request(request).await;
            let response = response.map_err(|error| chain(&error))?;
            let status = response.status();
            let body = response.into_body().collect().await;
            let body = body.map_err(|error| chain(&error))?.to_bytes();
            match status.is_success() {
                true => Ok(body),
                false => {
                    let text = String::from_utf8_lossy(&body).into_owned();
                    let code = elements(&text, "Code").next().unwrap_or_default();
                    Err(format!("{status} {code}"))
                }
            }
        };
        match tokio::time::timeout(TIMEOUT, response).await {
            Ok(response) => response.map_err(failed),
            Err(_) => Err(failed("no response".to_owned())),
        }
    }

    async fn signed(&self, method: &Method, url: &str) -> Result<Request<Empty<Bytes>>, String> {
        let provider = self.sdk.credentials_provider();
        let provider = provider.ok_or("no AWS credentials are configured")?;
        let credentials = provider.provide_credentials().await;
        let identity = credentials.map_err(|error| chain(&error))?.into();
        let region = self.sdk.region();
        let region = region.ok_or("no AWS region is configured; use --region")?;
        let mut settings = SigningSettings::default();
        // As S3 computes it: the path as it is sent, and the hash of the body in a header.
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let params = SigningParams::builder()
            .identity(&identity)
            .region(region.as_ref())
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .map_err(|error| chain(&error))?
            .into();
        let mut request = Request::builder()
            .method(method)
            .uri(url)
            .body(Empty::new())
            .map_err(|error| chain(&error))?;
        let host = request
            .uri()
            .authority()
            .map(ToString::to_string)
            .unwrap_or_default();
        let headers = [("host", host.as_str())].into_iter();
        let signable =
            SignableRequest::new(method.as_str(), url, headers, SignableBody::Bytes(&[]));
        let signable = signable.map_err(|error| chain(&error))?;
        let (instructions, _) = sign(signable, &params)
            .map_err(|error| chain(&error))?
            .into_parts();
        instructions.apply_to_request_http1x(&mut request);
        Ok(request)
    }
}

/// The path of an object. `/` separates, and everything else that is not unreserved is encoded.
fn path(key: &str) -> String {
    let mut path = "/".to_owned();
    for byte in key.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                path.push(byte.into());
            }
            byte => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}

/// A text that S3 encoded for a URL.
fn decode(text: &str) -> String {
    let pairs = format!("={text}");
    let mut pairs = form_urlencoded::parse(pairs.as_bytes());
    pairs
        .next()
        .map_or_else(String::new, |(_, value)| value.into_owned())
}

/// Texts of the elements of a name. Those that are read here have no entities, as keys are encoded for a URL.
fn elements<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = String> + use<'a> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        let start = rest.find(&open)? + open.len();
        let end = start + rest[start..].find(&close)?;
        let text = rest[start..end].to_owned();
        rest = &rest[end + close.len()..];
        Some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_encoded_and_decoded() {
        for key in ["aws/lambda/1/shardId-0/2026/a.b-c", "a b+c%2F&é", ""] {
            assert_eq!(decode(&path(key)), format!("/{key}"));
        }
        assert_eq!(path("a b/ö"), "/a%20b/%C3%B6");
        assert_eq!(decode("a+b%2Bc"), "a b+c");
    }

    #[test]
    fn elements_are_read_in_order() {
        let xml = "<A><Key>one</Key><Other>x</Other><Key></Key></A><Key>open";
        assert_eq!(elements(xml, "Key").collect::<Vec<_>>(), ["one", ""]);
        assert_eq!(elements(xml, "None").count(), 0);
    }
}
