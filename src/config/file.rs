//! The file: its syntax, and each value with its line.

use std::path::Path;

use serde::Deserialize as _;
use serde_json::Value as Json;
use toml::{
    Spanned,
    de::{DeTable, DeValue, ValueDeserializer},
};

use crate::config::given::{Layered, Origin, key_text};
use crate::config::nearest::{nearest, nearest_of_all};
use crate::config::shape::{Shape, What};

/// Adds what stands in `text`, the content of the file at `path`.
pub(super) fn read(path: &Path, text: &str, layered: &mut Layered) {
    let file = File { path, text };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let origin = file.line(error.span().map_or(0, |span| span.start));
        layered.refuse(origin, format!("is no TOML: {}", error.message().replace('\n', ", ")));
    }
    // What follows a slip of syntax may be understood wrongly, and would only be noise.
    if errors.is_empty() {
        file.walk(Shape::root(), table.get_ref(), &mut Vec::new(), layered);
    }
}

struct File<'f> {
    path: &'f Path,
    text: &'f str,
}

impl File<'_> {
    fn line(&self, at: usize) -> Origin {
        let before = self.text.as_bytes().iter().take(at);
        Origin::File(self.path.to_owned(), before.filter(|byte| **byte == b'\n').count() + 1)
    }

    fn walk(&self, shape: &Shape, table: &DeTable<'_>, path: &mut Vec<String>, layered: &mut Layered) {
        // By their place in the file, so that problems come in that order.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_unstable_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let origin = self.line(key.span().start);
            path.push(key.get_ref().to_string());
            match shape.child(key.get_ref()) {
                Some(child) => self.take(child, value, path, origin, layered),
                None => layered.refuse(origin, unknown(shape, path)),
            }
            path.pop();
        }
    }

    fn take(
        &self,
        shape: &Shape,
        value: &Spanned<DeValue<'_>>,
        path: &mut Vec<String>,
        origin: Origin,
        layered: &mut Layered,
    ) {
        match (&shape.what, value.get_ref()) {
            (What::Value(leaf), found) => {
                let json = match found {
                    DeValue::Datetime(_) => Err("is a time; write text in quotes".to_owned()),
                    _ => json(value),
                };
                match json.and_then(|value| leaf.check(&value).map(|()| value)) {
                    Ok(value) => layered.set(path.clone(), value, origin),
                    Err(problem) => layered.refuse_value(path, origin, problem),
                }
            }
            (_, DeValue::Table(table)) => {
                layered.set_table(path.clone(), origin);
                self.walk(shape, table, path, layered);
            }
            _ => {
                let key = key_text(path);
                layered.refuse(origin, format!("{key} is a value; it is a table, written as [{key}]"));
            }
        }
    }
}

fn json(value: &Spanned<DeValue<'_>>) -> Result<Json, String> {
    Json::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| error.message().to_owned())
}

/// What is said of a key that nothing is known of.
pub(super) fn unknown(shape: &Shape, path: &[String]) -> String {
    let (Some((name, parents)), What::Table(fields)) = (path.split_last(), &shape.what) else { return String::new() };
    let siblings = fields.iter().map(|(key, _)| key.as_str());
    let said = format!("{} is unknown", key_text(path));
    if let Some(meant) = nearest(name, siblings.clone()) {
        return format!("{said}; did you mean {}?", key_text(&[parents, &[meant.to_owned()]].concat()));
    }
    // A key of another table is most likely one that slipped below the wrong heading.
    let mut everywhere = Vec::new();
    let template = |path: &[String]| Shape::root().names_for_example(path);
    Shape::root().leaves(&mut Vec::new(), &template, &mut |path, _| everywhere.push(path.to_vec()));
    if let Some(elsewhere) = everywhere.iter().find(|path| path.last() == Some(name)) {
        return format!("{said} here; did you mean {}?", key_text(elsewhere));
    }
    match nearest_of_all(name, siblings) {
        Some(nearest) => format!("{said}; the nearest known name is {nearest}"),
        None => said,
    }
}
