//! What may stand where in a configuration: derived from the forms, so that no key is known in two places.

use std::sync::OnceLock;

use schemars::generate::SchemaSettings;
use serde::{Deserialize, Deserializer, de::MapAccess};
use serde_json::Value as Json;

use crate::api::SpanText;
use crate::config::form::ConfigForm;

/// What may stand at one place.
#[derive(Debug)]
pub(super) struct Shape {
    /// What is said of it, in one paragraph.
    pub(super) doc: String,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// A table of known keys, in the order of the forms.
    Table(Vec<(String, Shape)>),
    /// Tables that the user names, all alike; the name they have in the example.
    Names(String, Box<Shape>),
    /// A value.
    Value(Leaf),
}

#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) kind: Kind,
    /// The default; null if there is none.
    pub(super) default: Json,
    /// A value to show where there is no default.
    pub(super) example: Json,
    pub(super) secret: Secret,
}

/// How much of a value may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secret {
    /// All of it.
    No,
    /// It is a URL that may hold a password.
    Url,
    /// Nothing.
    All,
}

/// The type of a value.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Bool,
    Number {
        min: u64,
        max: u64,
    },
    Text,
    /// A duration as text.
    Span,
    /// One of some words.
    Words(Vec<String>),
    List(Box<Kind>),
}

impl Shape {
    /// The whole configuration.
    pub(super) fn root() -> &'static Self {
        static ROOT: OnceLock<Shape> = OnceLock::new();
        ROOT.get_or_init(|| {
            let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
            let schema = settings.into_generator().into_root_schema_for::<ConfigForm>();
            // Text keeps the order of the fields, which a parsed object does not.
            let complete = serde_json::to_string(&ConfigForm::complete()).unwrap_or_default();
            build(schema.as_value(), &serde_json::from_str(&complete).unwrap_or(Ordered::Leaf(Json::Null)))
        })
    }

    /// What stands under a key of a table, or under a name.
    pub(super) fn child(&self, key: &str) -> Option<&Self> {
        match &self.what {
            What::Table(fields) => fields.iter().find(|(name, _)| name == key).map(|(_, shape)| shape),
            What::Names(_, each) => Some(each),
            What::Value(_) => None,
        }
    }

    /// The value at a path.
    pub(super) fn leaf(&self, path: &[String]) -> Option<&Leaf> {
        let shape = path.iter().try_fold(self, |shape, key| shape.child(key))?;
        match &shape.what {
            What::Value(leaf) => Some(leaf),
            _ => None,
        }
    }

    /// The names that the example uses for the tables under a path.
    pub(super) fn names_for_example(&self, path: &[String]) -> Vec<String> {
        match path.iter().try_fold(self, |shape, key| shape.child(key)).map(|shape| &shape.what) {
            Some(What::Names(name, _)) => vec![name.clone()],
            _ => Vec::new(),
        }
    }

    /// Calls `each` for every value below, in the order of the forms; `names` answers which names there are at a path.
    pub(super) fn leaves(
        &self,
        path: &mut Vec<String>,
        names: &impl Fn(&[String]) -> Vec<String>,
        each: &mut impl FnMut(&[String], &Leaf),
    ) {
        let below: Vec<(String, &Self)> = match &self.what {
            What::Value(leaf) => return each(path, leaf),
            What::Table(fields) => fields.iter().map(|(key, shape)| (key.clone(), shape)).collect(),
            What::Names(_, shape) => names(path).into_iter().map(|name| (name, &**shape)).collect(),
        };
        for (key, shape) in below {
            path.push(key);
            shape.leaves(path, names, each);
            path.pop();
        }
    }
}

/// An object with its fields in the order they were written.
enum Ordered {
    Object(Vec<(String, Ordered)>),
    Leaf(Json),
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Ordered;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a value")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Ordered::Object(fields))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Ordered, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Ordered::Leaf(Json::Array(items)))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(value.into()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(number.into()))
            }
            fn visit_str<E>(self, text: &str) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(text.into()))
            }
            fn visit_unit<E>(self) -> Result<Ordered, E> {
                Ok(Ordered::Leaf(Json::Null))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

fn build(schema: &Json, complete: &Ordered) -> Shape {
    let doc = schema["description"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let what = match (complete, schema["additionalProperties"].as_object()) {
        (Ordered::Object(fields), Some(_)) => match fields.first() {
            Some((name, each)) => What::Names(name.clone(), Box::new(build(&schema["additionalProperties"], each))),
            None => What::Table(Vec::new()),
        },
        (Ordered::Object(fields), None) => {
            let field = |(name, each): &(String, Ordered)| (name.clone(), build(&schema["properties"][name], each));
            What::Table(fields.iter().map(field).collect())
        }
        (Ordered::Leaf(default), _) => What::Value(Leaf {
            kind: kind(schema),
            default: default.clone(),
            example: schema["examples"][0].clone(),
            secret: match schema["x-secret"].as_str() {
                Some("url") => Secret::Url,
                Some(_) => Secret::All,
                None => Secret::No,
            },
        }),
    };
    Shape { doc, what }
}

fn kind(schema: &Json) -> Kind {
    let words = words(schema);
    if !words.is_empty() {
        return Kind::Words(words);
    }
    let is = |name: &str| {
        let given = &schema["type"];
        given == name || given.as_array().is_some_and(|types| types.iter().any(|one| one == name))
    };
    if is("array") {
        return Kind::List(Box::new(kind(&schema["items"])));
    }
    if is("boolean") {
        return Kind::Bool;
    }
    if is("integer") {
        let largest = match schema["format"].as_str() {
            Some("uint32") => u64::from(u32::MAX),
            // The integers of TOML have a sign.
            _ => u64::try_from(i64::MAX).unwrap_or_default(),
        };
        let number = |name: &str| schema[name].as_u64();
        return Kind::Number { min: number("minimum").unwrap_or(0), max: number("maximum").unwrap_or(largest) };
    }
    if schema["pattern"] == SpanText::PATTERN { Kind::Span } else { Kind::Text }
}

/// The words of an enum, however the schema writes them.
fn words(schema: &Json) -> Vec<String> {
    let mut found: Vec<String> = schema["const"].as_str().map(str::to_owned).into_iter().collect();
    let listed = schema["enum"].as_array().into_iter().flatten();
    found.extend(listed.filter_map(Json::as_str).map(str::to_owned));
    for part in ["oneOf", "anyOf"] {
        found.extend(schema[part].as_array().into_iter().flatten().flat_map(words));
    }
    found
}
