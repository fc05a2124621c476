//! The words of the reference model: scores, notices and places in a ZSET, and how the store writes them.
//!
//! Written from the documented layout alone; shares no code with the store.

use std::{cmp::Ordering, fmt};

use forewarn::model::Late;

/// The bytes of an id.
pub(crate) type Bytes = Vec<u8>;

/// The score of an id in `exp`: its expiry in ms, or whatever a raw client wrote.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Score(f64);

impl Score {
    pub(crate) fn new(value: f64) -> Self {
        Self(if value == 0.0 { 0.0 } else { value })
    }

    pub(crate) fn ms(value: i64) -> Self {
        Self::new(value as f64)
    }

    pub(crate) fn value(self) -> f64 {
        self.0
    }

    pub(crate) fn floor(self) -> i64 {
        self.0.floor() as i64
    }

    /// What is not after 1970 is written 0 in notices.
    pub(crate) fn canonical(self) -> Self {
        if self.0 <= 0.0 { Self(0.0) } else { self }
    }

    /// Whether it cannot be an expiry and belongs into quarantine.
    pub(crate) fn is_odd(self) -> bool {
        (self.0 > 0.0 && self.0 < 1e11) || self.0 > 1e14
    }

    /// As `%.17g` writes it, for what stands in notices.
    pub(crate) fn text(self) -> String {
        let digits = self.0.trunc().to_string().len();
        let places = 17usize.saturating_sub(digits);
        let written = format!("{:.places$}", self.0);
        if written.contains('.') { written.trim_end_matches('0').trim_end_matches('.').to_owned() } else { written }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self::new)
    }
}

impl Eq for Score {}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl fmt::Debug for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a notice says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Reminder(i64),
    Expired,
    Ended,
    /// The key behind the id vanished early.
    Gone,
}

impl Kind {
    pub(crate) fn is_cleanup(self) -> bool {
        !matches!(self, Self::Reminder(_))
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::Reminder(lead) => lead.to_string(),
            Self::Expired => "0".to_owned(),
            Self::Ended => "0x".to_owned(),
            Self::Gone => "0g".to_owned(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "0" => Some(Self::Expired),
            "0x" => Some(Self::Ended),
            "0g" => Some(Self::Gone),
            lead => lead.parse().ok().map(Self::Reminder),
        }
    }
}

/// A notice: the member of a route's queue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Notice {
    pub(crate) id: Bytes,
    pub(crate) e: Score,
    pub(crate) kind: Kind,
}

impl Notice {
    pub(crate) fn new(kind: Kind, e: Score, id: &[u8]) -> Self {
        Self { kind, e: e.canonical(), id: id.to_vec() }
    }

    pub(crate) fn to_bytes(&self) -> Bytes {
        let mut bytes = format!("{}:{}:", self.kind.text(), self.e.text()).into_bytes();
        bytes.extend_from_slice(&self.id);
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut parts = bytes.splitn(3, |byte| *byte == b':');
        let kind = Kind::parse(std::str::from_utf8(parts.next()?).ok()?)?;
        let e = Score::parse(std::str::from_utf8(parts.next()?).ok()?)?;
        Some(Self { kind, e, id: parts.next()?.to_vec() })
    }
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_bytes().escape_ascii())
    }
}

/// Splits a token `<n*64+c>:<notice>`.
pub(crate) fn parse_token(token: &[u8]) -> Option<(u8, u8, Notice)> {
    let colon = token.iter().position(|byte| *byte == b':')?;
    let fence: u16 = std::str::from_utf8(&token[..colon]).ok()?.parse().ok()?;
    let notice = Notice::parse(&token[colon + 1..])?;
    Some((u8::try_from(fence / 64).ok()?, u8::try_from(fence % 64).ok()?, notice))
}

/// How far a sweep has come in (score, member) order: everything up to and including this place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Frontier {
    pub(crate) score: Score,
    /// `None`: all members with this score.
    pub(crate) member: Option<Bytes>,
}

impl Frontier {
    pub(crate) fn nothing() -> Self {
        Self::all(f64::NEG_INFINITY)
    }

    pub(crate) fn all(score: f64) -> Self {
        Self { score: Score::new(score), member: None }
    }

    pub(crate) fn has_passed(&self, e: Score, id: &[u8]) -> bool {
        match e.cmp(&self.score) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.member.as_deref().is_none_or(|member| id <= member),
        }
    }

    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let space = text.iter().position(|byte| *byte == b' ');
        let score = Score::parse(std::str::from_utf8(&text[..space.unwrap_or(text.len())]).ok()?)?;
        Some(Self { score, member: space.map(|at| text[at + 1..].to_vec()) })
    }
}

impl PartialOrd for Frontier {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Frontier {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.cmp(&other.score).then_with(|| match (&self.member, &other.member) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(mine), Some(theirs)) => mine.cmp(theirs),
        })
    }
}

/// The settings that decide what is said when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Ascending.
    pub(crate) leads: Vec<i64>,
    pub(crate) cleanup: bool,
    pub(crate) grace: i64,
    pub(crate) late: Late,
    /// `on_rearm = "deliver"`.
    pub(crate) delivers: bool,
    /// `None`: the lead itself.
    pub(crate) min_repeat: Option<i64>,
    pub(crate) tolerance: i64,
    pub(crate) max_deliveries: u32,
    pub(crate) shards: u16,
    /// Each id is a key, whose own expiry is the truth.
    pub(crate) keyed: Option<Keyed>,
}

/// What is set for key-backed ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keyed {
    /// `manage_keys`
    pub(crate) manages: bool,
    /// `on_gone = "drop"`
    pub(crate) drops: bool,
    /// Only keys that do not begin with `~` may be ids.
    pub(crate) has_pattern: bool,
}

impl Rules {
    /// The next smaller lead, 0 if there is none.
    pub(crate) fn next_smaller(&self, lead: i64) -> i64 {
        self.leads.iter().copied().filter(|other| *other < lead).max().unwrap_or(0)
    }
}

/// One route: what it wants and what an operator has stopped on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) reminders: bool,
    pub(crate) cleanups: bool,
    /// Empty: all.
    pub(crate) leads: Vec<i64>,
    pub(crate) paused: Stopped,
}

/// What is paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stopped {
    pub(crate) reminders: bool,
    pub(crate) cleanups: bool,
}

impl Lane {
    pub(crate) fn wants(&self, kind: Kind, rules: &Rules) -> bool {
        match kind {
            Kind::Reminder(lead) => self.reminders && (self.leads.is_empty() || self.leads.contains(&lead)),
            Kind::Expired | Kind::Ended | Kind::Gone => self.cleanups && rules.cleanup,
        }
    }
}

/// CRC-32 (IEEE), bit by bit: which shard an id belongs to.
pub(crate) fn shard_of(id: &[u8], shards: u16) -> u16 {
    let crc = id.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & 0u32.wrapping_sub(crc & 1)))
    });
    u16::try_from(!crc % u32::from(shards)).unwrap_or(0)
}

#[test]
fn scores_are_written_as_the_store_writes_them() {
    let text = |value| Score::new(value).canonical().text();
    assert_eq!(text(1e12), "1000000000000");
    assert_eq!(text(1e12 + 0.5), "1000000000000.5");
    assert_eq!(text(1e12 + 0.1), "1000000000000.1");
    assert_eq!(text(1e12 + 0.3), "1000000000000.3");
    assert_eq!(text(1e14), "100000000000000");
    for value in [0.0, -0.0, -5.0, f64::NEG_INFINITY] {
        assert_eq!(text(value), "0");
    }
}

#[test]
fn shards_go_by_the_standard_crc32() {
    // python3 -c 'import zlib; print(zlib.crc32(b"user_session:wang2024") % 32)'
    assert_eq!(shard_of(b"user_session:wang2024", 32), 6);
}

#[test]
fn a_frontier_passes_places_in_the_order_of_a_zset() {
    let inside = Frontier::parse(b"7 b c").expect("a cursor");
    assert_eq!(inside.member.as_deref(), Some(&b"b c"[..]));
    assert!(inside.has_passed(Score::ms(6), b"z") && inside.has_passed(Score::ms(7), b"b c"));
    assert!(!inside.has_passed(Score::ms(7), b"b d") && !inside.has_passed(Score::ms(8), b"a"));
    assert!(inside < Frontier::all(7.0) && Frontier::nothing() < inside);
}

#[test]
fn a_notice_survives_being_written() {
    for bytes in [&b"600000:1000000000000:a:b"[..], b"0:0:\xFF", b"0x:1000000000000.5:~"] {
        assert_eq!(Notice::parse(bytes).expect("a notice").to_bytes(), bytes);
    }
    assert!(Notice::parse(b"~~~").is_none());
    let (n, c, notice) = parse_token(b"963:10:1000000000004:a").expect("a token");
    assert_eq!((n, c, notice.kind), (15, 3, Kind::Reminder(10)));
}
