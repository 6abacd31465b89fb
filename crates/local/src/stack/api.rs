//! The HTTP API: the router that runs behind API Gateway, here on a port of its own and behind a token.

use std::future::IntoFuture;
use std::net::SocketAddr;
use std::time::Duration;

use antumbra_dynamodb::{Config, DynamoDbAnswers, DynamoDbShadows, MAIN, client};
use antumbra_http_api::{Api, Door, Services, Token, router};
use antumbra_service::clock::Clock;
use antumbra_service::shadows::Shadows;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{Ground, StackError};
use crate::listen::bind;

/// How long requests may take to end once told to.
const PATIENCE: Duration = Duration::from_secs(2);

/// The API, listening. Dropping it stops it.
pub(super) struct HttpApi {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

/// Starts the API.
pub(super) async fn start(ground: &Ground, port: u16, token: &str) -> Result<HttpApi, StackError> {
    let (listener, address) = bind("HTTP", port).await?;
    let router = router(api(ground), Door::Token(Token::new(token)));
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let serving = tokio::spawn(async move {
        let told = stopped.clone();
        let server = axum::serve(listener, router)
            .with_graceful_shutdown(async move { told.cancelled().await })
            .into_future();
        let late = async {
            stopped.cancelled().await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            _ = server => {}
            () = late => {}
        }
    });
    Ok(HttpApi {
        address,
        stop,
        serving,
    })
}

fn api(ground: &Ground) -> Api {
    let sdk = ground.database();
    let clock = ground.clock.clone();
    let shadows = DynamoDbShadows::connect(&sdk, Config::new(MAIN.name).layout(ground.layout));
    Api::new(Services {
        shadows: Box::new(Shadows::with_clock(shadows, clock.clone())),
        answers: Box::new(DynamoDbAnswers::new(client(&sdk), MAIN.name)),
        now: Box::new(move || clock.now()),
    })
}

impl HttpApi {
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets requests end, then stops.
    pub(super) async fn stop(mut self) {
        self.stop.cancel();
        let _ = (&mut self.serving).await;
    }
}

impl Drop for HttpApi {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
