//! Heads of answers, and what they mean.

use super::wanted;
use crate::fetch::{
    answer::{Asked, ContentRange, Fault, Head, Validator, Verdict, judge},
    wanted::Wanted,
};

fn any_size() -> Wanted {
    Wanted { bytes: 100..=1000, ..wanted() }
}

fn asked(from: u64, total: Option<u64>) -> Asked<'static> {
    Asked { from, total, validator: None }
}

fn head(status: u16, length: u64) -> Head {
    Head { status, length: Some(length), ..Head::default() }
}

fn part(first: u64, last: u64, total: Option<u64>) -> Head {
    Head { range: Some(ContentRange::Of { first, last, total }), ..head(206, last - first + 1) }
}

fn fault(verdict: Verdict) -> Fault {
    match verdict {
        Verdict::Fault(fault) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ranges_are_read() {
    for (text, range) in [
        ("bytes 0-9/10", Some(ContentRange::Of { first: 0, last: 9, total: Some(10) })),
        ("bytes 5-9/*", Some(ContentRange::Of { first: 5, last: 9, total: None })),
        (" bytes  5 - 9 / 10 ", Some(ContentRange::Of { first: 5, last: 9, total: Some(10) })),
        ("bytes */10", Some(ContentRange::Unsatisfied(10))),
        ("bytes */*", None),
        ("bytes 9-5/10", None),
        ("bytes 5-10/10", None),
        ("bytes 5-/10", None),
        ("lines 0-9/10", None),
        ("", None),
    ] {
        assert_eq!(ContentRange::parse(text), range, "{text:?}");
    }
}

#[test]
fn a_strong_tag_or_else_a_date_tells_versions_apart() {
    let date = || Validator::LastModified("d".into());
    assert_eq!(Validator::of(Some("\"a\""), Some("d")), Some(Validator::Etag("\"a\"".into())));
    assert_eq!(Validator::of(Some("W/\"a\""), Some("d")), Some(date()));
    assert_eq!(Validator::of(Some("a"), None), None);
    assert_eq!(Validator::of(Some("\""), Some("d")), Some(date()));
}

#[test]
fn whole_and_parts() {
    let wanted = any_size();
    let judged = |from, total, head: &Head| judge(&asked(from, total), head, &wanted);
    assert_eq!(judged(0, None, &head(200, 500)), Verdict::Whole { total: Some(500) });
    assert_eq!(judged(200, Some(500), &head(200, 500)), Verdict::Whole { total: Some(500) });
    assert_eq!(judged(0, None, &Head { length: None, ..head(200, 0) }), Verdict::Whole { total: None });
    assert_eq!(judged(200, Some(500), &part(200, 499, Some(500))), Verdict::Append { total: Some(500) });
    assert_eq!(judged(200, Some(500), &part(200, 499, None)), Verdict::Append { total: Some(500) });
    assert_eq!(judged(0, None, &part(0, 499, Some(500))), Verdict::Append { total: Some(500) });
    // From elsewhere, or of a file of another size.
    assert_eq!(judged(200, Some(500), &part(100, 499, Some(500))), Verdict::Restart);
    assert_eq!(judged(200, Some(500), &part(200, 599, Some(600))), Verdict::Restart);
    assert_eq!(judged(200, Some(500), &head(206, 300)), Verdict::Restart);
    assert!(!fault(judged(0, None, &part(7, 499, Some(500)))).passing);
}

#[test]
fn another_version_begins_anew_also_if_the_mirror_ignores_the_question() {
    let wanted = any_size();
    let (old, new) = (Validator::Etag("\"1\"".into()), Validator::Etag("\"2\"".into()));
    let asked = Asked { from: 200, total: Some(500), validator: Some(&old) };
    let answer = |validator| Head { validator, ..part(200, 499, Some(500)) };
    assert_eq!(judge(&asked, &answer(Some(new)), &wanted), Verdict::Restart);
    assert_eq!(judge(&asked, &answer(Some(old.clone())), &wanted), Verdict::Append { total: Some(500) });
    assert_eq!(judge(&asked, &answer(None), &wanted), Verdict::Append { total: Some(500) });
}

#[test]
fn a_range_beyond_the_end() {
    let wanted = any_size();
    let answer = |total| Head { range: Some(ContentRange::Unsatisfied(total)), ..head(416, 0) };
    assert_eq!(judge(&asked(500, None), &answer(500), &wanted), Verdict::Complete);
    assert_eq!(judge(&asked(500, None), &answer(400), &wanted), Verdict::Restart);
    assert_eq!(judge(&asked(500, None), &head(416, 0), &wanted), Verdict::Restart);
    // Of a size that the file cannot have.
    assert_eq!(judge(&asked(50, None), &answer(50), &wanted), Verdict::Restart);
    assert!(!fault(judge(&asked(0, None), &head(416, 0), &wanted)).passing);
}

#[test]
fn a_size_that_the_file_cannot_have_is_refused_before_it_comes() {
    let wanted = any_size();
    for bytes in [0, 99, 1001] {
        let text = fault(judge(&asked(0, None), &head(200, bytes), &wanted)).text;
        assert!(text.contains(&format!("answered {bytes} bytes")), "{text}");
        assert!(text.contains("at least 100 bytes and at most 1000"), "{text}");
    }
    assert!(!fault(judge(&asked(50, None), &part(50, 60, Some(61)), &wanted)).passing);
}

#[test]
fn pages_are_refused_whatever_their_size() {
    let wanted = any_size();
    let page = |status, length| Head { content_type: Some("Text/HTML".into()), length, ..head(status, 0) };
    let text = fault(judge(&asked(0, None), &page(200, Some(500)), &wanted)).text;
    assert!(text.contains("an HTML page of 500 bytes instead of"), "{text}");
    let text = fault(judge(&asked(0, None), &page(200, None), &wanted)).text;
    assert!(text.contains("answered an HTML page instead of"), "{text}");
    let text = fault(judge(&asked(0, None), &page(403, Some(322)), &wanted)).text;
    assert!(text.contains("an HTML page of 322 bytes") && text.contains("status 403 Forbidden, Text/HTML"), "{text}");
}

#[test]
fn a_type_cannot_write_to_the_terminal() {
    let head = Head { content_type: Some(format!("a\u{1b}[2J{}", "x".repeat(500))), ..head(404, 0) };
    let text = fault(judge(&asked(0, None), &head, &any_size())).text;
    assert!(!text.contains('\u{1b}') && text.len() < 200, "{text}");
}

#[test]
fn only_some_errors_pass() {
    for (status, passing) in
        [(400, false), (401, false), (403, false), (404, false), (410, false), (451, false), (501, false), (505, false)]
            .into_iter()
            .chain([408, 425, 429, 500, 502, 503, 504, 522].map(|status| (status, true)))
    {
        assert_eq!(fault(judge(&asked(0, None), &head(status, 0), &any_size())).passing, passing, "{status}");
    }
}
