//! Copies a namespace from one store to another: settings, deadlines, deliveries, what is parked, what is paused.
//!
//! The source stays as it is, paused, so that nobody is reminded twice. The target stays paused until it holds the same: both
//! are read once more and compared. A copy that was cut off goes on from the page it was at. It does not notice that somebody
//! writes to the source in time to follow; the comparison tells.

mod row;
mod tally;

use std::sync::Arc;

use crate::model::{Name, Pause, Paused, span_ms};
use crate::store::{Change, Configured, Stats, Store, StoreError};

pub(crate) use row::fitting;
pub use row::{ArmedRow, Bookmark, CopyMark, CopyStage, DeliveryRow, Exported, Failed, ParkedRow, Row, Swept};

use tally::Tally;

/// How to copy namespaces from one store to another.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use forewarn::{Forewarn, Name, store::copy::StoreCopy};
///
/// let from = Forewarn::connect("sqlite:forewarn.db").await?;
/// let to = Forewarn::connect("redis://127.0.0.1/").await?;
/// let copy = StoreCopy::new(Arc::clone(from.store()), Arc::clone(to.store())).pause(true);
/// let copied = copy.run(&Name::new("namespace", "session")?, &mut |_| {}).await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct StoreCopy {
    from: Arc<dyn Store>,
    to: Arc<dyn Store>,
    pause: bool,
    shards: Option<u16>,
    page: u32,
}

/// How far a copy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// It begins, or goes on.
    Began {
        /// Rows that an earlier run has copied.
        rows: u64,
        /// Rows in all, as counted now.
        total: u64,
    },
    /// A page is copied.
    Copied {
        /// Rows copied so far.
        rows: u64,
    },
    /// A page of either store was read again and compared.
    Compared {
        /// Rows read again so far; twice the total at the end.
        rows: u64,
    },
}

/// What a copy has brought about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// How much there is of what, in words.
    pub counts: Vec<(String, u64)>,
    /// Quarantined entries that the target has no place for.
    pub refused: u64,
    /// What is still paused in the target, because it was in the source before.
    pub paused: Paused,
    /// By how many milliseconds the target's clock is behind the source's, if that is more than the settings tolerate: what
    /// was handed out within that time may be handed out again.
    pub clock_behind_ms: Option<i64>,
    /// Whether an earlier run had brought it to its end: nothing was done, and nothing was counted.
    pub is_earlier: bool,
}

/// Why a namespace was not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Source and target are one.
    #[error("source and target are both {place}; give another target")]
    SamePlace {
        /// Where they are.
        place: String,
    },
    /// Notices of the source may still be handed out.
    #[error(
        "namespace \"{namespace}\" is not paused in {from}; let the copy pause it with --pause, or stop its workers and run: \
         forewarn namespace pause {namespace} --store {from}"
    )]
    NotPaused {
        /// The namespace.
        namespace: Name,
        /// The source.
        from: String,
    },
    /// The target has a namespace of this name that no copy has made.
    #[error(
        "{to} has a namespace \"{namespace}\" already; give another target, or delete it there: \
         forewarn namespace forget {namespace} --store {to}"
    )]
    Occupied {
        /// The namespace.
        namespace: Name,
        /// The target.
        to: String,
    },
    /// The target holds a part of a copy from elsewhere.
    #[error(
        "{to} holds an unfinished copy of \"{namespace}\" from {source_place}; finish that one, or delete it: \
         forewarn namespace forget {namespace} --force --store {to}"
    )]
    OtherCopy {
        /// The namespace.
        namespace: Name,
        /// The target.
        to: String,
        /// Where that copy comes from.
        source_place: String,
    },
    /// Source and target do not hold the same. The target stays paused.
    #[error(
        "the copy of \"{namespace}\" differs ({}); the target stays paused. Stop what works on the source, delete the copy \
         with forewarn namespace forget {namespace} --force --store {to} and copy again",
        .differences.join("; ")
    )]
    Differs {
        /// The namespace.
        namespace: Name,
        /// The target.
        to: String,
        /// What differs, in words.
        differences: Vec<String>,
    },
    /// A store failed. The next run goes on.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where progress is told.
pub type Listener<'a> = dyn FnMut(Progress) + Send + 'a;

impl StoreCopy {
    /// Rows in a page where nothing else is said.
    const PAGE: u32 = 500;

    /// A copy from one store to another.
    pub fn new(from: Arc<dyn Store>, to: Arc<dyn Store>) -> Self {
        Self { from, to, pause: false, shards: None, page: Self::PAGE }
    }

    /// Whether to pause the source. Default: no; one that is not paused is refused.
    #[must_use]
    pub fn pause(mut self, pause: bool) -> Self {
        self.pause = pause;
        self
    }

    /// Into how many shards the target is split. Default: as many as the source.
    #[must_use]
    pub fn shards(mut self, shards: Option<u16>) -> Self {
        self.shards = shards;
        self
    }

    /// The rows of a page. Default: 500.
    #[must_use]
    pub fn page(mut self, rows: u32) -> Self {
        self.page = rows.max(1);
        self
    }

    /// Copies one namespace, or goes on with a copy of it that was cut off.
    ///
    /// # Errors
    /// [`CopyError`] says what stands against it and what to do. After [`CopyError::Store`] the same call goes on.
    pub async fn run(&self, namespace: &Name, tell: &mut Listener<'_>) -> Result<Copied, CopyError> {
        let source = self.from.place();
        if source == self.to.place() {
            return Err(CopyError::SamePlace { place: source });
        }
        let configured = self.from.configured(namespace).await?;
        let mut mark = match self.begun(namespace, &source).await? {
            Some(CopyMark { stage: CopyStage::Ended, refused, .. }) => {
                let paused = self.to.configured(namespace).await?.paused.clone();
                let counts = Vec::new();
                return Ok(Copied { counts, refused, paused, clock_behind_ms: None, is_earlier: true });
            }
            Some(mark) => mark,
            None => {
                self.check_paused(namespace, &configured)?;
                self.begin(namespace, source, &configured).await?
            }
        };
        if mark.stage != CopyStage::Verified {
            self.check_paused(namespace, &configured)?;
            self.to.pause(namespace, &both(true)).await?;
            self.from.pause(namespace, &both(true)).await?;
            let total = total(&self.from.stats(namespace).await?);
            tell(Progress::Began { rows: mark.rows, total });
            self.copy_pages(namespace, &mut mark, tell).await?;
        }
        let counts = self.verify(namespace, &mut mark, tell).await?;
        self.finish(namespace, &mut mark).await?;
        let behind = self.from.now().await?.saturating_sub(self.to.now().await?);
        let tolerated = span_ms(configured.settings.clock_tolerance);
        let clock_behind_ms = Some(behind).filter(|behind| *behind > tolerated);
        Ok(Copied { counts, refused: mark.refused, paused: mark.paused, clock_behind_ms, is_earlier: false })
    }

    /// The copy that an earlier run has begun, if there is one.
    async fn begun(&self, namespace: &Name, source: &str) -> Result<Option<CopyMark>, CopyError> {
        let is_there = match self.to.configured(namespace).await {
            Ok(_) => true,
            Err(StoreError::Unconfigured { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        let (namespace_name, to) = (namespace.clone(), self.to.place());
        match self.to.copy_mark(namespace).await? {
            // A mark without a namespace has nothing to go on with.
            _ if !is_there => Ok(None),
            None => Err(CopyError::Occupied { namespace: namespace_name, to }),
            Some(mark) if mark.source != source && mark.stage == CopyStage::Ended => {
                Err(CopyError::Occupied { namespace: namespace_name, to })
            }
            Some(mark) if mark.source != source => {
                Err(CopyError::OtherCopy { namespace: namespace_name, to, source_place: mark.source })
            }
            mark => Ok(mark),
        }
    }

    fn check_paused(&self, namespace: &Name, configured: &Configured) -> Result<(), CopyError> {
        let Paused { reminders, cleanups } = configured.paused;
        if self.pause || reminders && cleanups {
            return Ok(());
        }
        Err(CopyError::NotPaused { namespace: namespace.clone(), from: self.from.place() })
    }

    /// Makes the namespace in the target. The mark comes first: without it the next run would take the namespace for
    /// somebody else's.
    async fn begin(&self, namespace: &Name, source: String, configured: &Configured) -> Result<CopyMark, CopyError> {
        let paused = configured.paused.clone();
        let mark = CopyMark { source, stage: CopyStage::Copying { next: None }, rows: 0, refused: 0, paused };
        let mut settings = configured.settings.clone();
        settings.shards = self.shards.unwrap_or(settings.shards);
        let (routes, id_key) = (configured.routes.clone(), configured.id_key.clone());
        let change = Change { settings: Some(settings), routes, id_key, ..Change::default() };
        // What the target cannot have is refused before anything is written.
        self.to.preview(namespace, &change).await?;
        self.to.import(namespace, &[], Some(&mark)).await?;
        self.to.configure(namespace, &change).await?;
        Ok(mark)
    }

    async fn copy_pages(
        &self,
        namespace: &Name,
        mark: &mut CopyMark,
        tell: &mut Listener<'_>,
    ) -> Result<(), CopyError> {
        while let CopyStage::Copying { next } = &mark.stage {
            let Exported { rows, next } = self.from.export(namespace, next.as_ref(), self.page).await?;
            mark.rows += countable(&rows);
            let (rows, refused): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| self.to.can_hold(row));
            mark.refused += refused.len() as u64;
            mark.stage = match next {
                Some(next) => CopyStage::Copying { next: Some(next) },
                None => CopyStage::Copied,
            };
            self.to.import(namespace, &rows, Some(mark)).await?;
            tell(Progress::Copied { rows: mark.rows });
        }
        Ok(())
    }

    /// Reads both stores again and compares them: by what each counts itself, and row by row.
    async fn verify(
        &self,
        namespace: &Name,
        mark: &mut CopyMark,
        tell: &mut Listener<'_>,
    ) -> Result<Vec<(String, u64)>, CopyError> {
        if mark.stage == CopyStage::Verified {
            return Ok(self.read_again(&self.to, namespace, &mut 0, tell).await?.counts());
        }
        let mut rows = 0;
        let source = self.read_again(&self.from, namespace, &mut rows, tell).await?;
        let target = self.read_again(&self.to, namespace, &mut rows, tell).await?;
        let mut differences = source.differences(&target);
        if differences.is_empty() {
            let (from, to) = (self.from.stats(namespace).await?, self.to.stats(namespace).await?);
            differences = count_differences(&from, &to, mark.refused);
        }
        let (from, to) = (self.from.configured(namespace).await?, self.to.configured(namespace).await?);
        let mut settings = from.settings.clone();
        settings.shards = to.settings.shards;
        if (&settings, &from.routes) != (&to.settings, &to.routes) {
            differences.push("settings or routes: changed since the copy began".to_owned());
        }
        if !differences.is_empty() {
            return Err(CopyError::Differs { namespace: namespace.clone(), to: self.to.place(), differences });
        }
        mark.stage = CopyStage::Verified;
        self.to.import(namespace, &[], Some(mark)).await?;
        Ok(target.counts())
    }

    /// Everything a store holds of what the target can hold.
    async fn read_again(
        &self,
        store: &Arc<dyn Store>,
        namespace: &Name,
        rows: &mut u64,
        tell: &mut Listener<'_>,
    ) -> Result<Tally, StoreError> {
        let (mut tally, mut next) = (Tally::default(), None);
        loop {
            let page = store.export(namespace, next.as_ref(), self.page).await?;
            page.rows.iter().filter(|row| self.to.can_hold(row)).for_each(|row| tally.add(row));
            *rows += countable(&page.rows);
            tell(Progress::Compared { rows: *rows });
            next = page.next;
            if next.is_none() {
                return Ok(tally);
            }
        }
    }

    /// Lets the target go: what the source had paused before the copy stays paused, all else flows.
    async fn finish(&self, namespace: &Name, mark: &mut CopyMark) -> Result<(), StoreError> {
        for route in self.from.stats(namespace).await?.routes {
            let Paused { reminders, cleanups } = route.paused;
            if reminders || cleanups {
                let pause = Pause { route: Some(route.route), reminders, cleanups, paused: true, rate: None };
                self.to.pause(namespace, &pause).await?;
            }
        }
        let Paused { reminders, cleanups } = mark.paused;
        let resume = Pause { reminders: !reminders, cleanups: !cleanups, ..both(false) };
        if resume.reminders || resume.cleanups {
            self.to.pause(namespace, &resume).await?;
        }
        mark.stage = CopyStage::Ended;
        self.to.import(namespace, &[], Some(mark)).await
    }
}

/// Both classes of the whole namespace.
fn both(paused: bool) -> Pause {
    Pause { route: None, reminders: true, cleanups: true, paused, rate: None }
}

/// The rows of which a store knows the number.
fn countable(rows: &[Row]) -> u64 {
    rows.iter().filter(|row| !matches!(row, Row::Cursor { .. } | Row::Crossed { .. })).count() as u64
}

fn total(stats: &Stats) -> u64 {
    let pending: u64 = stats.routes.iter().map(|route| route.pending).sum();
    stats.armed + stats.open + stats.dead + stats.review + stats.quarantined + pending
}

/// What differs by the stores' own counts. What cannot expire may be armed in the source and is quarantined in the target.
fn count_differences(from: &Stats, to: &Stats, refused: u64) -> Vec<String> {
    let mut counts = vec![
        ("armed and quarantined".to_owned(), from.armed + from.quarantined, to.armed + to.quarantined + refused),
        ("open cleanups".to_owned(), from.open, to.open),
        ("dead letters".to_owned(), from.dead, to.dead),
        ("reviews".to_owned(), from.review, to.review),
    ];
    for route in &from.routes {
        let pending = to.routes.iter().find(|there| there.route == route.route).map_or(0, |there| there.pending);
        counts.push((format!("pending on {}", route.route), route.pending, pending));
    }
    let differing = counts.into_iter().filter(|(_, source, target)| source != target);
    differing
        .map(|(what, source, target)| format!("{what}: counted {source} in the source, {target} in the target"))
        .collect()
}
