//! Paths of requests as API Gateway passes them on.

use antumbra_http_api::gateway::encoded;

#[test]
fn decoded_paths_are_encoded_and_encoded_ones_stay() {
    for (given, path) in [
        (
            "/v1/shadows/My House#Basement",
            "/v1/shadows/My%20House%23Basement",
        ),
        ("/v1/shadows/Poznań", "/v1/shadows/Pozna%C5%84"),
        ("/v1/shadows/a%2Fb%3Fc%25d", "/v1/shadows/a%2Fb%3Fc%25d"),
        ("/v1/shadows/100%", "/v1/shadows/100%25"),
        ("/v1/shadows/100%zz", "/v1/shadows/100%25zz"),
        ("/v1/shadows/..", "/v1/shadows/.."),
        (
            "/v1/shadows/a:b@c!$&'()*+,;=-._~",
            "/v1/shadows/a:b@c!$&'()*+,;=-._~",
        ),
        ("", "/"),
    ] {
        assert_eq!(encoded(given), path, "{given}");
    }
}
