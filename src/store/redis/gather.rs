//! Gathers single calls that are made at the same time into one script call, so that many callers cost the server little more
//! than one. A call that comes alone is not held up: what arrives while it is under way goes with the next.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{sync::oneshot, task::yield_now};

use crate::store::StoreError;

/// The most entries in one call.
const MAX_GATHERED: usize = 500;
/// And the most bytes of payload: more would hold the server up.
pub(super) const MAX_BYTES: usize = 4 * 1024 * 1024;

/// One entry, its size, and where its caller waits.
#[derive(Debug)]
struct Waiting<E, A> {
    entry: E,
    bytes: usize,
    answer: oneshot::Sender<Result<A, StoreError>>,
}

/// The single calls of one verb; those with the same topic may share a call.
#[derive(Debug)]
pub(super) struct Gatherer<T, E, A> {
    /// A topic is in here while somebody sends for it.
    topics: Mutex<HashMap<T, Vec<Waiting<E, A>>>>,
}

impl<T, E, A> Default for Gatherer<T, E, A> {
    fn default() -> Self {
        Self { topics: Mutex::default() }
    }
}

impl<T, E, A> Gatherer<T, E, A>
where
    T: Clone + Eq + Hash + Send + 'static,
    E: Send + 'static,
    A: Send + 'static,
{
    /// Answers for one entry, of so many bytes; `send` asks the store for several of one topic.
    pub(super) async fn ask<F, S>(self: &Arc<Self>, topic: T, entry: E, bytes: usize, send: S) -> Result<A, StoreError>
    where
        F: Future<Output = Result<Vec<A>, StoreError>> + Send,
        S: Fn(Vec<E>) -> F + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let is_first = {
            let mut topics = self.topics();
            let is_first = !topics.contains_key(&topic);
            topics.entry(topic.clone()).or_default().push(Waiting { entry, bytes, answer });
            is_first
        };
        if is_first {
            let mut shift = Shift { gatherer: Arc::clone(self), topic, is_over: false };
            // A task of its own: a caller that gives up must not take the others along.
            tokio::spawn(async move { shift.work(send).await });
        }
        answered.await.unwrap_or_else(|_| Err(cut_off()))
    }

    fn topics(&self) -> MutexGuard<'_, HashMap<T, Vec<Waiting<E, A>>>> {
        self.topics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends for one topic until nothing waits any more. Ends its topic also when it is dropped half-way, as at the end of a
/// runtime: those who wait are told, and the next caller begins anew.
struct Shift<T: Clone + Eq + Hash + Send + 'static, E: Send + 'static, A: Send + 'static> {
    gatherer: Arc<Gatherer<T, E, A>>,
    topic: T,
    is_over: bool,
}

impl<T: Clone + Eq + Hash + Send + 'static, E: Send + 'static, A: Send + 'static> Shift<T, E, A> {
    async fn work<F, S>(&mut self, send: S)
    where
        F: Future<Output = Result<Vec<A>, StoreError>> + Send,
        S: Fn(Vec<E>) -> F + Send + 'static,
    {
        loop {
            // Callers that are about to call at this very moment, or have just been answered and call again, come along.
            yield_now().await;
            let Some(batch) = self.next_batch() else { return };
            let (entries, callers): (Vec<E>, Vec<_>) = batch.into_iter().map(|one| (one.entry, one.answer)).unzip();
            let count = entries.len();
            match send(entries).await {
                Ok(answers) if answers.len() == count => {
                    // A caller that has given up hears nothing.
                    callers.into_iter().zip(answers).for_each(|(caller, answer)| drop(caller.send(Ok(answer))));
                }
                Ok(answers) => {
                    let problem = format!("{} answers to {count} entries", answers.len());
                    let error = StoreError::Unexpected { address: "(gathered)".to_owned(), problem };
                    callers.into_iter().zip(error.copies()).for_each(|(caller, error)| drop(caller.send(Err(error))));
                }
                Err(error) => {
                    callers.into_iter().zip(error.copies()).for_each(|(caller, error)| drop(caller.send(Err(error))));
                }
            }
        }
    }

    /// What waits, in the order of the calls; without anything the topic ends, under the same lock.
    fn next_batch(&mut self) -> Option<Vec<Waiting<E, A>>> {
        let mut topics = self.gatherer.topics();
        let waiting = topics.get_mut(&self.topic)?;
        let mut bytes = 0;
        let fits = |one: &&Waiting<E, A>| {
            bytes = usize::saturating_add(bytes, one.bytes);
            bytes <= MAX_BYTES
        };
        let fitting = waiting.iter().take(MAX_GATHERED).take_while(fits).count().max(1);
        let batch: Vec<_> = waiting.drain(..fitting.min(waiting.len())).collect();
        if batch.is_empty() {
            topics.remove(&self.topic);
            self.is_over = true;
            return None;
        }
        Some(batch)
    }
}

impl<T: Clone + Eq + Hash + Send + 'static, E: Send + 'static, A: Send + 'static> Drop for Shift<T, E, A> {
    fn drop(&mut self) {
        // Once it is over the topic may be that of a later shift.
        if !self.is_over {
            self.gatherer.topics().remove(&self.topic);
        }
    }
}

fn cut_off() -> StoreError {
    let source = std::io::Error::other("the runtime that carried the call has ended");
    StoreError::Unavailable { address: "(gathered)".to_owned(), source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    type Numbers = Gatherer<&'static str, usize, usize>;

    #[tokio::test]
    async fn what_arrives_while_a_call_is_under_way_shares_the_next() {
        let (gatherer, gate, calls) =
            (Arc::new(Numbers::default()), Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let ask = |number: usize| {
            let (gate, calls) = (Arc::clone(&gate), Arc::clone(&calls));
            gatherer.ask("double", number, 0, move |numbers: Vec<usize>| {
                let (gate, calls) = (Arc::clone(&gate), Arc::clone(&calls));
                async move {
                    gate.acquire().await.unwrap().forget();
                    calls.fetch_add(1, Ordering::SeqCst);
                    Ok(numbers.into_iter().map(|number| 2 * number).collect())
                }
            })
        };
        gate.add_permits(3);
        assert_eq!(ask(1).await.unwrap(), 2);
        let answers = join_all((0..700).map(ask)).await;
        assert_eq!(
            answers.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
            (0..700).map(|n| 2 * n).collect::<Vec<_>>()
        );
        assert_eq!(calls.load(Ordering::SeqCst), 3, "one alone, 500, and the rest");
    }

    #[tokio::test]
    async fn large_entries_share_a_call_only_up_to_a_size() {
        let (gatherer, calls) = (Arc::new(Numbers::default()), Arc::new(AtomicUsize::new(0)));
        let ask = |number: usize, bytes: usize| {
            let calls = Arc::clone(&calls);
            gatherer.ask("large", number, bytes, move |numbers: Vec<usize>| {
                calls.fetch_add(1, Ordering::SeqCst);
                async move { Ok(numbers) }
            })
        };
        let answers = join_all((0..10).map(|number| ask(number, MAX_BYTES / 2))).await;
        assert_eq!(answers.into_iter().map(Result::unwrap).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
        assert_eq!(calls.swap(0, Ordering::SeqCst), 5, "two by two");
        join_all((0..3).map(|number| ask(number, 2 * MAX_BYTES))).await;
        assert_eq!(calls.load(Ordering::SeqCst), 3, "what is larger goes alone");
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_takes_no_other_along() {
        let (gatherer, gate) = (Arc::new(Numbers::default()), Arc::new(Semaphore::new(0)));
        let ask = |number: usize| {
            let gate = Arc::clone(&gate);
            gatherer.ask("same", number, 0, move |numbers: Vec<usize>| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire().await.unwrap().forget();
                    Ok(numbers)
                }
            })
        };
        let mut first = Box::pin(ask(1));
        assert!(futures::poll!(&mut first).is_pending());
        let second = ask(2);
        drop(first);
        gate.add_permits(2);
        assert_eq!(second.await.unwrap(), 2);
        // The shift ends at its next turn.
        for _ in 0..10 {
            yield_now().await;
        }
        assert!(gatherer.topics().is_empty());
    }

    #[tokio::test]
    async fn an_error_is_that_of_all_who_shared_the_call() {
        let gatherer = Arc::new(Numbers::default());
        let ask = |number: usize| {
            gatherer.ask("fails", number, 0, |_| async {
                let source = Box::new(std::io::Error::other("cut"));
                Err(StoreError::Unavailable { address: "there".to_owned(), source })
            })
        };
        for answer in join_all((0..3).map(ask)).await {
            let error = answer.unwrap_err();
            assert_eq!(error.to_string(), "the store at there is unavailable");
            assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "cut");
        }
    }

    #[test]
    fn the_end_of_a_runtime_is_told_to_those_who_wait_and_the_next_caller_begins_anew() {
        let gatherer = Arc::new(Numbers::default());
        let other = Arc::clone(&gatherer);
        let here = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let there = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut stuck = Box::pin(other.ask("stuck", 1, 0, |_| std::future::pending()));
        there.block_on(async {
            assert!(futures::poll!(&mut stuck).is_pending());
            yield_now().await;
        });
        drop(there);
        assert!(here.block_on(stuck).unwrap_err().to_string().contains("unavailable"));
        assert_eq!(here.block_on(gatherer.ask("stuck", 2, 0, |numbers| async { Ok(numbers) })).unwrap(), 2);
    }
}
