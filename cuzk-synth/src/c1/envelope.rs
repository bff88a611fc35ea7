//! The node's envelope `{"SectorNum": n, "Phase1Out": "<base64>", "SectorSize": bytes}` around the C1 output, or the
//! C1 output without it.

use std::{
    borrow::Cow,
    io::{self, BufWriter, IntoInnerError, Write},
};

use base64::{Engine, engine::general_purpose::STANDARD, write::EncoderWriter};
use serde::Deserialize;

use super::model::C1Output;
use crate::error::InputError;

/// What the envelope says, and the JSON inside.
#[derive(Debug)]
pub struct Unwrapped<'a> {
    /// The inner JSON.
    pub json: Cow<'a, [u8]>,
    /// `SectorNum`, if there was an envelope that has it.
    pub sector_number: Option<u64>,
    /// `SectorSize` in bytes likewise.
    pub sector_size: Option<u64>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "SectorNum")]
    sector_number: Option<u64>,
    #[serde(rename = "Phase1Out", borrow)]
    phase1_out: Option<Text<'a>>,
    #[serde(rename = "SectorSize")]
    sector_size: Option<u64>,
}

/// Base64 needs no escapes, so nothing of these tens of megabytes is copied. (Inside an `Option`, a `Cow` alone would be:
/// it borrows only where the attribute stands right at it.)
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Takes the envelope off, if there is one. Fields that the envelope should not have are ignored, as nodes may add
/// some.
pub fn unwrap(payload: &[u8]) -> Result<Unwrapped<'_>, InputError> {
    const FIELD: &str = "vanilla_proof";
    if payload.is_empty() {
        return Err(InputError::invalid(FIELD, "is empty: send the C1 output as JSON"));
    }
    let envelope: Envelope<'_> = serde_json::from_slice(payload)
        .map_err(|e| InputError::invalid(FIELD, json_reason("envelope", payload, &e)))?;
    let Some(Text(base64)) = envelope.phase1_out else {
        // No `Phase1Out`: the C1 output itself.
        return Ok(Unwrapped { json: Cow::Borrowed(payload), sector_number: None, sector_size: None });
    };
    let json = STANDARD.decode(base64.as_bytes()).map_err(|e| {
        InputError::invalid("vanilla_proof.Phase1Out", format!("is not standard base64 with padding: {e}"))
    })?;
    Ok(Unwrapped { json: Cow::Owned(json), sector_number: envelope.sector_number, sector_size: envelope.sector_size })
}

/// Writes a C1 output in its envelope, as nodes send it.
pub fn wrap(mut out: impl Write, c1: &C1Output, sector_number: u64, sector_size: u64) -> io::Result<()> {
    write!(out, r#"{{"SectorNum":{sector_number},"Phase1Out":""#)?;
    {
        // JSON comes number by number; base64 takes it in larger pieces.
        let mut json = BufWriter::new(EncoderWriter::new(&mut out, &STANDARD));
        serde_json::to_writer(&mut json, c1)?;
        json.into_inner().map_err(IntoInnerError::into_error)?.finish()?;
    }
    write!(out, r#"","SectorSize":{sector_size}}}"#)?;
    out.flush()
}

/// Describes a JSON error by layer and byte offset, for input that is one long line.
pub(super) fn json_reason(layer: &str, json: &[u8], error: &serde_json::Error) -> String {
    let offset: usize =
        json.split_inclusive(|&b| b == b'\n').take(error.line().saturating_sub(1)).map(<[u8]>::len).sum::<usize>()
            + error.column();
    let what = if error.is_eof() { "ends too early" } else { "is not the JSON expected" };
    // serde_json ends its message with a line and column of its own.
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    format!("the {layer} {what} at byte {offset} of {}: {text}", json.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(payload: &[u8]) -> String {
        unwrap(payload).unwrap_err().to_string()
    }

    #[test]
    fn takes_the_envelope_off() {
        let payload = br#"{"Extra": [1], "SectorNum": 7, "Phase1Out": "e30=", "SectorSize": 2048}"#;
        let inner = unwrap(payload).unwrap();
        assert_eq!(&*inner.json, b"{}");
        assert_eq!(inner.sector_number, Some(7));
        assert_eq!(inner.sector_size, Some(2048));
    }

    #[test]
    fn the_text_is_borrowed_unless_it_has_escapes() {
        let borrowed = |json| {
            let envelope: Envelope<'_> = serde_json::from_str(json).unwrap();
            matches!(envelope.phase1_out, Some(Text(Cow::Borrowed("e30="))))
        };
        assert!(borrowed(r#"{"Phase1Out": "e30="}"#));
        assert!(!borrowed(r#"{"Phase1Out": "e30\u003d"}"#));
        assert_eq!(&*unwrap(br#"{"Phase1Out": "e30\u003d"}"#).unwrap().json, b"{}");
    }

    #[test]
    fn null_is_absent() {
        let payload = br#"{"SectorNum": null, "Phase1Out": "e30=", "SectorSize": null}"#;
        let inner = unwrap(payload).unwrap();
        assert_eq!((inner.sector_number, inner.sector_size), (None, None));
    }

    #[test]
    fn bare_json_is_borrowed() {
        let payload = br#"{"registered_proof": "x"}"#;
        assert!(matches!(unwrap(payload).unwrap().json, Cow::Borrowed(json) if json == payload));
    }

    #[test]
    fn errors_name_the_layer_and_the_offset() {
        assert!(reason(b"").contains("is empty"));
        let truncated = br#"{"SectorNum": 7, "Phase1Out": "e30"#;
        let text = reason(truncated);
        assert!(text.contains("envelope ends too early at byte 34 of 34"), "{text}");
        let text = reason(br#"{"Phase1Out": "e3*="}"#);
        assert!(text.contains("Phase1Out: is not standard base64"), "{text}");
        let text = reason(b"{}\n\n[");
        assert!(text.contains("at byte 5 of 5"), "{text}");
        assert!(reason(br#"{"SectorNum": "7", "Phase1Out": ""}"#).contains("envelope"));
    }
}
