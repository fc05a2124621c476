//! From what outputs show back to ids: by a handle, and by the cursor of a list.
//!
//! Nothing is stored for it: the ids of the namespace are gone through until one fits.

use crate::forewarn::namespace::Namespace;
use crate::model::{Cursor, Handle, Id, IdKey, IdMask, ShownId};
use crate::store::copy::Row;
use crate::store::{Found, ListQuery, ParkedQuery, Shelf, StoreError};

/// Rows read in one call.
const PAGE: u32 = 1_000;

impl Namespace {
    /// How ids are to be shown to people and logs: by their handles, if the settings say `sensitive_ids`.
    ///
    /// # Errors
    /// [`StoreError::Unconfigured`] if there are no settings, [`StoreError::Denied`] by a daemon that keeps the key of handles from
    /// the caller.
    pub async fn id_mask(&self) -> Result<IdMask, StoreError> {
        let configured = self.configured().await?;
        if configured.settings.sensitive_ids && configured.id_key.is_none() {
            let source = "the ids of this namespace are secrets, and the key of their handles is not given; through a daemon it needs \
                          a token of scope write or admin";
            return Err(StoreError::Denied { address: self.store().place(), source: source.into() });
        }
        Ok(configured.id_mask())
    }

    /// The id behind a handle, if it is armed, parked, or has an open cleanup.
    ///
    /// Goes through the armed ids by expiry, then through what is parked, then through everything else; so an id that
    /// expires soon is found at once, and that there is none is known after two passes. What is moved while it looks may
    /// escape it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn find(&self, handle: &Handle) -> Result<Option<Id>, StoreError> {
        match self.store().find(self.name()?, handle).await? {
            Found::Id(id) => return Ok(Some(id)),
            Found::Nowhere => return Ok(None),
            Found::NoShortWay => {}
        }
        let Some(key) = self.configured().await?.id_key.clone() else { return Ok(None) };
        let sought = Sought { namespace: self, key, handle };
        if let Some(id) = sought.among_armed(None, i64::MAX).await? {
            return Ok(Some(id));
        }
        for shelf in [Shelf::Dead, Shelf::Review] {
            if let Some(id) = sought.among_parked(shelf).await? {
                return Ok(Some(id));
            }
        }
        sought.among_rows().await
    }

    /// Where a list goes on after a cursor, as [`ListQuery::after`] takes it. If the entry it names is gone, the list begins
    /// again with its instant: something may come twice, and nothing is left out.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn place_of(&self, cursor: &Cursor) -> Result<(i64, Id), StoreError> {
        let handle = match &cursor.last {
            ShownId::Id(id) => return Ok((cursor.expires_at_ms, id.clone())),
            ShownId::Handle(handle) => handle,
        };
        let before = (cursor.expires_at_ms.saturating_sub(1), Id::new([0xFF; Id::MAX_LEN])?);
        let Some(key) = self.configured().await?.id_key.clone() else { return Ok(before) };
        let sought = Sought { namespace: self, key, handle };
        let found = sought.among_armed(Some(before.clone()), cursor.expires_at_ms).await?;
        Ok(found.map_or(before, |id| (cursor.expires_at_ms, id)))
    }
}

/// A handle whose id is sought.
struct Sought<'a> {
    namespace: &'a Namespace,
    key: IdKey,
    handle: &'a Handle,
}

impl Sought<'_> {
    fn fits(&self, id: &Id) -> bool {
        self.key.fits(self.handle, id)
    }

    /// Among the armed ids after a place, as far as those that expire at an instant.
    async fn among_armed(&self, mut after: Option<(i64, Id)>, until_ms: i64) -> Result<Option<Id>, StoreError> {
        loop {
            let query = ListQuery { after, limit: PAGE, ..ListQuery::default() };
            let page = self.namespace.list(&query).await?;
            for one in page.iter().take_while(|one| one.expires_at_ms <= until_ms) {
                if self.fits(&one.id) {
                    return Ok(Some(one.id.clone()));
                }
            }
            after = page.into_iter().next_back().map(|last| (last.expires_at_ms, last.id));
            if after.as_ref().is_none_or(|(ms, _)| *ms > until_ms) {
                return Ok(None);
            }
        }
    }

    async fn among_parked(&self, shelf: Shelf) -> Result<Option<Id>, StoreError> {
        let mut offset = 0;
        loop {
            let query = ParkedQuery { offset, limit: PAGE, ..ParkedQuery::default() };
            let entries = self.namespace.parked(shelf, &query).await?.entries;
            if entries.is_empty() {
                return Ok(None);
            }
            offset = offset.saturating_add(u32::try_from(entries.len()).unwrap_or(u32::MAX));
            if let Some(parked) = entries.into_iter().find(|parked| self.fits(&parked.notice.id)) {
                return Ok(Some(parked.notice.id));
            }
        }
    }

    /// Among open cleanups, what is in flight, and quarantined ids.
    async fn among_rows(&self) -> Result<Option<Id>, StoreError> {
        let name = self.namespace.name()?;
        let mut next = None;
        loop {
            let page = self.namespace.store().export(name, next.as_ref(), PAGE).await?;
            let ids = page.rows.into_iter().filter_map(|row| match row {
                Row::Open { notice, .. } => Some(notice.id),
                Row::Delivery(delivery) => Some(delivery.notice.id),
                Row::Quarantined { id, .. } => Id::new(id).ok(),
                _ => None,
            });
            for id in ids {
                if self.fits(&id) {
                    return Ok(Some(id));
                }
            }
            next = page.next;
            if next.is_none() {
                return Ok(None);
            }
        }
    }
}
