//! Scripts keep the contract in their headers.
//!
//! A header names each key and argument by number, name and meaning, and says what the script returns. A number after
//! `A` counts from the last of the common arguments, which `lib/shard.lua` documents.

use std::collections::BTreeSet;

use crate::{File, assert_none, files};

/// A script or a part of one, taken apart.
#[derive(Debug)]
pub(crate) struct Script {
    /// The file's name without directory and extension.
    pub(crate) name: String,
    /// Whether it is a part that several scripts share.
    pub(crate) is_part: bool,
    /// The comment the file begins with, without the dashes.
    pub(crate) header: Vec<String>,
    /// The rest without comments and without the contents of strings.
    code: String,
}

/// One line of a header that documents a key or an argument.
#[derive(Debug, PartialEq, Eq)]
struct Documented {
    number: usize,
    name: String,
    rest: String,
}

#[test]
fn every_script_says_what_it_does_and_returns() {
    let scripts = scripts();
    assert!(scripts.iter().any(|script| !script.is_part));
    let lacking = scripts.iter().filter(|script| {
        let says = script.header.first().is_some_and(|line| !line.is_empty());
        let returns = script.header.iter().any(|line| line.starts_with("Returns "));
        !says || !(script.is_part || returns)
    });
    assert_none(
        &lacking.map(|script| format!("{}: no first sentence, or no `Returns`", script.name)).collect::<Vec<_>>(),
    );
}

#[test]
fn every_argument_a_script_reads_stands_in_its_header_and_none_besides() {
    let scripts = scripts();
    let checked = scripts.iter().filter(|script| !script.is_part || script.name == "shard");
    assert_none(&checked.flat_map(argument_complaints).collect::<Vec<_>>());
}

#[test]
fn keys_are_bound_once_to_the_names_of_their_headers_and_agree_with_the_rust_table() {
    let table = key_table();
    let mut complaints = Vec::new();
    let mut readers = Vec::new();
    for script in scripts() {
        let keys = script.documented("KEYS[");
        if script.code.contains("KEYS[") {
            readers.push(script.name.clone());
        }
        for key in &keys {
            let kind = key.rest.split_whitespace().next().unwrap_or_default().to_lowercase();
            if table.get(key.number - 1) != Some(&(key.name.clone(), kind.clone())) {
                complaints
                    .push(format!("{}: KEYS[{}] {} {kind} is not so in keys.rs", script.name, key.number, key.name));
            }
            let uses = script.code.matches(&format!("KEYS[{}]", key.number)).count();
            let is_queue = key.name == "due";
            if uses != usize::from(!is_queue)
                || !is_queue && script.bound_to(&format!("KEYS[{}]", key.number)) != Some(&key.name)
            {
                complaints.push(format!("{}: KEYS[{}] is not bound once, to {}", script.name, key.number, key.name));
            }
        }
        if script.name == "shard" {
            assert_eq!(keys.len(), table.len(), "shard.lua documents other keys than keys.rs has");
        }
    }
    assert_none(&complaints);
    // All others get their keys by name from the part `shard`.
    assert_eq!(readers, ["ack", "shard"]);
}

#[test]
fn a_broken_contract_is_found() {
    let script = |text: &str| Script::new(&File { path: "scripts/x.lua".to_owned(), text: text.to_owned() });
    let is_found = |text: &str| !argument_complaints(&script(text)).is_empty();
    let sound = "-- Does.\n-- ARGV[A + 1]  route  its number; then\n-- ARGV[A + 2]  ids\n-- Returns {}\n\
                 local route = tonumber(ARGV[A + 1])\nfor i = A + 2, #ARGV do end";
    assert!(!is_found(sound));
    assert!(is_found(&sound.replace("route = ton", "queue = ton")));
    assert!(is_found(&sound.replace("A + 2, #", "A + 3, #")));
    assert!(is_found(&sound.replace("-- ARGV[A + 2]", "-- ARGV[A + 3]")));
    assert!(is_found(&format!("{sound}\nlocal more = ARGV[A + 3] .. 'x'")));
    assert!(is_found(&sound.replace("for i = A + 2, #ARGV", "for i = 1, 2")));
    assert!(is_found(&sound.replace("-- ARGV[A + 2]  ids\n", "")));
}

/// What is wrong with the arguments of one script. What a part reads is documented by the scripts that carry it.
fn argument_complaints(script: &Script) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut complain = |problem: String| complaints.push(format!("{}: {problem}", script.name));
    for begin in ["ARGV[A + ", "ARGV["] {
        let documented = script.documented(begin);
        let numbers: Vec<usize> = documented.iter().map(|it| it.number).collect();
        let read = literals(&script.code, begin);
        // From here on they are read in a loop.
        let from = if begin == "ARGV[" {
            if numbers.is_empty() { None } else { common_loop(&script.code) }
        } else {
            literals(&script.code.replace(begin, ""), "A + ").first().copied()
        };
        if numbers != (1..=numbers.len()).collect::<Vec<_>>() {
            complain(format!("{begin}n] is documented for {numbers:?}, not from 1 without a gap"));
        }
        for number in read.iter().chain(&from).filter(|number| !numbers.contains(number)) {
            complain(format!("reads {begin}{number}], which its header does not name"));
        }
        for it in documented {
            let place = format!("{begin}{}]", it.number);
            if !read.contains(&it.number) && from.is_none_or(|from| it.number < from) {
                complain(format!("never reads {place} {}", it.name));
            }
            if let Some(bound) = script.bound_to(&place).filter(|bound| *bound != it.name) {
                complain(format!("{place} is {} in the header and {bound} in the body", it.name));
            }
        }
    }
    complaints
}

/// The first of the common arguments that is read in a loop.
fn common_loop(code: &str) -> Option<usize> {
    let starts = literals(code, "unpack(ARGV, ").into_iter().chain(literals(code, "local from = "));
    starts.chain(literals(code, "#ARGV - ").into_iter().map(|before| before + 1)).min()
}

/// All scripts and parts, by path.
pub(crate) fn scripts() -> Vec<Script> {
    files("scripts", &["lua"]).iter().map(Script::new).collect()
}

/// Name and type of each key of a shard, as `keys.rs` has them, and the first queue.
fn key_table() -> Vec<(String, String)> {
    let keys = files("src/store/redis", &["rs"]).into_iter().find(|file| file.path.ends_with("/keys.rs")).unwrap();
    let (_, table) = keys.text.split_once("SHARD_KEYS").unwrap();
    let (table, _) = table.split_once("];").unwrap();
    let words: Vec<&str> = table.split('"').skip(1).step_by(2).collect();
    let pairs = words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned()));
    pairs.chain([("due".to_owned(), "zset".to_owned())]).collect()
}

impl Script {
    fn new(file: &File) -> Self {
        let (directory, name) = file.path.trim_end_matches(".lua").rsplit_once('/').unwrap();
        let comment = file.text.lines().take_while(|line| line.starts_with("--"));
        let header: Vec<String> = comment.map(|line| line.trim_start_matches('-').trim().to_owned()).collect();
        let code = file.text.lines().map(code_of).collect::<Vec<_>>().join("\n");
        Self { name: name.to_owned(), is_part: directory.ends_with("/lib"), header, code }
    }

    /// The lines of the header that begin so, with their numbers.
    fn documented(&self, begin: &str) -> Vec<Documented> {
        let lines = self.header.iter().filter_map(|line| {
            let (number, rest) = line.strip_prefix(begin)?.split_once(']')?;
            let (name, rest) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
            Some(Documented { number: number.parse().ok()?, name: name.to_owned(), rest: rest.trim().to_owned() })
        });
        lines.collect()
    }

    /// The name that a `local` statement gives to exactly this value, or to the number it is.
    fn bound_to(&self, value: &str) -> Option<&str> {
        self.code.lines().find_map(|line| {
            let (names, values) = line.trim().strip_prefix("local ")?.split_once(" = ")?;
            let place = values.split(", ").position(|it| it == value || it == format!("tonumber({value})"))?;
            names.split(", ").nth(place)
        })
    }

    /// The names the file defines for those that stand after it.
    pub(crate) fn definitions(&self) -> BTreeSet<String> {
        let lines = self.code.lines().filter_map(|line| line.strip_prefix("local "));
        lines.flat_map(|line| words(defined_by(line))).collect()
    }

    /// The names it uses and does not define anywhere itself.
    pub(crate) fn free_names(&self) -> BTreeSet<String> {
        let mut own = BTreeSet::new();
        for (keyword, end) in [("local ", '\n'), ("function", ')'), ("for ", '\n')] {
            for (at, _) in self.code.match_indices(keyword) {
                let rest = &self.code[at + keyword.len()..];
                let binding = &rest[..rest.find(end).unwrap_or(rest.len())];
                let names = if keyword == "function" { binding } else { defined_by(binding) };
                own.extend(words(names));
            }
        }
        words(&self.code).filter(|word| !own.contains(word)).collect()
    }
}

/// The left side of a binding.
fn defined_by(binding: &str) -> &str {
    let binding = binding.strip_prefix("function ").unwrap_or(binding);
    binding.find(['=', '(']).or_else(|| binding.find(" in ")).map_or(binding, |end| &binding[..end])
}

/// The words of a piece of code that are not fields of something.
fn words(code: &str) -> impl Iterator<Item = String> {
    let mut before = ' ';
    let spaced: String = code
        .chars()
        .map(|c| {
            let is_field = matches!(before, '.' | ':') && c.is_alphabetic();
            before = c;
            if is_field { '#' } else { c }
        })
        .collect();
    let pieces = spaced.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '#'))).map(str::to_owned);
    pieces.filter(|word| word.starts_with(|c: char| c.is_alphabetic())).collect::<Vec<_>>().into_iter()
}

/// A line without its comment and without the contents of its strings.
fn code_of(line: &str) -> String {
    let mut code = String::new();
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match quote {
            Some(_) if c == '\\' => drop(chars.next()),
            Some(open) if c == open => quote = None,
            Some(_) => continue,
            None if c == '-' && chars.peek() == Some(&'-') => break,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None => {}
        }
        code.push(c);
    }
    code.trim_end().to_owned()
}

/// All numbers that stand in the code after `begin`; after a bracket only those that close it at once.
fn literals(code: &str, begin: &str) -> BTreeSet<usize> {
    let found = code.match_indices(begin).filter_map(|(at, _)| {
        let rest = &code[at + begin.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let closes = !begin.contains('[') || rest[end..].starts_with(']');
        rest[..end].parse().ok().filter(|_| closes)
    });
    found.collect()
}
