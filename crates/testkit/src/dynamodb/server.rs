//! The DynamoDB server: embedded or external.

use std::net::{SocketAddr, TcpListener};
use std::sync::LazyLock;

use dynoxide::Database;

/// Variable with the URL of an external DynamoDB, such as `http://127.0.0.1:8000`.
const EXTERNAL: &str = "ANTUMBRA_TEST_DYNAMODB";

/// Returns the address of DynamoDB. The first call starts the embedded one, unless an external one is set.
pub fn address() -> SocketAddr {
    static ADDRESS: LazyLock<SocketAddr> = LazyLock::new(|| match std::env::var(EXTERNAL) {
        Ok(url) => external(&url),
        Err(_) => embedded(),
    });
    *ADDRESS
}

/// Returns whether tests use the embedded database.
pub(super) fn is_embedded() -> bool {
    std::env::var_os(EXTERNAL).is_none()
}

fn external(url: &str) -> SocketAddr {
    let address = url.strip_prefix("http://").unwrap_or(url);
    let address = address.trim_end_matches('/').parse();
    address.unwrap_or_else(|error| panic!("{EXTERNAL}={url}: {error}"))
}

/// Starts the server on a runtime of its own, which outlives the runtimes of the tests.
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
