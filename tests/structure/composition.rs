//! The table in `store/redis/scripts.rs` gives each script the parts it uses, in an order that works, and no others.

use std::collections::BTreeSet;

use crate::lua::{Script, scripts};
use crate::{assert_none, files};

/// One script of the table.
#[derive(Debug)]
struct Entry {
    flags: String,
    /// Whether it is the second one of its operation, for key-backed ids.
    is_keyed: bool,
    parts: Vec<String>,
    body: String,
}

#[test]
fn every_script_is_in_the_rust_table_once() {
    let table = table();
    let counts = scripts().into_iter().filter(|script| !script.is_part).map(|script| {
        let count = table.iter().filter(|entry| !entry.is_keyed && entry.body == script.name).count();
        (script.name, count)
    });
    let complaints = counts.filter(|(_, count)| *count != 1).map(|(name, count)| format!("{name}: {count} entries"));
    assert_none(&complaints.collect::<Vec<_>>());
}

#[test]
fn every_script_carries_the_parts_it_uses_and_no_others() {
    let scripts = scripts();
    let complaints: Vec<String> = table().iter().flat_map(|entry| complaints(entry, &scripts)).collect();
    assert_none(&complaints);
}

#[test]
fn a_missing_or_idle_part_is_found() {
    let scripts = scripts();
    let mut table = table();
    let renew = table.iter_mut().find(|entry| !entry.is_keyed && entry.body == "renew").unwrap();
    assert!(complaints(renew, &scripts).is_empty());
    renew.parts.push("rank".to_owned());
    assert!(!complaints(renew, &scripts).is_empty());
    renew.parts.retain(|part| part != "rank" && part != "wake");
    assert!(!complaints(renew, &scripts).is_empty());
}

#[test]
fn a_script_that_writes_nothing_is_flagged_so() {
    let scripts = scripts();
    for entry in table() {
        let body = scripts.iter().find(|it| it.name == entry.body && !it.is_part).unwrap();
        let says = body.header.iter().any(|line| line.contains("Writes nothing."));
        assert_eq!(says, entry.flags.contains("no-writes"), "{}: header and flags disagree", entry.body);
    }
}

/// What is wrong with the parts of one entry.
fn complaints(entry: &Entry, scripts: &[Script]) -> Vec<String> {
    let part = |name: &String| scripts.iter().find(|it| it.is_part && it.name == *name);
    let body = scripts.iter().find(|it| !it.is_part && it.name == entry.body);
    let order: Vec<&Script> = entry.parts.iter().filter_map(part).chain(body).collect();
    if order.len() != entry.parts.len() + 1 {
        return vec![format!("{}: names something that has no file", entry.body)];
    }
    let mut complaints = Vec::new();
    let mut defined = BTreeSet::new();
    for (place, script) in order.iter().enumerate() {
        for other in scripts.iter().filter(|other| other.is_part && other.name != script.name) {
            let known = other.definitions();
            let missing: Vec<String> =
                script.free_names().intersection(&known).filter(|name| !defined.contains(*name)).cloned().collect();
            if !missing.is_empty() {
                complaints
                    .push(format!("{}: {} uses {missing:?}, which {} defines", entry.body, script.name, other.name));
            }
        }
        let definitions = script.definitions();
        let is_idle = script.is_part
            && !definitions.is_empty()
            && order[place + 1..].iter().all(|later| later.free_names().is_disjoint(&definitions));
        if is_idle {
            complaints.push(format!("{}: carries {} and does not use it", entry.body, script.name));
        }
        defined.extend(definitions);
    }
    complaints
}

/// The table as it stands in the source.
fn table() -> Vec<Entry> {
    let sources = files("src/store/redis", &["rs"]);
    let source = sources.iter().find(|file| file.path.ends_with("/scripts.rs")).unwrap();
    let words = |text: &str| text.split('"').skip(1).step_by(2).map(str::to_owned).collect::<Vec<String>>();
    let entries = source.text.split("operation!(").skip(1).flat_map(|entry| {
        let (entry, _) = entry.split_once(");").unwrap();
        let mut lists = entry.split('[');
        let (flags, body) = (words(lists.next().unwrap()).remove(0), words(entry).pop().unwrap());
        lists.enumerate().map(move |(place, list)| Entry {
            flags: flags.clone(),
            is_keyed: place > 0,
            parts: words(list.split_once(']').unwrap().0),
            body: body.clone(),
        })
    });
    entries.collect()
}
