//! Section `http`: the daemon's API under many clients, beside a bare axum handler that does one ZADD, both in this process and
//! on the same server.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use axum::{Router, extract::Path, routing::put};
use forewarn::config::Layers;
use forewarn::daemon::Daemon;
use forewarn::{Forewarn, store::Store};
use futures::future::try_join_all;
use redis::aio::MultiplexedConnection;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::Effort;
use crate::figure::{Figure, Waits};
use crate::rig::{self, Rig};
use crate::table::{Table, Targets};

/// Clients at the same time, each with a connection of its own.
const CLIENTS: usize = 64;
/// Entries of one batch.
const BATCH: usize = 500;

/// Runs the section.
pub(crate) async fn run(effort: Effort, targets: &mut Targets) -> Result<()> {
    let rig = Rig::start().await?;
    rig::namespace(&*rig.store, "http").await?;
    let stop = CancellationToken::new();
    let mut layers = Layers::default();
    layers.env.push(("FOREWARN_STORE".into(), rig.server.url().into()));
    layers.env.push(("FOREWARN_LISTEN".into(), "127.0.0.1:0".into()));
    let config = layers.load()?.config;
    let daemon = Daemon::bind(Forewarn::with_store(Arc::clone(&rig.store) as Arc<dyn Store>), config)?;
    let ours = daemon.address();
    let serving = tokio::spawn(daemon.run(stop.clone().cancelled_owned()));
    let bare = bare(rig.server.connection().await).await?;

    let span = effort.pick(Duration::from_secs(5), Duration::from_millis(500));
    let (mut bare_side, mut our_side, mut by_batch) = (Side::default(), Side::default(), Figure::default());
    for round in effort.rounds() {
        let told = [rush(bare, span, |number| set(&format!("/{}", id(number)))).await?, rush(ours, span, mixed).await?];
        let deadlines = batches(ours, effort.pick(100, 10)).await?;
        if round.0 > 0 {
            let [bare, ours] = told;
            bare_side.add(bare, span);
            our_side.add(ours, span);
            by_batch.add(deadlines);
        }
    }
    stop.cancel();
    serving.await??;
    let title =
        format!("HTTP: {CLIENTS} clients at once, rounds: {}, each of {} s", effort.count(), span.as_secs_f64());
    let mut table = Table::new(&title, &["what", "requests/s", "p50 ms", "p99 ms"]);
    for (what, side) in [("axum + ZADD", &bare_side), ("track, renew, show, remove", &our_side)] {
        table.row([what.to_owned(), side.rate.to_string(), side.p50.to_string(), side.p99.to_string()]);
    }
    table.print();
    let mut table = Table::new("HTTP: batches of 500 tracks, 4 clients at once", &["what", "deadlines/s"]);
    table.row(["batch".to_owned(), by_batch.to_string()]);
    table.print();
    let ratio = our_side.rate.over(&bare_side.rate).median();
    targets.at_least("HTTP requests of 64 clients, beside a bare axum handler with one ZADD", 0.7, ratio, "x");
    targets.at_least("HTTP deadlines a second in batches of 500", 60_000.0, by_batch.median(), "");
    Ok(())
}

/// What the clients of one side met.
#[derive(Debug, Default)]
struct Side {
    rate: Figure,
    p50: Figure,
    p99: Figure,
}

impl Side {
    fn add(&mut self, waits: Waits, span: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "no run makes so many requests")]
        self.rate.add(waits.count() as f64 / span.as_secs_f64());
        self.p50.add(waits.percentile(50));
        self.p99.add(waits.percentile(99));
    }
}

/// The handler everybody would write.
async fn bare(connection: MultiplexedConnection) -> Result<SocketAddr> {
    let handler = put(move |Path(id): Path<String>, body: String| {
        let mut connection = connection.clone();
        async move {
            let added: redis::RedisResult<()> =
                redis::cmd("ZADD").arg("bare").arg(body.len()).arg(id).query_async(&mut connection).await;
            added.map(|()| "{}").map_err(|e| e.to_string())
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/{id}", handler)).await });
    Ok(address)
}

fn id(number: usize) -> String {
    format!("user_session:{number:011}")
}

const BODY: &str = r#"{"ttl":"2h"}"#;

fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

fn set(path: &str) -> String {
    request("PUT", path, BODY)
}

/// Each deadline is tracked, renewed, shown and removed, by requests one after the other.
fn mixed(number: usize) -> String {
    let path = format!("/v1/namespaces/http/deadlines/{}", id(number / 4));
    match number % 4 {
        0 => set(&path),
        1 => request("POST", &format!("{path}/renew"), r#"{"ttl":"3h"}"#),
        2 => request("GET", &path, ""),
        _ => request("DELETE", &path, ""),
    }
}

/// Many clients make requests for a while; each one's are numbered apart.
async fn rush(to: SocketAddr, span: Duration, make: fn(usize) -> String) -> Result<Waits> {
    let until = Instant::now() + span;
    let clients = (0..CLIENTS).map(|client| {
        tokio::spawn(async move {
            let mut connection = Client::connect(to).await?;
            let mut waits = Vec::new();
            for number in client * 100_000_000.. {
                let begun = Instant::now();
                if begun >= until {
                    break;
                }
                connection.ask(&make(number)).await?;
                waits.push(begun.elapsed().as_secs_f64() * 1000.0);
            }
            anyhow::Ok(waits)
        })
    });
    let mut all = Vec::new();
    for waits in try_join_all(clients).await? {
        all.extend(waits?);
    }
    Ok(Waits::new(all))
}

/// Tracks by batches; answers how many deadlines a second.
async fn batches(to: SocketAddr, count: usize) -> Result<f64> {
    const AT_ONCE: usize = 4;
    let begun = Instant::now();
    let clients = (0..AT_ONCE).map(|client| {
        tokio::spawn(async move {
            let mut connection = Client::connect(to).await?;
            for batch in 0..count {
                let first = (client * count + batch) * BATCH;
                let entry = |number| format!(r#"{{"id":"{}","ttl":"2h"}}"#, id(first + number));
                let entries = (0..BATCH).map(entry).collect::<Vec<_>>().join(",");
                let body = format!(r#"{{"entries":[{entries}]}}"#);
                connection.ask(&request("POST", "/v1/namespaces/http/deadlines", &body)).await?;
            }
            anyhow::Ok(())
        })
    });
    for done in try_join_all(clients).await? {
        done?;
    }
    #[expect(clippy::cast_precision_loss, reason = "no run makes so many")]
    let deadlines = (AT_ONCE * count * BATCH) as f64;
    Ok(deadlines / begun.elapsed().as_secs_f64())
}

/// A client so lean that the servers decide: one connection, one request after the other.
struct Client {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    line: String,
    body: Vec<u8>,
}

impl Client {
    async fn connect(to: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok(Self { reader: BufReader::new(reader), writer, line: String::new(), body: Vec::new() })
    }

    async fn ask(&mut self, request: &str) -> Result<()> {
        self.writer.write_all(request.as_bytes()).await?;
        let (mut status, mut length) = (None, 0);
        loop {
            self.line.clear();
            ensure!(self.reader.read_line(&mut self.line).await? > 0, "the connection was closed");
            let line = self.line.trim_end();
            if line.is_empty() {
                break;
            }
            if status.is_none() {
                status = Some(line.split(' ').nth(1).context("a status")?.to_owned());
            } else if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse()?;
            }
        }
        self.body.resize(length, 0);
        self.reader.read_exact(&mut self.body).await?;
        let status = status.context("a status")?;
        ensure!(status.starts_with('2'), "{status}: {}", String::from_utf8_lossy(&self.body));
        Ok(())
    }
}
