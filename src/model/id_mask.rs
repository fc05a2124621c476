//! How ids are shown: as they are, or by their handles. Every output for people and logs asks here.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::model::{FailureRecord, Handle, Id, IdKey};

/// How a namespace's ids are shown to people and logs. Default: as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdMask(Option<IdKey>);

impl IdMask {
    /// Shorter ids are not looked for in other people's texts: they are words there.
    const MIN_SCRUBBED: usize = 4;

    /// Shows ids as they are.
    pub fn none() -> Self {
        Self(None)
    }

    /// Shows the handles that this key makes.
    pub fn new(key: IdKey) -> Self {
        Self(Some(key))
    }

    /// An id as it is to be shown.
    pub fn show(&self, id: &Id) -> ShownId {
        self.0.as_ref().map_or_else(|| ShownId::Id(id.clone()), |key| ShownId::Handle(key.handle(id)))
    }

    /// A text in which the id may occur, such as what a handler says of its failure, with the handle in its place. Finds
    /// the id as text and in base64, not in other disguises.
    pub fn scrub<'t>(&self, id: &Id, text: &'t str) -> Cow<'t, str> {
        let Some(key) = self.0.as_ref().filter(|_| id.as_bytes().len() >= Self::MIN_SCRUBBED) else {
            return Cow::Borrowed(text);
        };
        let mut shown = Cow::Borrowed(text);
        for form in [id.as_text().map(str::to_owned), Some(id.to_string()), Some(id.to_base64())].into_iter().flatten()
        {
            if shown.contains(&form) {
                shown = Cow::Owned(shown.replace(&form, &key.handle(id).to_string()));
            }
        }
        shown
    }

    /// Takes an id out of what was recorded of its failures.
    pub fn scrub_failures(&self, id: &Id, failures: &mut [FailureRecord]) {
        for failure in failures {
            if let Cow::Owned(summary) = self.scrub(id, &failure.summary) {
                failure.summary = summary;
            }
        }
    }
}

/// An id as it is shown: the id itself, or its handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShownId {
    /// The id.
    Id(Id),
    /// What stands for it.
    Handle(Handle),
}

impl fmt::Display for ShownId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Handle(handle) => handle.fmt(f),
        }
    }
}

/// One field, to be flattened: `id` if it is text, else `id_base64`; `handle` if it is masked.
impl Serialize for ShownId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Id(id) => match id.as_text() {
                Some(text) => map.serialize_entry("id", text)?,
                None => map.serialize_entry("id_base64", &id.to_base64())?,
            },
            Self::Handle(handle) => map.serialize_entry("handle", handle)?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(bytes: impl Into<Vec<u8>>) -> Id {
        Id::new(bytes).unwrap()
    }

    fn mask() -> IdMask {
        IdMask::new(IdKey::from_bytes([7; 16]))
    }

    #[test]
    fn ids_that_are_no_text_travel_as_base64_and_masked_ones_as_handles() {
        let json = |mask: &IdMask, id| serde_json::to_string(&mask.show(&id)).unwrap();
        assert_eq!(json(&IdMask::none(), id("é")), r#"{"id":"é"}"#);
        assert_eq!(json(&IdMask::none(), id([0xFF])), r#"{"id_base64":"_w"}"#);
        let handle = IdKey::from_bytes([7; 16]).handle(&id("secret-session"));
        assert_eq!(json(&mask(), id("secret-session")), format!(r#"{{"handle":"{handle}"}}"#));
        assert_eq!(mask().show(&id("secret-session")).to_string(), handle.to_string());
    }

    #[test]
    fn an_id_is_taken_out_of_other_texts_in_each_of_its_usual_forms() {
        let secret = id("secret\nsession");
        let text = format!("no {secret}, no secret\nsession, no {}", secret.to_base64());
        let handle = mask().show(&secret).to_string();
        assert_eq!(mask().scrub(&secret, &text), format!("no {handle}, no {handle}, no {handle}"));
        assert_eq!(IdMask::none().scrub(&secret, &text), text);
        assert!(matches!(mask().scrub(&secret, "timeout"), Cow::Borrowed("timeout")));
        assert_eq!(mask().scrub(&id("the"), "the end"), "the end");
    }
}
