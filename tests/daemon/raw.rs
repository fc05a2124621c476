//! Requests as bytes, for those that no decent client makes.

use std::collections::HashMap;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::harness::within;

/// A connection of its own.
pub(crate) async fn connect(port: u16) -> TcpStream {
    TcpStream::connect(("127.0.0.1", port)).await.unwrap()
}

/// An answer as it came; status 0 if the connection was closed without one.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

/// Reads until the connection is closed.
pub(crate) async fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A connection may be reset once its answer has been sent; what came counts.
    within("the end of the connection", stream.read_to_end(&mut bytes)).await.ok();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    Answer { status, headers: lines.filter_map(header).collect(), body: body.to_owned() }
}

/// Sends bytes on a connection of its own, and reads what is answered.
pub(crate) async fn send(port: u16, bytes: impl AsRef<[u8]>) -> Answer {
    let mut stream = connect(port).await;
    // It may be closed before all was sent.
    stream.write_all(bytes.as_ref()).await.ok();
    read(&mut stream).await
}

/// The bytes of a request with a body of JSON.
pub(crate) fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}
