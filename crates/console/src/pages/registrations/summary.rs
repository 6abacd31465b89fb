//! The row of a registration, from the text of its file.

use serde_json::value::RawValue;

use crate::json::Json;

/// Row of a registration, from its text.
pub(super) struct Summary {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) key: Option<String>,
    pub(super) conditions: String,
    pub(super) target: String,
    pub(super) sends_to: String,
    pub(super) enabled: bool,
    pub(super) pattern: Option<String>,
}

pub(super) fn summary(file: &str, registration: &str) -> Summary {
    let parsed: Option<&RawValue> = serde_json::from_str(registration).ok();
    let json = parsed.map_or(Json::Scalar, Json::of);
    let text =
        |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    let on = json.member("on").map_or(Json::Scalar, Json::of);
    let list = |name: &str| {
        let list = on.member(name).map(RawValue::get).unwrap_or_default();
        let list: Vec<String> = serde_json::from_str(list).unwrap_or_default();
        Some(list.join(", ")).filter(|list| !list.is_empty())
    };
    let pattern = on.member("pattern");
    let roots = pattern.map(Json::of).map(|pattern| match pattern {
        Json::Object(members) => {
            let names: Vec<String> = members.into_iter().map(|(name, _)| name).collect();
            format!("pattern on {}", names.join(", "))
        }
        _ => "pattern".to_owned(),
    });
    let leaf = on.member("leaf").map(Json::of);
    let leaf = leaf.and_then(|leaf| text(leaf.member("path")));
    let conditions = [
        text(on.member("state")),
        list("operations"),
        text(on.member("changes")),
        roots,
        leaf.map(|path| format!("leaf {path}")),
    ];
    let conditions: Vec<String> = conditions.into_iter().flatten().collect();
    let to = json.member("to").map_or(Json::Scalar, Json::of);
    let (target, inner) = match &to {
        Json::Object(members) => match members.first() {
            Some((kind, raw)) => (kind.clone(), Json::of(raw)),
            None => (String::new(), Json::Scalar),
        },
        _ => (String::new(), Json::Scalar),
    };
    let address = ["queue", "topic", "bus"].into_iter();
    let mut address = address.filter_map(|name| text(inner.member(name)));
    let sends_to = match target.as_str() {
        "clients" => "linked webhook clients".to_owned(),
        _ => address.next().unwrap_or_default(),
    };
    Summary {
        name: text(json.member("name")).unwrap_or_else(|| file.to_owned()),
        description: text(json.member("description")),
        key: text(on.member("key")),
        conditions: match conditions.is_empty() {
            true => "any".to_owned(),
            false => conditions.join("; "),
        },
        target,
        sends_to,
        enabled: json
            .member("enabled")
            .is_none_or(|raw| raw.get() != "false"),
        pattern: pattern.map(|raw| raw.get().to_owned()),
    }
}
