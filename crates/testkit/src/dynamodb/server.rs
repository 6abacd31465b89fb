//! The server: embedded, or one that runs already.

use std::net::{SocketAddr, TcpListener};
use std::sync::LazyLock;

use dynoxide::Database;

/// Names a DynamoDB that runs already, such as `http://127.0.0.1:8000`.
const ELSEWHERE: &str = "ANTUMBRA_TEST_DYNAMODB";

/// Where DynamoDB listens. The first call starts the embedded one, unless the environment names another.
pub fn address() -> SocketAddr {
    static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(|| match std::env::var(ELSEWHERE) {
        Ok(url) => elsewhere(&url),
        Err(_) => embedded(),
    });
    *ADDRESS
}

fn elsewhere(url: &str) -> SocketAddr {
    let address = url.strip_prefix("http://").unwrap_or(url);
    let address = address.trim_end_matches('/').parse();
    address.unwrap_or_else(|error| panic!("{ELSEWHERE}={url}: {error}"))
}

/// Every test has a runtime of its own, which ends with it, so the server has one too.
fn embedded() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let database = Database::memory().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            dynoxide::server::serve_on(listener, database).await;
        });
    });
    address
}
