//! Claims through a daemon: taken, and settled by the tokens it gave out.

use std::{collections::BTreeMap, time::Duration};

use reqwest::Method;

use crate::api::{
    ClaimBody, ClaimForm, ClaimsForm, ExtendBody, FailBody, FailedClaim, NextForm, SettledAnswer, SettledAnswers,
    TokensBody, read_id, read_instant, read_payload,
};
use crate::model::{Invalid, Name};
use crate::store::{Claim, Claims, Failing, Next, Settled, StoreError, Token, Verdict};

use super::RemoteStore;
use super::client::About;

impl RemoteStore {
    pub(super) async fn claim_once(
        &self,
        namespace: &Name,
        route: &Name,
        limit: u32,
        lease: Duration,
    ) -> Result<Claims, StoreError> {
        let body = ClaimBody {
            route: Some(route.to_string()),
            limit: Some(limit.min(500)),
            lease: Some(lease.into()),
            wait: None,
        };
        let about = About { route: Some(route), ..namespace.into() };
        let form = self.daemon.ask(Method::POST, self.url(namespace, &["claims"]), &body, about).await?;
        Ok(self.read_claims(namespace, form)?)
    }

    fn read_claims(&self, namespace: &Name, form: ClaimsForm) -> Result<Claims, Invalid> {
        let now_ms = read_instant(&form.now)?;
        let poll_at_ms = form.poll_at.as_deref().map(read_instant).transpose()?.unwrap_or(now_ms);
        let due_at_ms = form.next_due_at.as_deref().map(read_instant).transpose()?;
        let next = match form.state {
            NextForm::Backlog => Next::Backlog,
            NextForm::Wait => Next::At { due_at_ms, poll_at_ms },
            NextForm::Paused => Next::Paused { poll_at_ms },
        };
        let claim = |claim: ClaimForm| {
            let id = read_id(claim.id.as_deref(), claim.id_base64.as_deref())?;
            Ok(Claim {
                token: Token::from_bytes(claim.token),
                notice: claim.notice.read(namespace, id)?,
                attempt: claim.attempt,
                failures: claim.failures,
                due_at_ms: read_instant(&claim.due_at)?,
                on_set: claim.on_set,
                payload: read_payload(claim.payload.as_deref(), claim.payload_base64.as_deref())?,
            })
        };
        Ok(Claims {
            now_ms,
            claims: form.claims.into_iter().map(claim).collect::<Result<_, Invalid>>()?,
            next,
            dropped: form.dropped,
            quarantined: form.quarantined,
            lapsed: form.lapsed,
            faults: Vec::new(),
        })
    }

    /// Asks about claims that are named by their tokens alone.
    pub(super) async fn by_tokens(
        &self,
        namespace: &Name,
        route: &Name,
        verb: &str,
        tokens: &[Token],
        lease: Option<Duration>,
    ) -> Result<Vec<SettledAnswer>, StoreError> {
        let (url, about) = (self.url(namespace, &["claims", verb]), About { route: Some(route), ..namespace.into() });
        let mut answers = Vec::with_capacity(tokens.len());
        for tokens in tokens.chunks(crate::api::MAX_BATCH) {
            let texts = tokens.iter().map(text).collect();
            let SettledAnswers { results } = match lease {
                Some(lease) => {
                    let body = ExtendBody { tokens: texts, lease: Some(lease.into()) };
                    self.daemon.ask(Method::POST, url.clone(), &body, about).await?
                }
                None => self.daemon.ask(Method::POST, url.clone(), &TokensBody { tokens: texts }, about).await?,
            };
            answers.extend(results);
        }
        Ok(answers)
    }

    /// Reads the answers to a batch.
    pub(super) fn read_each<T>(
        &self,
        answers: &[SettledAnswer],
        read: impl Fn(&SettledAnswer) -> Option<T>,
    ) -> Result<Vec<T>, StoreError> {
        let all = answers.iter().map(read).collect::<Option<Vec<_>>>();
        all.ok_or_else(|| self.daemon.odd("it answers something else than was asked"))
    }

    pub(super) async fn fail_each(
        &self,
        namespace: &Name,
        route: &Name,
        failing: &[Failing],
    ) -> Result<Vec<Settled>, StoreError> {
        let mut verbs: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (place, failing) in failing.iter().enumerate() {
            let verb = match failing.verdict {
                Verdict::Backoff(_) | Verdict::RetryAfter(_) => "retry",
                Verdict::Dead => "reject",
                Verdict::Review => "review",
            };
            verbs.entry(verb).or_default().push(place);
        }
        let mut answers = vec![None; failing.len()];
        let about = About { route: Some(route), ..namespace.into() };
        for (verb, places) in verbs {
            for places in places.chunks(crate::api::MAX_BATCH) {
                let body = FailBody { claims: places.iter().map(|place| failed(&failing[*place])).collect() };
                let url = self.url(namespace, &["claims", verb]);
                let SettledAnswers { results } = self.daemon.ask(Method::POST, url, &body, about).await?;
                places.iter().zip(results).for_each(|(place, answer)| answers[*place] = answer.read());
            }
        }
        let all = answers.into_iter().collect::<Option<Vec<_>>>();
        all.ok_or_else(|| self.daemon.odd("it answers something else than was asked"))
    }
}

fn failed(failing: &Failing) -> FailedClaim {
    let (delay, exact) = match failing.verdict {
        Verdict::Backoff(delay) => (Some(delay.into()), false),
        Verdict::RetryAfter(delay) => (Some(delay.into()), true),
        Verdict::Dead | Verdict::Review => (None, false),
    };
    FailedClaim {
        token: text(&failing.token),
        max_failures: delay.is_some().then_some(failing.max_failures),
        delay,
        exact,
        class: Some(failing.failure.class),
        stage: Some(failing.failure.stage.clone()),
        summary: Some(failing.failure.summary.clone()),
    }
}

/// A token as the daemon gave it out.
fn text(token: &Token) -> String {
    String::from_utf8_lossy(token.as_bytes()).into_owned()
}
