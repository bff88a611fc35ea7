//! A mirror that misbehaves as it is told.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// How one request is answered.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// Whether a range that is asked for is heeded.
    pub(super) ranges: bool,
    pub(super) etag: Option<String>,
    pub(super) media: &'static str,
    /// The body ends here, and the connection with it, or after it goes silent.
    pub(super) ends: Ends,
    /// Whether the length is told.
    pub(super) length: bool,
    pub(super) location: Option<String>,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Well,
    CutAfter(usize),
    SilentAfter(usize),
}

/// What was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) path: String,
    pub(super) range: Option<u64>,
    pub(super) if_range: Option<String>,
}

pub(super) struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Act {
    pub(super) fn file(body: &[u8]) -> Self {
        Self {
            status: 200,
            body: body.to_vec(),
            ranges: true,
            etag: Some("\"1\"".to_owned()),
            media: "application/octet-stream",
            ends: Ends::Well,
            length: true,
            location: None,
        }
    }

    pub(super) fn status(status: u16) -> Self {
        Self { status, etag: None, ..Self::file(b"") }
    }

    pub(super) fn page(bytes: usize) -> Self {
        Self { media: "text/html; charset=utf-8", etag: None, ..Self::file(&vec![b'<'; bytes]) }
    }

    pub(super) fn cut_after(self, bytes: usize) -> Self {
        Self { ends: Ends::CutAfter(bytes), ..self }
    }

    pub(super) fn etag(self, etag: &str) -> Self {
        Self { etag: Some(format!("\"{etag}\"")), ..self }
    }

    /// The bytes of the whole answer.
    fn answer(&self, request: &Request) -> (String, Vec<u8>) {
        let same = request.if_range.is_none() || request.if_range == self.etag;
        let total = self.body.len() as u64;
        let (status, range, body) = match request.range {
            Some(from) if self.status == 200 && self.ranges && same && from < total => {
                (206, format!("Content-Range: bytes {from}-{}/{total}\r\n", total - 1), &self.body[from as usize..])
            }
            Some(_) if self.status == 200 && self.ranges && same => {
                (416, format!("Content-Range: bytes */{total}\r\n"), &[][..])
            }
            _ => (self.status, String::new(), &self.body[..]),
        };
        let mut head = format!("HTTP/1.1 {status} x\r\nContent-Type: {}\r\nConnection: close\r\n{range}", self.media);
        if self.length {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        for (name, value) in [("ETag", &self.etag), ("Location", &self.location)] {
            if let Some(value) = value {
                head += &format!("{name}: {value}\r\n");
            }
        }
        (head + "\r\n", body.to_vec())
    }
}

impl Server {
    /// Answers one request after the other as told; further ones as the last.
    pub(super) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut acts: VecDeque<Act> = acts.into_iter().collect();
        let noted = seen.clone();
        // It ends with the process of the tests.
        thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming().filter_map(Result::ok) {
                let Some(request) = read(&stream) else { continue };
                let act = if acts.len() > 1 { acts.pop_front() } else { acts.front().cloned() };
                noted.lock().expect("whole").push(request.clone());
                if let Some(stream) = act.and_then(|act| give(&act, &request, stream)) {
                    silent.push(stream);
                }
            }
        });
        Self { address, seen }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) fn seen(&self) -> Vec<Request> {
        self.seen.lock().expect("whole").clone()
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let mut request = Request { path, ..Request::default() };
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ")?;
        match name.to_ascii_lowercase().as_str() {
            "range" => request.range = value.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok(),
            "if-range" => request.if_range = Some(value.to_owned()),
            _ => {}
        }
    }
    Some(request)
}

/// Answers; gives the stream back if it is to stay open.
fn give(act: &Act, request: &Request, mut stream: TcpStream) -> Option<TcpStream> {
    let (head, body) = act.answer(request);
    let sent = match act.ends {
        Ends::Well => body.len(),
        Ends::CutAfter(bytes) | Ends::SilentAfter(bytes) => bytes.min(body.len()),
    };
    // A client that has gone is what some tests are about.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body[..sent]));
    matches!(act.ends, Ends::SilentAfter(_)).then_some(stream)
}
