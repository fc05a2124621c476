//! What forewarn's own users may do on the servers of the tests: what `docs/operating.md` tells to give, and nothing else.
//!
//! The document is read when a test runs, so that a right which it lacks is a test that fails.

use std::fs;

/// The user of every connection that is not the harness's own.
pub(super) const USER: &str = "forewarn";
/// Its password, in place of the one in the document.
pub(crate) const PASSWORD: &str = "of-the-tests";

/// The lines of the document that give rights, as they stand there.
pub(crate) fn documented_rights() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operating.md");
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| line.starts_with("ACL SETUSER ")).map(str::to_owned).collect()
}

/// Rights of one user, in the words of `ACL SETUSER`.
#[derive(Debug, Clone)]
pub(crate) struct Rights(Vec<String>);

impl Rights {
    /// What every store needs.
    pub(crate) fn documented() -> Self {
        let mut rights = Self(Vec::new());
        rights.add(" on >PASSWORD ");
        *rights.0.iter_mut().find(|word| *word == ">PASSWORD").unwrap() = format!(">{PASSWORD}");
        rights
    }

    /// The same under another `?prefix=`.
    pub(crate) fn of_prefix(prefix: &str) -> Self {
        let Self(words) = Self::documented();
        let moved = words.into_iter().map(|word| match word.starts_with(['~', '&']) {
            true => word.replacen("fw:", &format!("{prefix}:"), 1),
            false => word,
        });
        Self(moved.collect())
    }

    /// The harness's own: all but what every call of forewarn needs, so that forewarn cannot pass for the harness.
    pub(super) fn of_owner() -> Self {
        Self(Vec::new()).and("on nopass ~* &* +@all -evalsha")
    }

    /// And what ids that are keys of this pattern need.
    pub(crate) fn with_keys(mut self, pattern: &str) -> Self {
        let added = self.add(" %R~user_session:* ");
        self.0[added] = format!("%R~{pattern}");
        self
    }

    /// And what it takes to manage these keys.
    pub(crate) fn with_managed_keys(self, pattern: &str) -> Self {
        let mut rights = self.with_keys(pattern);
        let added = rights.add(" ~user_session:* ");
        rights.0[added] = format!("~{pattern}");
        rights
    }

    /// And more than is documented.
    pub(crate) fn and(mut self, words: &str) -> Self {
        self.0.extend(words.split_whitespace().map(str::to_owned));
        self
    }

    /// Without one that is documented.
    pub(crate) fn without(mut self, word: &str) -> Self {
        let before = self.0.len();
        self.0.retain(|known| known != word);
        assert_eq!(self.0.len() + 1, before, "{word} is in docs/operating.md once");
        self
    }

    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Adds what the one line about forewarn's user with this in it gives; answers where that begins.
    fn add(&mut self, part: &str) -> usize {
        let start = format!("ACL SETUSER {USER} ");
        let lines = documented_rights();
        let mut found = lines.iter().filter(|line| line.starts_with(&start) && line.contains(part));
        let (Some(line), None) = (found.next(), found.next()) else {
            panic!("docs/operating.md has one line {start:?} with {part:?}");
        };
        let at = self.0.len();
        self.0.extend(line[start.len()..].split_whitespace().map(str::to_owned));
        at
    }
}

/// The URL of a server of the tests, or of what leads to one, for forewarn's own connections.
pub(crate) fn as_forewarn(url: &str) -> String {
    as_user(USER, url)
}

pub(super) fn as_user(user: &str, url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap();
    match scheme {
        "redis+unix" => {
            let joint = if url.contains('?') { '&' } else { '?' };
            format!("{url}{joint}user={user}&pass={PASSWORD}")
        }
        _ => format!("{scheme}://{user}:{PASSWORD}@{rest}"),
    }
}
