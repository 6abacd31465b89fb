//! The table of routes.

use antumbra_http_api::routes::all;

/// The first route that fits is taken, so two paths must not fit the same request.
#[test]
fn no_request_fits_two_paths() {
    let endpoints = all();
    let is_parameter = |segment: &str| segment.starts_with('{');
    let fits =
        |(one, other): (&str, &str)| one == other || is_parameter(one) || is_parameter(other);
    for (at, one) in endpoints.iter().enumerate() {
        for other in &endpoints[..at] {
            let [segments, others] = [one.path, other.path].map(|path| path.split('/'));
            let both = segments.clone().count() == others.clone().count()
                && segments.zip(others).all(fits);
            let same = one.path == other.path && one.method != other.method;
            assert!(!both || same, "{} and {}", one.path, other.path);
        }
    }
}
