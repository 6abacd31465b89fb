//! The guard against hostile URLs and DNS responses, and its exceptions.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use antumbra_publish::webhook::{Allow, Guard, Resolve};
use antumbra_service::clients::{ClientId, Secret, UrlPolicy as _};
use antumbra_service::deliveries::{DeliveryId, HttpResponse, Post, PostError, Sender as _};
use antumbra_shadow::Timestamp;
use async_trait::async_trait;
use rustls::RootCertStore;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::endpoints::trusting;

const HOSTILE: &str = include_str!("../../testdata/hostile-urls.txt");

/// Returns the given responses, one per lookup; the last one repeats.
struct Dns(Mutex<VecDeque<Vec<IpAddr>>>);

impl Dns {
    fn of(responses: &[&[&str]]) -> Dns {
        let parse = |response: &&[&str]| response.iter().map(|ip| ip.parse().unwrap()).collect();
        Dns(Mutex::new(responses.iter().map(parse).collect()))
    }
}

#[async_trait]
impl Resolve for Dns {
    async fn resolve(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let mut responses = self.0.lock().unwrap();
        let response = match responses.len() {
            1 => responses[0].clone(),
            _ => responses.pop_front().unwrap_or_default(),
        };
        let response = response.into_iter().map(|ip| SocketAddr::new(ip, port));
        let response: Vec<_> = response.collect();
        Ok(response)
    }
}

fn guard(allow: &str, responses: &[&[&str]]) -> Guard {
    Guard::with_resolver(allow.parse().unwrap(), Arc::new(Dns::of(responses)))
}

async fn post(guard: Guard, url: &str) -> Result<HttpResponse, PostError> {
    let sender = trusting(RootCertStore::empty(), guard);
    let client = ClientId::new("c").unwrap();
    let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
    let id = DeliveryId::new(&client, now, 1, "x");
    let secret = Secret::random();
    let post = Post {
        url,
        id: &id,
        now,
        secrets: &[&secret],
        body: "{}",
    };
    sender.post(post).await
}

/// An endpoint that accepts and counts requests.
async fn endpoint(address: &str) -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            *counted.lock().unwrap() += 1;
            let mut buffer = vec![0; 65_536];
            let _ = stream.read(&mut buffer).await;
            let _ = stream
                .write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
                .await;
        }
    });
    (address, count)
}

#[tokio::test]
async fn hostile_urls_are_rejected_at_registration_and_at_delivery() {
    let urls: Vec<&str> = HOSTILE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect();
    assert!(urls.len() >= 100, "{}", urls.len());
    // Names would resolve to harmless addresses: the text alone must be rejected.
    let guard = guard("", &[&["93.184.216.34"]]);
    for url in urls {
        let given = guard.check(url).await;
        assert!(given.is_err(), "{url} was taken: {given:?}");
        let called = post(guard.clone(), url).await;
        assert!(
            matches!(called, Err(PostError::Failed(_))),
            "{url} {called:?}"
        );
    }
}

#[tokio::test]
async fn hostile_dns_responses_are_rejected() {
    let hostile: &[&[&str]] = &[
        &["127.0.0.1"],
        &["127.8.8.8"],
        &["0.0.0.0"],
        &["10.1.2.3"],
        &["172.20.1.1"],
        &["192.168.3.4"],
        &["169.254.169.254"],
        &["169.254.170.23"],
        &["100.64.3.3"],
        &["198.19.255.255"],
        &["192.0.2.77"],
        &["192.88.99.1"],
        &["224.0.0.251"],
        &["255.255.255.255"],
        &["::1"],
        &["::"],
        &["fe80::1"],
        &["fd00:ec2::254"],
        &["fc00::8"],
        &["ff02::fb"],
        &["::ffff:127.0.0.1"],
        &["::ffff:93.184.216.34"],
        &["64:ff9b::a9fe:a9fe"],
        &["2002:a00:1::1"],
        &["2001::1"],
        &["2001:db8::5"],
        // One bad address among good ones is enough, at any position.
        &["93.184.216.34", "127.0.0.1"],
        &["10.0.0.1", "93.184.216.34"],
        &["2606:2800:220:1::1", "::1"],
    ];
    for response in hostile {
        let guard = guard("", &[response]);
        let given = guard.check("https://hooks.example.com/").await;
        assert!(given.is_err(), "{response:?} was taken");
        let called = post(guard, "https://hooks.example.com/").await;
        let Err(PostError::Failed(reason)) = called else {
            panic!("{response:?} {called:?}");
        };
        assert!(reason.contains("refused"), "{response:?} {reason}");
    }
}

#[tokio::test]
async fn public_urls_are_accepted_in_normalized_form() {
    let guard = guard(
        "",
        &[&["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"]],
    );
    for (url, called) in [
        ("https://hooks.example.com", "https://hooks.example.com/"),
        (
            "https://HOOKS.example.com:443/In?a=b",
            "https://hooks.example.com/In?a=b",
        ),
        (
            "https://hooks.example.com:8443/",
            "https://hooks.example.com:8443/",
        ),
        ("https://93.184.216.34/x", "https://93.184.216.34/x"),
        (
            "https://[2606:2800:220:1::1]/",
            "https://[2606:2800:220:1::1]/",
        ),
        (
            "https://żółw.example.com/",
            "https://xn--w-uga1v8h.example.com/",
        ),
        ("https://1.1.1.1/", "https://1.1.1.1/"),
    ] {
        assert_eq!(guard.check(url).await.as_deref(), Ok(called), "{url}");
    }
}

/// The name resolves to a harmless address when it is registered and checked, and to this machine when it is called:
/// the guard checks the address of the connection.
#[tokio::test]
async fn dns_rebinding_does_not_reach_private_addresses() {
    let (address, count) = endpoint("127.0.0.1:0").await;
    let url = format!("https://rebind.example.com:{}/", address.port());
    let guard = guard("", &[&["93.184.216.34"], &["127.0.0.1"]]);
    guard.check(&url).await.unwrap();
    let called = post(guard, &url).await;
    let Err(PostError::Failed(reason)) = called else {
        panic!("{called:?}");
    };
    assert!(reason.contains("loopback"), "{reason}");
    assert_eq!(*count.lock().unwrap(), 0);
}

/// Each connection resolves its name once, so the checked address cannot change before the connection.
#[tokio::test]
async fn a_name_is_resolved_once_per_connection() {
    let (address, count) = endpoint("127.0.0.1:0").await;
    let url = format!("http://hooks.example.com:{}/", address.port());
    let allow = "http://127.0.0.1";
    // A second lookup would return an address that is not allowed.
    let once = guard(allow, &[&["127.0.0.1"], &["127.0.0.2"]]);
    assert_eq!(
        post(once.clone(), &url)
            .await
            .map(|response| response.status),
        Ok(204)
    );
    assert!(post(once, &url).await.is_err());
    assert_eq!(*count.lock().unwrap(), 1);
}

#[tokio::test]
async fn each_entry_opens_only_what_it_names() {
    let resolves: &[&[&str]] = &[&["127.0.0.1"]];
    for (allow, url, open) in [
        ("127.0.0.1", "https://127.0.0.1/", true),
        ("127.0.0.1", "https://127.0.0.2/", false),
        ("127.0.0.1", "http://127.0.0.1/", false),
        ("127.0.0.1", "https://hooks.example.com/", true),
        ("127.0.0.1", "https://localhost/", false),
        ("127.0.0.1:8443", "https://127.0.0.1:8443/", true),
        ("127.0.0.1:8443", "https://127.0.0.1/", false),
        ("127.0.0.0/8", "https://127.9.9.9/", true),
        ("127.0.0.0/8", "https://128.0.0.1:25/", false),
        ("127.0.0.0/8", "https://10.0.0.1/", false),
        ("http://127.0.0.1", "http://127.0.0.1/", true),
        ("http://127.0.0.1", "https://127.0.0.1/", true),
        ("http://127.0.0.1", "http://127.0.0.2/", false),
        ("http://127.0.0.1", "http://hooks.example.com/", true),
        ("http://127.0.0.2", "http://hooks.example.com/", false),
        (
            "http://127.0.0.1:80",
            "http://hooks.example.com:8080/",
            false,
        ),
        ("localhost", "https://localhost/", true),
        ("localhost", "https://localhost./", true),
        ("localhost", "https://app.localhost/", false),
        ("localhost", "https://127.0.0.1/", false),
        ("localhost", "http://localhost/", false),
        ("http://localhost", "http://localhost:8080/", true),
        ("db.internal", "https://db.internal/", true),
        ("db.internal", "https://other.db.internal/", false),
        ("db.internal", "https://xdb.internal/", false),
        ("db.internal:9000", "https://db.internal/", false),
        ("[fd00::]/8", "https://[fd12::1]/", true),
        ("[fd00::]/8", "https://[fc12::1]/", false),
        ("127.0.0.1:25", "https://127.0.0.1:25/", true),
        ("127.0.0.1:25", "https://hooks.example.com:25/", true),
        ("127.0.0.2:25", "https://hooks.example.com:25/", false),
        ("10.1.2.3:25", "https://8.8.8.8:25/", false),
        (
            "hooks.example.com:25",
            "https://hooks.example.com:25/",
            true,
        ),
        (
            "hooks.example.com:25",
            "https://other.example.com:25/",
            false,
        ),
        ("10.0.0.0/8", "https://[::ffff:10.0.0.1]/", false),
        ("10.0.0.0/8", "https://user@10.0.0.1/", false),
        ("10.0.0.0/8", "https://10.0.0.1/#x", false),
        ("10.0.0.0/8", "ftp://10.0.0.1/", false),
    ] {
        let taken = guard(allow, resolves).check(url).await;
        assert_eq!(taken.is_ok(), open, "{allow} {url} {taken:?}");
    }
    let _: Allow = "".parse().unwrap();
}

/// The port of one entry is not open on other hosts, whichever address a name resolves to.
#[tokio::test]
async fn a_port_is_open_only_together_with_its_host() {
    let url = "https://hooks.example.com:25/";
    for (allow, address, open) in [
        ("10.1.2.3:25", "10.1.2.3", true),
        ("10.1.2.3:25", "8.8.8.8", false),
        ("other.example.com:25", "8.8.8.8", false),
        ("10.1.2.3:25 127.0.0.1", "127.0.0.1", true),
    ] {
        let checked = guard(allow, &[&[address]]).check(url).await;
        assert_eq!(checked.is_ok(), open, "{allow} {address} {checked:?}");
    }
}

#[tokio::test]
async fn an_unresolvable_name_is_accepted_and_checked_at_delivery() {
    let nowhere = guard("", &[&[]]);
    assert!(nowhere.check("https://hooks.example.com/").await.is_ok());
    let called = post(nowhere, "https://hooks.example.com/").await;
    assert!(matches!(called, Err(PostError::Failed(_))));
}
