//! The queues of a deployment, over SQS's protocol on loopback.

use antumbra_http_api::QueueUrls;
use antumbra_queues::{Queues, QueuesConfig, Unkindness, sqs};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::Response;

async fn serve(State(queues): State<Queues>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let target = head.headers["x-amz-target"].to_str().unwrap();
    let operation = target.strip_prefix(sqs::TARGET).unwrap();
    queues.sqs(operation, &body).await.map(Body::from)
}

/// Starts SQS and creates the queues. The last URL is that of the outbound queue.
pub(crate) async fn start() -> (Client, QueueUrls, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let config = QueuesConfig {
        account: "000000000000".to_owned(),
        region: "us-east-1".to_owned(),
        endpoint: endpoint.clone(),
        data_dir: None,
        unkindness: Unkindness::default(),
    };
    let queues = Queues::open(config).unwrap();
    let router = Router::new().fallback(serve).with_state(queues);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(endpoint);
    let client = Client::from_conf(config.build());
    let create = async |name: &str| {
        let created = client.create_queue().queue_name(name);
        let created = match name.ends_with(".fifo") {
            true => created.attributes(aws_sdk_sqs::types::QueueAttributeName::FifoQueue, "true"),
            false => created,
        };
        created.send().await.unwrap().queue_url.unwrap()
    };
    let urls = QueueUrls {
        undeliverable: create("antumbra-undeliverable").await,
        quarantine: create("antumbra-quarantine").await,
        dead: create("antumbra-deliveries-dead").await,
        dead_fifo: create("antumbra-deliveries-dead.fifo").await,
        deliveries: create("antumbra-deliveries").await,
        deliveries_fifo: create("antumbra-deliveries.fifo").await,
        inbound: create("antumbra-inbound").await,
        signals: create("antumbra-signals").await,
        spill: create("antumbra-spill.fifo").await,
    };
    let outbound = create("antumbra-outbound").await;
    (client, urls, outbound)
}
