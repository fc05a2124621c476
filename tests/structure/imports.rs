//! Imports point one way: model, clock ← ports ← adapters; model, ports ← engine ← forewarn ← http, config, daemon
//! ← the command line.

use crate::{File, assert_none, files, rust};

/// Who may import whom, beside itself. A port is one layer, each of its adapters another.
const LAYERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("clock", &[]),
    ("store", &["model", "clock"]),
    ("sink", &["model", "clock"]),
    ("source", &["model", "clock"]),
    ("store::redis", &["model", "clock", "store"]),
    ("store::sqlite", &["model", "clock", "store"]),
    // The forms of the HTTP API, which its server and its client share.
    ("api", &["model", "clock", "store"]),
    ("store::remote", &["model", "clock", "store", "api"]),
    ("engine", &["model", "clock", "store", "sink", "source"]),
    // It picks the store from its URL.
    (
        "forewarn",
        &["model", "clock", "store", "sink", "source", "engine", "store::redis", "store::sqlite", "store::remote"],
    ),
    // Its store is an embedded one.
    ("testing", &["model", "clock", "store", "store::sqlite", "engine", "forewarn"]),
    ("config", &["model", "clock", "store", "sink", "source", "api", "engine", "forewarn"]),
    ("http", &["model", "clock", "store", "sink", "source", "api", "engine", "forewarn", "config"]),
    // It picks the sinks and the sources.
    ("daemon", &["model", "clock", "store", "sink", "source", "engine", "forewarn", "config", "http", "api"]),
];

/// Which of `store`'s modules are adapters.
const ADAPTERS: &[&str] = &["store::redis", "store::sqlite", "store::remote"];

#[test]
fn imports_point_one_way() {
    assert_none(&files("src", &["rs"]).iter().flat_map(complaints).collect::<Vec<_>>());
}

#[test]
fn an_import_that_points_back_is_found() {
    let found = |path: &str, text: &str| !complaints(&File { path: path.to_owned(), text: text.to_owned() }).is_empty();
    assert!(found("src/model/notice.rs", "use crate::store::Token;"));
    assert!(found("src/model/mod.rs", "use super::store::Token;"));
    assert!(found("src/model/notice.rs", "fn f(t: &super::super::engine::Worker) {}"));
    assert!(found("src/store/mod.rs", "use crate::store::redis::RedisStore;"));
    assert!(found("src/store/reply.rs", "use super::redis::RedisStore;"));
    assert!(found("src/engine/worker.rs", "fn f() { crate::store::redis::keys::exp() }"));
    assert!(found("src/engine/worker.rs", "use crate::forewarn::Namespace;"));
    assert!(found("src/engine/worker.rs", "use crate::{model, store};"));
    assert!(found("src/engine/worker.rs", "use crate::Namespace;"));
    assert!(found("src/new_layer.rs", ""));
    assert!(!found("src/engine/worker.rs", "use crate::store::Store; // crate::forewarn\n"));
    assert!(!found("src/engine/worker.rs", "mod tests { use super::*; use super::super::lease::Lease; }"));
    assert!(!found("src/forewarn.rs", "use crate::store::redis::RedisStore;"));
}

/// What is wrong with the imports of one file.
fn complaints(file: &File) -> Vec<String> {
    let module = module_of(&file.path);
    let Some(from) = layer_of(&module) else {
        return match module.first().map(String::as_str) {
            // The root of the library names all layers, the command line uses the library's public face.
            None | Some("main" | "bin" | "cli") => Vec::new(),
            _ => vec![format!("{}: belongs to no layer of this test's table", file.path)],
        };
    };
    let allowed = LAYERS.iter().find(|(name, _)| *name == from).map_or(&[][..], |(_, allowed)| allowed);
    let code = rust::parts(&file.text).code;
    let mut complaints = Vec::new();
    for (number, inside, path) in paths(&code) {
        let mut origin = module.clone();
        origin.extend(inside);
        let target = resolve(&origin, &path);
        let place = format!("{}:{number}: `{}`", file.path, path.join("::"));
        match layer_of(&target) {
            Some(to) if to == from || allowed.contains(&to) => {}
            Some(to) => complaints.push(format!("{place}: {from} may not import {to}")),
            None => complaints.push(format!("{place} names no module; name the one that owns it")),
        }
    }
    complaints
}

/// The module path of a file, without the crate: `src/store/redis/keys.rs` is store, redis, keys.
fn module_of(path: &str) -> Vec<String> {
    let path = path.trim_start_matches("src/").trim_end_matches(".rs");
    path.split('/').filter(|part| !matches!(*part, "mod" | "lib")).map(str::to_owned).collect()
}

fn layer_of(module: &[String]) -> Option<&'static str> {
    let first = module.first()?;
    let both = module.get(1).map(|second| format!("{first}::{second}"));
    let named = |name: &str| LAYERS.iter().map(|(layer, _)| *layer).find(|layer| *layer == name);
    both.filter(|both| ADAPTERS.contains(&both.as_str())).and_then(|both| named(&both)).or_else(|| named(first))
}

/// All paths in the code that begin with `crate` or `super`, each with its line and the inline modules it stands in.
fn paths(code: &str) -> Vec<(usize, Vec<String>, Vec<&str>)> {
    let mut found = Vec::new();
    // For each open brace the module it opens, if it does.
    let mut open: Vec<Option<String>> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let length = rest.find(|c| !is_path(c)).unwrap_or(rest.len()).max(first.len_utf8());
            let (word, after) = rest.split_at(length);
            match first {
                '{' => open.push(match words[..] {
                    [.., "mod", name] => Some(name.to_owned()),
                    _ => None,
                }),
                '}' => drop(open.pop()),
                _ if word == "super" || word.starts_with("super::") || word.starts_with("crate::") => {
                    let path = word.split("::").filter(|part| !part.is_empty()).collect();
                    found.push((index + 1, open.iter().flatten().cloned().collect(), path));
                }
                _ => {}
            }
            if !first.is_whitespace() {
                words.push(word);
            }
            rest = after;
        }
    }
    found
}

/// Where a path leads from a module.
fn resolve(module: &[String], path: &[&str]) -> Vec<String> {
    let ups = path.iter().take_while(|part| **part == "super").count();
    let base = match path.first() {
        Some(&"crate") => &[],
        _ => &module[..module.len().saturating_sub(ups)],
    };
    let names = path.iter().skip_while(|part| matches!(**part, "super" | "crate"));
    base.iter().cloned().chain(names.map(|name| (*name).to_owned())).collect()
}
