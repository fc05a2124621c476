//! Just enough of Rust's grammar to tell code from comments and strings.

/// A source text taken apart; line breaks stay in all parts, so that line numbers agree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The code, without comments and without the contents of strings.
    pub(crate) code: String,
    /// The contents of each string, with the line it begins on.
    pub(crate) strings: Vec<(usize, String)>,
}

/// Takes a source text apart.
pub(crate) fn parts(text: &str) -> Parts {
    let mut parts = Parts::default();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (length, string) = token(rest, first, parts.code.chars().next_back());
        let (taken, after) = rest.split_at(length);
        match string {
            Token::Code => parts.code.push_str(taken),
            Token::Comment => {}
            Token::String => {
                parts.code.push_str("\"\"");
                parts.strings.push((line, contents(taken)));
            }
        }
        if !matches!(string, Token::Code) {
            parts.code.extend(taken.chars().filter(|&c| c == '\n'));
        }
        line += taken.matches('\n').count();
        rest = after;
    }
    parts
}

enum Token {
    Code,
    Comment,
    String,
}

/// The length in bytes and the sort of the token that `rest` begins with; `before` is the last character of code.
fn token(rest: &str, first: char, before: Option<char>) -> (usize, Token) {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), Token::Comment);
    }
    if rest.starts_with("/*") {
        return (rest.find("*/").map_or(rest.len(), |end| end + 2), Token::Comment);
    }
    if first == '"' {
        return (quoted(rest), Token::String);
    }
    if !in_word && let Some(length) = raw(rest) {
        return (length, Token::String);
    }
    if first == '\'' {
        // A character, not a lifetime: 'x' or '\…'.
        let mut chars = rest.char_indices().skip(1);
        if let Some((_, second)) = chars.next() {
            if second == '\\' {
                let end = rest.get(3..).and_then(|tail| tail.find('\'')).map_or(rest.len(), |end| end + 4);
                return (end, Token::Code);
            }
            if let Some((at, '\'')) = chars.next() {
                return (at + 1, Token::Code);
            }
        }
    }
    (first.len_utf8(), Token::Code)
}

/// The length of the quoted string at the start of `rest`.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length of the raw string at the start of `rest`, if there is one.
fn raw(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.chars().take_while(|&c| c == '#').count();
    let body = after.get(hashes..)?.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = rest.len() - body.len();
    Some(body.find(&end).map_or(rest.len(), |at| begin + at + end.len()))
}

/// What stands between the quotes.
fn contents(string: &str) -> String {
    string.trim_start_matches(['b', 'r']).trim_matches('#').trim_matches('"').to_owned()
}

#[test]
fn comments_and_strings_are_told_from_code() {
    let source = "let a = \"x // y\\\"\"; // crate::engine\nlet b = '\"'; /* crate::http\n */ f::<'a>(r#\"{\"k\"}\"#)";
    let parts = parts(source);
    assert_eq!(parts.code, "let a = \"\"; \nlet b = '\"'; \n f::<'a>(\"\")");
    assert_eq!(parts.strings, [(1, "x // y\\\"".trim_matches('"').to_owned()), (3, "{\"k\"}".to_owned())]);
}
