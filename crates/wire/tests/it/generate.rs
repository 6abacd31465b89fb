//! Random stream events from a seed: values of every type, written with or without white space and
//! escapes, members in any order, fields nobody knows.

use std::fmt::Write;

use fastrand::Rng;

/// A value with DynamoDB's types.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    S(String),
    N(String),
    B(String),
    Bool(bool),
    Null,
    M(Vec<(String, Value)>),
    L(Vec<Value>),
    Ss(Vec<String>),
    Ns(Vec<String>),
    Bs(Vec<String>),
}

pub(crate) type Item = Vec<(String, Value)>;

/// The spelling of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// White space between tokens.
    pub(crate) spaces: bool,
    /// Escapes where JSON does not demand them.
    pub(crate) escapes: bool,
}

pub(crate) fn item(random: &mut Rng) -> Item {
    members(random, 3)
}

/// The same item, a little changed and in another order now and then.
pub(crate) fn changed(item: &Item, random: &mut Rng) -> Item {
    let mut members: Item = item
        .iter()
        .filter_map(|(name, value)| {
            let value = match (value, random.u8(..10)) {
                (_, 0) => return None,
                (Value::M(inner), _) => Value::M(changed(inner, random)),
                (Value::L(list), 1 | 2) if !list.is_empty() => Value::L(list[1..].to_vec()),
                (_, 1) => self::value(random, 2),
                (value, _) => value.clone(),
            };
            Some((name.clone(), value))
        })
        .collect();
    if random.u8(..4) == 0 {
        let name = name(random);
        if members.iter().all(|(other, _)| *other != name) {
            members.push((name, value(random, 2)));
        }
    }
    if random.u8(..4) == 0 {
        random.shuffle(&mut members);
    }
    members
}

fn members(random: &mut Rng, depth: usize) -> Item {
    let mut members = Item::new();
    for _ in 0..random.usize(..6) {
        let name = name(random);
        if members.iter().all(|(other, _)| *other != name) {
            members.push((name, value(random, depth)));
        }
    }
    members
}

fn name(random: &mut Rng) -> String {
    const NAMES: [&str; 16] = [
        "a",
        "b",
        "value",
        "timestamp",
        "reported",
        "desired",
        "version",
        "id",
        "N",
        "M",
        "",
        "é",
        "a\"b",
        "back\\slash",
        "with/slash~",
        "a name of more than sixteen bytes",
    ];
    NAMES[random.usize(..NAMES.len())].to_owned()
}

pub(crate) fn value(random: &mut Rng, depth: usize) -> Value {
    let set = |random: &mut Rng, element: fn(&mut Rng) -> String| -> Vec<String> {
        let mut set: Vec<_> = (0..random.usize(1..4)).map(|_| element(random)).collect();
        set.dedup();
        set
    };
    match random.u8(..if depth == 0 { 9 } else { 13 }) {
        0 | 1 => Value::S(text(random)),
        2 | 3 => Value::N(number(random)),
        4 => Value::Bool(random.bool()),
        5 => Value::Null,
        6 => Value::B(binary(random)),
        7 => Value::Ss(set(random, text)),
        8 if random.bool() => Value::Ns(set(random, number)),
        8 => Value::Bs(set(random, binary)),
        9 => Value::L(
            (0..random.usize(..4))
                .map(|_| value(random, depth - 1))
                .collect(),
        ),
        10 => timestamped(random),
        _ => Value::M(members(random, depth - 1)),
    }
}

fn timestamped(random: &mut Rng) -> Value {
    let time = Value::N(format!("{}", 1_731_700_000 + random.u32(..3)));
    Value::M(vec![
        ("timestamp".to_owned(), time),
        ("value".to_owned(), Value::N(number(random))),
    ])
}

fn text(random: &mut Rng) -> String {
    const PIECES: [&str; 14] = [
        "a",
        "plain",
        "0123456789abcdef",
        "\"",
        "\\",
        "/",
        "\n",
        "\u{1}",
        "é",
        "€",
        "😀",
        "{",
        "}]",
        "\u{7f}",
    ];
    (0..random.usize(..5))
        .map(|_| PIECES[random.usize(..PIECES.len())])
        .collect()
}

/// A number in the form DynamoDB writes.
fn number(random: &mut Rng) -> String {
    let whole = match random.u8(..4) {
        0 => random.u64(..10),
        1 => random.u64(..),
        _ => random.u64(..100_000),
    };
    match random.u8(..5) {
        0 if whole > 0 => format!("-{whole}"),
        1 => format!("{whole}.{}", random.u32(..1000) * 10 + random.u32(1..10)),
        2 => format!(
            "{}{:019}",
            random.u32(1..10),
            random.u64(..1_000_000_000_000)
        ),
        _ => whole.to_string(),
    }
}

fn binary(random: &mut Rng) -> String {
    use base64::Engine;
    let bytes: Vec<u8> = (0..random.usize(..6)).map(|_| random.u8(..)).collect();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// One event of records about the given items: old and new.
pub(crate) fn event(
    changes: &[(Option<Item>, Option<Item>)],
    style: Style,
    random: &mut Rng,
) -> String {
    let mut writer = Writer {
        out: String::new(),
        style,
        random,
    };
    writer.raw("{\"Records\":[");
    for (index, (old, new)) in changes.iter().enumerate() {
        if index > 0 {
            writer.raw(",");
        }
        writer.record(index, old.as_ref(), new.as_ref());
    }
    writer.raw("]}");
    writer.out
}

struct Writer<'r> {
    out: String,
    style: Style,
    random: &'r mut Rng,
}

impl Writer<'_> {
    /// Writes JSON text as it is, with white space where tokens meet.
    fn raw(&mut self, text: &str) {
        let mut string = false;
        for c in text.chars() {
            self.out.push(c);
            string ^= c == '"';
            if self.style.spaces && !string && "{}[],:".contains(c) && self.random.u8(..3) == 0 {
                self.out
                    .push_str(["", " ", "\n", "\t\r "][self.random.usize(..4)]);
            }
        }
    }

    fn record(&mut self, index: usize, old: Option<&Item>, new: Option<&Item>) {
        let operation = match (old, new) {
            (None, _) => "INSERT",
            (_, None) => "REMOVE",
            _ => "MODIFY",
        };
        type Field<'a, 'r> = Box<dyn Fn(&mut Writer<'r>) + 'a>;
        let mut fields: Vec<Field<'_, '_>> = vec![
            Box::new(move |w| w.raw(&format!("\"eventID\":\"id-{index}\""))),
            Box::new(move |w| w.raw(&format!("\"eventName\":\"{operation}\""))),
            Box::new(|w| w.raw("\"awsRegion\":\"eu-west-1\"")),
            Box::new(|w| w.raw("\"eventSourceARN\":\"arn:aws:dynamodb:x\"")),
            Box::new(|w| w.raw("\"unknown\":{\"a\":[1,{\"b\":\"}\"}]}")),
            Box::new(move |w| w.dynamodb(index, old, new)),
        ];
        self.random.shuffle(&mut fields);
        self.raw("{");
        for (place, field) in fields.iter().enumerate() {
            if place > 0 {
                self.raw(",");
            }
            field(self);
        }
        self.raw("}");
    }

    fn dynamodb(&mut self, index: usize, old: Option<&Item>, new: Option<&Item>) {
        let keys = vec![
            ("PK".to_owned(), Value::S(format!("DS#thing#{index}"))),
            ("SK".to_owned(), Value::S("DSR#main".to_owned())),
        ];
        let mut members = vec![("Keys", &keys)];
        members.extend(old.map(|item| ("OldImage", item)));
        members.extend(new.map(|item| ("NewImage", item)));
        self.random.shuffle(&mut members);
        self.raw("\"dynamodb\":{\"SizeBytes\":1");
        for (name, item) in members {
            self.raw(&format!(",\"{name}\":"));
            self.item(item);
        }
        self.raw(&format!(",\"SequenceNumber\":\"{index}\"}}"));
    }

    fn item(&mut self, item: &Item) {
        self.raw("{");
        for (place, (name, value)) in item.iter().enumerate() {
            if place > 0 {
                self.raw(",");
            }
            self.string(name);
            self.raw(":");
            self.value(value);
        }
        self.raw("}");
    }

    fn value(&mut self, value: &Value) {
        let list = |w: &mut Self, tag: &str, list: &[String]| {
            w.raw(&format!("{{\"{tag}\":["));
            for (place, element) in list.iter().enumerate() {
                if place > 0 {
                    w.raw(",");
                }
                if tag == "NS" {
                    w.raw(&format!("\"{element}\""))
                } else {
                    w.string(element)
                }
            }
            w.raw("]}");
        };
        match value {
            Value::S(text) => {
                self.raw("{\"S\":");
                self.string(text);
                self.raw("}");
            }
            Value::B(text) => self.raw(&format!("{{\"B\":\"{text}\"}}")),
            Value::N(text) => self.raw(&format!("{{\"N\":\"{text}\"}}")),
            Value::Bool(value) => self.raw(&format!("{{\"BOOL\":{value}}}")),
            Value::Null => self.raw("{\"NULL\":true}"),
            Value::M(members) => {
                self.raw("{\"M\":");
                self.item(members);
                self.raw("}");
            }
            Value::L(values) => {
                self.raw("{\"L\":[");
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        self.raw(",");
                    }
                    self.value(value);
                }
                self.raw("]}");
            }
            Value::Ss(texts) => list(self, "SS", texts),
            Value::Ns(texts) => list(self, "NS", texts),
            Value::Bs(texts) => list(self, "BS", texts),
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            // One way for each character, since AWS writes all images of an event in one way.
            if self.style.escapes && !c.is_ascii_alphanumeric() && c != '#' {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(self.out, "\\u{unit:04x}");
                }
            } else {
                antumbra_shadow::text::escape_into(&mut self.out, c.encode_utf8(&mut [0; 4]));
            }
        }
        self.out.push('"');
    }
}
