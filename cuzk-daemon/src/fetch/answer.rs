//! What a mirror's answer means for a file of which some bytes may be here already. Pure: heads of answers in, what to
//! do out (RFC 9110: 13.1.5 If-Range, 14.4 Content-Range, 15.3.7 partial content, 15.5.17 unsatisfiable ranges).

use std::{fmt, time::Duration};

use http::StatusCode;
use serde::{Deserialize, Serialize};

use super::wanted::Wanted;

/// What of an answer's head matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The media type, as the mirror wrote it.
    pub content_type: Option<String>,
    /// Bytes of the body, if the mirror says how many.
    pub length: Option<u64>,
    /// Which bytes of the file the body is.
    pub range: Option<ContentRange>,
    /// What tells this version of the file from others.
    pub validator: Option<Validator>,
    /// How long to leave the mirror alone.
    pub retry_after: Option<Duration>,
}

/// What tells one version of a file at a mirror from the next, and may stand in `If-Range`: a strong entity tag or else
/// a date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validator {
    /// A strong entity tag, with its quotes.
    Etag(String),
    /// A date of last modification.
    LastModified(String),
}

/// A `Content-Range` in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRange {
    /// These bytes, both ends included.
    Of {
        /// The first.
        first: u64,
        /// The last.
        last: u64,
        /// Bytes of the whole file, if known.
        total: Option<u64>,
    },
    /// None, because the file has only so many.
    Unsatisfied(u64),
}

/// What was asked, as far as it matters for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The first byte asked for.
    pub from: u64,
    /// Bytes of the whole file, if an earlier answer told.
    pub total: Option<u64>,
    /// The version of the file that the bytes already here are of, if that is known of this mirror.
    pub validator: Option<&'a Validator>,
}

/// What to do with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The body goes on where the file here ends.
    Append {
        /// Bytes of the whole file, if known.
        total: Option<u64>,
    },
    /// The body is the file from its beginning.
    Whole {
        /// Bytes of the whole file, if known.
        total: Option<u64>,
    },
    /// Nothing is missing: every byte is here.
    Complete,
    /// What is here is of no use with this mirror: throw it away and ask for the whole file.
    Restart,
    /// There is no body worth reading.
    Fault(Fault),
}

/// Why a try came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whether the same mirror may do better later.
    pub passing: bool,
    /// What happened, for people.
    pub text: String,
    /// How long the mirror wants to be left alone.
    pub wait: Option<Duration>,
}

impl Fault {
    /// One that may pass.
    pub fn passing(text: impl Into<String>) -> Self {
        Self { passing: true, text: text.into(), wait: None }
    }

    /// One that the mirror will repeat.
    pub fn lasting(text: impl Into<String>) -> Self {
        Self { passing: false, text: text.into(), wait: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Validator {
    /// From the two headers; a weak tag does not tell versions apart byte by byte.
    pub fn of(etag: Option<&str>, last_modified: Option<&str>) -> Option<Self> {
        let strong = etag.filter(|tag| tag.starts_with('"') && tag.ends_with('"') && tag.len() >= 2);
        strong.map(|tag| Self::Etag(tag.to_owned())).or_else(|| last_modified.map(|d| Self::LastModified(d.to_owned())))
    }

    /// As it stands in `If-Range`.
    pub fn text(&self) -> &str {
        match self {
            Self::Etag(text) | Self::LastModified(text) => text,
        }
    }
}

impl ContentRange {
    /// Reads the header; `None` if it says nothing that makes sense.
    pub fn parse(text: &str) -> Option<Self> {
        let (range, total) = text.trim().strip_prefix("bytes")?.trim_start().split_once('/')?;
        let total = match total.trim() {
            "*" => None,
            number => Some(number.parse().ok()?),
        };
        if range.trim() == "*" {
            return total.map(Self::Unsatisfied);
        }
        let (first, last) = range.split_once('-')?;
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last && total.is_none_or(|total| last < total)).then_some(Self::Of { first, last, total })
    }
}

/// What to do with an answer.
pub fn judge(asked: &Asked<'_>, head: &Head, wanted: &Wanted) -> Verdict {
    match head.status {
        200 => match not_the_file(head, head.length, wanted) {
            Some(fault) => Verdict::Fault(fault),
            None => Verdict::Whole { total: head.length },
        },
        206 => judge_part(asked, head, wanted),
        416 if asked.from > 0 => match head.range {
            Some(ContentRange::Unsatisfied(total)) if total == asked.from && wanted.bytes.contains(&total) => {
                Verdict::Complete
            }
            _ => Verdict::Restart,
        },
        _ => Verdict::Fault(refused(head)),
    }
}

fn judge_part(asked: &Asked<'_>, head: &Head, wanted: &Wanted) -> Verdict {
    let total = match head.range {
        Some(ContentRange::Of { first, total, .. }) if first == asked.from => total,
        // From elsewhere, although a part was asked for: the whole may do.
        _ if asked.from > 0 => return Verdict::Restart,
        _ => return Verdict::Fault(Fault::lasting(format!("answered with a part that was not asked for{}", of(head)))),
    };
    let has_changed = matches!((asked.total, total), (Some(old), Some(new)) if old != new)
        || matches!((asked.validator, &head.validator), (Some(old), Some(new)) if old != new);
    if has_changed {
        return Verdict::Restart;
    }
    match not_the_file(head, total, wanted) {
        Some(fault) => Verdict::Fault(fault),
        None => Verdict::Append { total: total.or(asked.total) },
    }
}

/// Tells an error page or another file by its type and size, before any of it is written.
fn not_the_file(head: &Head, bytes: Option<u64>, wanted: &Wanted) -> Option<Fault> {
    let is_page = is_html(head);
    let wrong_size = bytes.is_some_and(|bytes| !wanted.bytes.contains(&bytes));
    (is_page || wrong_size).then(|| {
        Fault::lasting(format!("answered {} instead of the file{}, {}", body(head, bytes), of(head), size(wanted)))
    })
}

fn refused(head: &Head) -> Fault {
    // 408, 425, 429 and errors of the server or what stands before it come and go; what it does not implement, it never will.
    let passing = matches!(head.status, 408 | 425 | 429 | 500 | 502..=504 | 506..=599);
    let text = match head.length {
        Some(bytes) if bytes > 0 && head.content_type.is_some() => {
            format!("answered {} instead of the file{}", body(head, Some(bytes)), of(head))
        }
        _ => format!("did not give the file{}", of(head)),
    };
    Fault { passing, text, wait: head.retry_after }
}

fn is_html(head: &Head) -> bool {
    head.content_type.as_deref().is_some_and(|text| text.trim_start().to_ascii_lowercase().starts_with("text/html"))
}

fn body(head: &Head, bytes: Option<u64>) -> String {
    match (is_html(head), bytes) {
        (true, Some(bytes)) => format!("an HTML page of {bytes} bytes"),
        (true, None) => "an HTML page".to_owned(),
        (false, Some(bytes)) => format!("{bytes} bytes"),
        (false, None) => "something".to_owned(),
    }
}

/// Status and type, in brackets.
fn of(head: &Head) -> String {
    let reason = StatusCode::from_u16(head.status).ok().and_then(|status| status.canonical_reason());
    let reason = reason.map_or(String::new(), |reason| format!(" {reason}"));
    let media = head.content_type.as_ref().map_or(String::new(), |media| format!(", {}", shown(media)));
    format!(" (status {}{reason}{media})", head.status)
}

/// What a stranger wrote, fit for a terminal.
fn shown(text: &str) -> String {
    text.chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn size(wanted: &Wanted) -> String {
    let (least, most) = (wanted.bytes.start(), wanted.bytes.end());
    match least == most {
        true => format!("which has {least} bytes"),
        false => format!("which has at least {least} bytes and at most {most}"),
    }
}
