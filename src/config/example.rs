//! The example: every key with what is said of it and its default, commented out, as TOML that loads.

use serde_json::Value as Json;

use crate::config::env;
use crate::config::shape::{Leaf, Shape, What};
use crate::config::value::toml_text;

const WIDTH: usize = 100;

/// A commented configuration with every key. As it stands, it gives nothing but the defaults.
pub fn example() -> String {
    let mut text = "\
# The configuration of forewarn. Every key stands here with its default, commented out; where there is no default, with
# an example. A variable of the environment is stronger than this file, a flag stronger than both. A variable is called
# FOREWARN_ and the key in capitals, nested by two underscores, as in FOREWARN_LIMITS__MAX_BODY.
#
# forewarn config check tells whether a configuration works, forewarn config show what is in force and why.
"
    .to_owned();
    write(Shape::root(), &mut Vec::new(), false, &mut text);
    text
}

/// Writes a table: its values, then the tables in it.
fn write(shape: &Shape, path: &mut Vec<String>, is_optional: bool, text: &mut String) {
    let What::Table(fields) = &shape.what else { return };
    for (key, field) in fields {
        if let What::Value(leaf) = &field.what {
            text.push('\n');
            comment(&doc(field, leaf), text);
            text.push_str(&format!("# {key} = {}\n", toml_text(shown(leaf))));
        }
    }
    for (key, field) in fields {
        let (table, is_optional, name) = match &field.what {
            What::Value(_) => continue,
            What::Table(_) => (field, is_optional, None),
            What::Names(name, each) => (&**each, true, Some(name)),
        };
        let length = path.len();
        path.push(key.clone());
        path.extend(name.cloned());
        text.push('\n');
        comment(&field.doc, text);
        let mark = if is_optional { "# " } else { "" };
        text.push_str(&format!("{mark}[{}]\n", path.join(".")));
        if name.is_some() {
            comment(
                &format!("In the environment: {}", env::name(&[path.clone(), vec!["…".to_owned()]].concat())),
                text,
            );
        }
        write(table, path, is_optional, text);
        path.truncate(length);
    }
}

/// What is said of a value, with its default unless that is told already.
fn doc(shape: &Shape, leaf: &Leaf) -> String {
    if shape.doc.contains("Default: ") {
        return shape.doc.clone();
    }
    let default = if leaf.default.is_null() { "none".to_owned() } else { toml_text(&leaf.default) };
    format!("{} Default: {default}.", shape.doc)
}

fn shown(leaf: &Leaf) -> &Json {
    let is_empty = leaf.default.is_null() || leaf.default.as_array().is_some_and(Vec::is_empty);
    if is_empty && !leaf.example.is_null() { &leaf.example } else { &leaf.default }
}

/// Adds a paragraph as comment lines of some width.
fn comment(paragraph: &str, text: &mut String) {
    let mut line = "#".to_owned();
    for word in paragraph.split_whitespace() {
        if line.chars().count() + word.chars().count() >= WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = "#".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}
