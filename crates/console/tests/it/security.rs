//! Requests that the console refuses.

use std::time::Duration;

use antumbra_service::clock::Clock as _;

use crate::support::{TestConsole, TestOptions, csrf_of, text};

const PAGES: [&str; 8] = [
    "/",
    "/device?id=x",
    "/live",
    "/registrations",
    "/sensors",
    "/deliveries",
    "/inbox",
    "/queues",
];
const WRITES: [&str; 10] = [
    "/device?id=x",
    "/registrations/try",
    "/deliveries/redeliver",
    "/deliveries/redeliver-since",
    "/deliveries/enable",
    "/deliveries/test",
    "/deliveries/create",
    "/inbox/delete",
    "/inbox/send",
    "/queues/redrive",
];

#[tokio::test]
async fn pages_need_a_session() {
    let console = TestConsole::start().await;
    let name = format!("antumbra-console-{}", console.address.port());
    for path in PAGES {
        for cookie in [
            "",
            "x=y",
            &format!("{name}="),
            &format!("{name}=wrong"),
            "antumbra-console-1=x",
        ] {
            let response = console
                .anonymous("GET", path)
                .header("cookie", cookie)
                .send()
                .await;
            assert_eq!(response.status, 401, "{path} {cookie}");
            assert!(
                text(&response.text).contains("Press Enter in the terminal"),
                "{path}"
            );
        }
        assert_eq!(console.get(path).await.status, 200);
    }
}

#[tokio::test]
async fn a_login_token_opens_one_session_within_ten_minutes() {
    let console = TestConsole::start().await;
    let path = || {
        let url = console.console.login_url();
        url.strip_prefix(&format!("http://{}", console.address))
            .unwrap()
            .to_owned()
    };
    let used = path();
    // A preview of the link does not use it up.
    assert_eq!(console.anonymous("HEAD", &used).send().await.status, 401);
    let response = console.anonymous("GET", &used).send().await;
    assert_eq!(response.status, 303);
    assert_eq!(response.header("location"), Some("/"));
    let cookie = response.header("set-cookie").unwrap();
    let name = format!("antumbra-console-{}=", console.address.port());
    assert!(cookie.starts_with(&name), "{cookie}");
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    assert_eq!(
        console.anonymous("GET", &used).send().await.status,
        401,
        "one use"
    );
    let late = path();
    let in_time = path();
    console.clock.advance(Duration::from_secs(599));
    assert_eq!(console.anonymous("GET", &in_time).send().await.status, 303);
    console.clock.advance(Duration::from_secs(1));
    assert_eq!(
        console.anonymous("GET", &late).send().await.status,
        401,
        "too late"
    );
    assert_eq!(
        console
            .anonymous("GET", "/login?token=")
            .send()
            .await
            .status,
        401
    );
    assert_eq!(console.anonymous("GET", "/login").send().await.status, 401);
    let _ = console.clock.now();
}

#[tokio::test]
async fn only_loopback_hosts_are_served() {
    let console = TestConsole::start().await;
    for (host, is_served) in [
        ("127.0.0.1", true),
        ("localhost:8080", true),
        ("[::1]:8080", true),
        ("evil.example", false),
        ("127.0.0.1.evil.example", false),
        ("localhost.evil.example:8080", false),
        ("192.168.0.7", false),
        ("evil.example@127.0.0.1", false),
        ("", false),
    ] {
        for path in ["/", "/assets/console.css", "/login"] {
            let response = console
                .request("GET", path)
                .header("host", host)
                .send()
                .await;
            assert_eq!(
                response.status == 403,
                !is_served,
                "{path} {host}: {}",
                response.status
            );
        }
    }
}

#[tokio::test]
async fn writes_need_the_origin_and_the_token_of_the_session() {
    let mut console = TestConsole::start().await;
    let own = format!("http://{}", console.address);
    let token = console.csrf_token().await;
    let path = "/device?id=lamp";
    let fields = [("csrf", token.as_str()), ("patch", r#"{"led":"on"}"#)];
    for (origin, site, is_served) in [
        (own.as_str(), "", true),
        (&own, "same-origin", true),
        ("", "same-origin", true),
        ("", "", false),
        ("null", "", false),
        ("http://evil.example", "", false),
        (&format!("{own}.evil.example"), "", false),
        (&own.replace("http:", "https:"), "", false),
        (&own, "cross-site", false),
        (&own, "same-site", false),
        ("", "none", false),
        ("http://evil.example", "same-origin", false),
    ] {
        let request = console.form(path, &fields).header("origin", origin);
        let response = request.header("sec-fetch-site", site).send().await;
        let expected = if is_served { 303 } else { 403 };
        assert_eq!(response.status, expected, "{origin:?} {site:?}");
    }
    for csrf in [&[][..], &[("csrf", "")], &[("csrf", "wrong")]] {
        let fields = [csrf, &[("patch", "{}")]].concat();
        assert_eq!(
            console.form(path, &fields).send().await.status,
            403,
            "{csrf:?}"
        );
    }
    // The token of another session of this console.
    let cookie = console.new_session().await;
    let other = console
        .request("GET", "/device?id=new")
        .header("cookie", &cookie);
    let other = csrf_of(&other.send().await.text);
    assert_ne!(other, token);
    let fields = [("csrf", other.as_str()), ("patch", "{}")];
    assert_eq!(console.form(path, &fields).send().await.status, 403);
    // The own token without the session, and with another one.
    let fields = [("csrf", token.as_str()), ("patch", "{}")];
    for (cookie, status) in [("", 401), (&cookie, 403)] {
        let request = console.form(path, &fields).header("cookie", cookie);
        assert_eq!(request.send().await.status, status, "{cookie}");
    }
    assert_eq!(console.post(path, &[("patch", "{}")]).await.status, 303);
}

#[tokio::test]
async fn every_write_is_refused_without_session_origin_or_token() {
    let console = TestConsole::start().await;
    for path in WRITES {
        let form = || console.form(path, &[("client", "x"), ("device", "x"), ("text", "{}")]);
        assert_eq!(form().send().await.status, 403, "{path}: no token");
        let foreign = form().header("origin", "http://evil.example");
        assert_eq!(foreign.send().await.status, 403, "{path}: foreign origin");
        let anonymous = form().header("cookie", "");
        assert_eq!(anonymous.send().await.status, 401, "{path}: no session");
        let named = form().header("host", "evil.example");
        assert_eq!(named.send().await.status, 403, "{path}: foreign host");
    }
    assert!(
        console
            .queues
            .iter()
            .all(|queue| queue.accepted().is_empty())
    );
}

#[tokio::test]
async fn a_read_only_console_refuses_every_write() {
    let options = TestOptions {
        write: false,
        ..TestOptions::default()
    };
    let mut console = TestConsole::start_with(options).await;
    for path in WRITES {
        // Trying a registration changes nothing; its form is long.
        let expected = match path {
            "/registrations/try" => 200,
            _ => 403,
        };
        let response = console.post(path, &[("client", "x"), ("text", "{}")]).await;
        assert_eq!(response.status, expected, "{path}");
    }
}

#[tokio::test]
async fn a_read_only_console_writes_nothing() {
    let options = TestOptions {
        write: false,
        ..TestOptions::default()
    };
    let mut console = TestConsole::start_with(options).await;
    let page = console.html("/device?id=lamp").await;
    assert!(page.contains("start with --write"), "{page}");
    console.endpoint.take_calls();
    let response = console
        .post("/device?id=lamp", &[("patch", r#"{"led":"on"}"#)])
        .await;
    assert_eq!(response.status, 403);
    assert!(response.text.contains("--write"));
    let calls = console.endpoint.take_calls();
    let is_write =
        |name: &str| !["GetItem", "Query", "BatchGetItem", "TransactGetItems"].contains(&name);
    let writes: Vec<_> = calls
        .iter()
        .filter(|call| is_write(&call.operation))
        .collect();
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test]
async fn responses_forbid_foreign_and_inline_content() {
    let console = TestConsole::start().await;
    let refused = console.anonymous("GET", "/").send().await;
    let script = console.get("/assets/console.js").await;
    let mut responses = vec![refused, script];
    for path in PAGES {
        responses.push(console.get(path).await);
    }
    for response in responses {
        let policy = response.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"),
            "{policy}"
        );
        assert!(
            !policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert!(response.header("access-control-allow-origin").is_none());
        if response.text.starts_with("<!DOCTYPE") {
            assert_eq!(response.header("cache-control"), Some("no-store"));
            for forbidden in [
                " style=",
                "<style",
                " onclick",
                "=\"http:",
                "=\"https:",
                "=\"//",
                "javascript:",
            ] {
                assert!(
                    !response.text.contains(forbidden),
                    "{forbidden}: {}",
                    response.text
                );
            }
        }
    }
}
