//! As much of a browser as the tests need: requests with one cookie, and a stream of events.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
};

use crate::harness::PATIENCE;

/// A browser with the cookie of one site.
pub(crate) struct Browser {
    address: String,
    cookie: Option<String>,
}

/// What a site answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Browser {
    pub(crate) fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), cookie: None }
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    pub(crate) fn post(&mut self, path: &str, form: &str) -> Answer {
        self.ask("POST", path, form)
    }

    fn ask(&mut self, method: &str, path: &str, form: &str) -> Answer {
        let mut text = String::new();
        self.send(method, path, form).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        for line in head.lines() {
            if let Some(cookie) = line.strip_prefix("set-cookie: ") {
                self.cookie = cookie.split(';').next().map(str::to_owned);
            }
        }
        Answer { status: head[9..12].parse().unwrap(), body: body.to_owned() }
    }

    /// Opens the stream of events.
    pub(crate) fn listen(&self) -> Events {
        Events(BufReader::new(self.send("GET", "/events", "")))
    }

    fn send(&self, method: &str, path: &str, form: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let cookie = self.cookie.as_ref().map_or_else(String::new, |cookie| format!("Cookie: {cookie}\r\n"));
        let (address, length) = (&self.address, form.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{cookie}\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }
}

/// An open stream of events.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    /// The name of the next event; nothing if the stream has ended.
    pub(crate) fn next(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(name) = line.strip_prefix("event: ") {
                return Some(name.trim().to_owned());
            }
        }
    }
}
