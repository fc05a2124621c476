//! URLs of files: `sqlite:PATH` and `sqlite:///absolute/path`.

use std::path::PathBuf;

use crate::model::Invalid;

/// The path a URL names, as it stands there: nothing is decoded.
pub(super) fn path_of(url: &str) -> Result<PathBuf, Invalid> {
    let refuse = |problem| Err(Invalid::new("store", problem));
    let Some(rest) = url.strip_prefix("sqlite:") else {
        return refuse("is no sqlite URL; use sqlite:PATH or sqlite:///absolute/path");
    };
    let path = match rest.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => return refuse("names a host; use sqlite:PATH or sqlite:///absolute/path"),
        None => rest,
    };
    match path {
        "" => refuse("names no file; use sqlite:PATH, as in sqlite:forewarn.db"),
        ":memory:" => refuse("would be forgotten with the process; name a file, as in sqlite:forewarn.db"),
        _ if path.contains('?') => refuse("takes no parameters; use sqlite:PATH without a question mark"),
        _ => Ok(PathBuf::from(path)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_url_names_a_file() {
        for (url, path) in [
            ("sqlite:forewarn.db", "forewarn.db"),
            ("sqlite:./a/b.db", "./a/b.db"),
            ("sqlite:/var/lib/forewarn.db", "/var/lib/forewarn.db"),
            ("sqlite:///var/lib/forewarn.db", "/var/lib/forewarn.db"),
        ] {
            assert_eq!(path_of(url).unwrap(), Path::new(path), "{url}");
        }
        for url in ["redis://h", "sqlite:", "sqlite://", "sqlite://a.db", "sqlite::memory:", "sqlite:a.db?mode=rwc"] {
            assert_eq!(path_of(url).unwrap_err().field(), "store", "{url}");
        }
    }
}
