//! HTTP without a network: the SDK clients of the stack itself reach its services by function calls.
//!
//! The functions and event sources use the same routers as everybody else, behind the ports. What falls away is what a
//! connection costs, which is more than the services do.

use std::net::SocketAddr;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use axum::Router;
use axum::body::{Body, to_bytes};
use bytes::Bytes;
use tower_service::Service as _;

/// Returns a client that calls the routers of these addresses, and connects to all others.
pub(crate) fn client(
    services: impl IntoIterator<Item = (SocketAddr, Router)>,
    others: SharedHttpClient,
) -> SharedHttpClient {
    let services = services.into_iter();
    let services = services.map(|(address, router)| (format!("http://{address}"), router));
    SharedHttpClient::new(InProcess {
        services: services.collect(),
        others,
    })
}

#[derive(Debug)]
struct InProcess<Others> {
    /// Endpoint and router of each service.
    services: Vec<(String, Router)>,
    others: Others,
}

impl HttpClient for InProcess<SharedHttpClient> {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(InProcess {
            services: self.services.clone(),
            others: self.others.http_connector(settings, components),
        })
    }
}

impl HttpConnector for InProcess<SharedHttpConnector> {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let is_called = |(endpoint, _): &&(String, Router)| {
            let rest = request.uri().strip_prefix(endpoint.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
        };
        let called = self.services.iter().find(is_called);
        match (called, request.body().bytes()) {
            (Some((_, router)), Some(body)) => {
                let (router, body) = (router.clone(), Bytes::copy_from_slice(body));
                HttpConnectorFuture::new(async move {
                    let response = call(router, request, body).await;
                    response.map_err(|error| ConnectorError::other(error, None))
                })
            }
            _ => self.others.call(request),
        }
    }
}

async fn call(
    mut router: Router,
    request: HttpRequest,
    body: Bytes,
) -> Result<HttpResponse, Box<dyn std::error::Error + Send + Sync>> {
    let request = request.try_into_http1x()?.map(|_| Body::from(body));
    // Calls at the same time overlap as they would on a network: others run before every request.
    tokio::task::yield_now().await;
    let response = router.call(request).await?;
    let (head, body) = response.into_parts();
    let body = SdkBody::from(to_bytes(body, usize::MAX).await?);
    let response = HttpResponse::try_from(axum::http::Response::from_parts(head, body))?;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use aws_smithy_runtime_api::client::http::http_client_fn;
    use aws_smithy_runtime_api::http::StatusCode;

    use super::*;
    use crate::clients::sdk_config_with;

    /// Answers what the stack does not serve.
    #[derive(Debug)]
    struct Elsewhere;

    impl HttpConnector for Elsewhere {
        fn call(&self, _: HttpRequest) -> HttpConnectorFuture {
            let status = StatusCode::try_from(404).unwrap();
            HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::from("{}"))))
        }
    }

    #[tokio::test]
    async fn only_requests_to_the_stack_stay_in_the_process() {
        let own: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let router = Router::new().fallback(|body: Bytes| async move {
            assert_eq!(body, r#"{"QueueNamePrefix":"q"}"#);
            r#"{"QueueUrls":["u"]}"#
        });
        let elsewhere = http_client_fn(|_, _| SharedHttpConnector::new(Elsewhere));
        let client = client([(own, router)], elsewhere);
        let list = async |address: SocketAddr| {
            let config = sdk_config_with(address, address, client.clone());
            let sqs = aws_sdk_sqs::Client::new(&config);
            sqs.list_queues().queue_name_prefix("q").send().await
        };
        assert_eq!(list(own).await.unwrap().queue_urls(), ["u"]);
        let error = list("127.0.0.1:90".parse().unwrap()).await.unwrap_err();
        assert_eq!(error.raw_response().unwrap().status().as_u16(), 404);
    }
}
