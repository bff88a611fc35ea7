//! How a browser comes in: a form takes the token, and a cookie that no script sees takes its place.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Form,
    extract::{FromRequest, Request, State},
    response::{Html, IntoResponse, Redirect, Response},
};
use http::{HeaderMap, StatusCode, header::SET_COOKIE};
use serde::Deserialize;

use super::{
    guard::{self, BADGE, Refused},
    routes::App,
};
use crate::access::Peer;

const FORM: &str = include_str!("page/login.html");
/// Where the form says why it is shown again.
const MESSAGE: &str = "{{message}}";
/// How long a browser may take to send the form.
const SENDING: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
pub(super) struct Entered {
    token: String,
}

/// The form, or the page itself for those who are in.
pub(super) async fn form(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    match app.guard.admit(&headers, &peer) {
        Ok(_) => Redirect::to("/").into_response(),
        Err(Refused::Denied(_)) => Html(page("")).into_response(),
        Err(refused) => refused.into_response(),
    }
}

/// Gives the cookie for a token.
pub(super) async fn log_in(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Response {
    if is_foreign(request.headers()) {
        return FOREIGN.into_response();
    }
    let entered = match tokio::time::timeout(SENDING, Form::<Entered>::from_request(request, &())).await {
        Ok(Ok(Form(entered))) => entered,
        Ok(Err(rejection)) => return rejection.into_response(),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let given = app.guard.badges.give(&app.guard.access, entered.token.trim());
    match app.guard.count(given, &peer) {
        Ok((_, badge)) => ([(SET_COOKIE, cookie(&badge, app.guard.secure))], Redirect::to("/")).into_response(),
        Err(refused @ Refused::Host(_)) => refused.into_response(),
        Err(Refused::Denied(denied)) => (guard::status(&denied), Html(page(&denied.to_string()))).into_response(),
    }
}

/// Takes the cookie back.
pub(super) async fn log_out(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    if is_foreign(&headers) {
        return FOREIGN.into_response();
    }
    let expired = cookie("", app.guard.secure) + "; Max-Age=0";
    ([(SET_COOKIE, expired)], Redirect::to("/login")).into_response()
}

const FOREIGN: (StatusCode, &str) = (StatusCode::FORBIDDEN, "sent from a page that is not this daemon's\n");

/// Whether a page of another site sends the request: browsers say so (Fetch Metadata).
fn is_foreign(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    site.is_some_and(|site| site != "same-origin" && site != "none")
}

/// For this session of the browser, for requests of our own pages only.
fn cookie(badge: &str, secure: bool) -> String {
    let secure = if secure { "; Secure" } else { "" };
    format!("{BADGE}={badge}; Path=/; HttpOnly; SameSite=Strict{secure}")
}

fn page(message: &str) -> String {
    FORM.replace(MESSAGE, &escape(message))
}

/// Text as it may stand in HTML, also between quotes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_text_in_the_form() {
        assert_eq!(FORM.matches(MESSAGE).count(), 1);
        let shown = page("the token \"<b>'&\" lacks");
        assert!(shown.contains("the token &quot;&lt;b&gt;&#39;&amp;&quot; lacks"), "{shown}");
        assert!(!shown.contains(MESSAGE));
    }

    #[test]
    fn a_cookie_is_for_our_own_pages_and_encrypted_where_they_are() {
        assert_eq!(cookie("00ff", false), "cuzk_badge=00ff; Path=/; HttpOnly; SameSite=Strict");
        assert!(cookie("00ff", true).ends_with("; Secure"));
    }
}
