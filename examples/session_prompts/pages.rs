//! What browsers ask for: the page, log in, stay, log out, and the stream of events.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Form, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{
        Html, IntoResponse, Redirect, Response, Sse,
        sse::{Event, KeepAlive},
    },
    routing::{get, post},
};
use futures::{StreamExt as _, future::ready, stream};

use crate::{App, Happened, User, session_key};

/// All pages.
pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/login", post(log_in))
        .route("/stay", post(stay))
        .route("/logout", post(log_out))
        .route("/events", get(events))
        .with_state(app)
}

async fn page(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failed> {
    if let Some(key) = session_of(&headers)
        && let Some(user) = app.prolong(&key).await?
    {
        let visits = app.visit(&key).await?.to_string();
        let page = include_str!("page.html").replace("{{visits}}", &visits).replace("{{user}}", &escape(&user));
        return Ok(Html(page).into_response());
    }
    Ok(Html(include_str!("login.html")).into_response())
}

async fn log_in(State(app): State<Arc<App>>, Form(User { user }): Form<User>) -> Result<Response, Failed> {
    let token = app.log_in(user).await?;
    // Over TLS it would be `Secure`, too.
    let cookie = format!("session={token}; HttpOnly; SameSite=Strict; Path=/");
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response())
}

async fn stay(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<StatusCode, Failed> {
    let Some(key) = session_of(&headers) else { return Ok(StatusCode::UNAUTHORIZED) };
    let prolonged = app.prolong(&key).await?;
    Ok(if prolonged.is_some() { StatusCode::NO_CONTENT } else { StatusCode::UNAUTHORIZED })
}

async fn log_out(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Redirect, Failed> {
    if let Some(key) = session_of(&headers) {
        app.log_out(&key).await?;
    }
    Ok(Redirect::to("/"))
}

/// The stream of what happens to a session. Listening to it is no activity: it does not prolong anything.
async fn events(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, Failed> {
    // No content tells a browser not to connect again.
    let Some(key) = session_of(&headers) else { return Ok(StatusCode::NO_CONTENT.into_response()) };
    // Listening begins before the look, so that nothing falls in between.
    let news = app.news.subscribe();
    let missed = stream::iter(app.missed(&key).await?);
    // Where it falls too far behind the stream ends; what it has missed it is told when it connects again.
    let told = stream::unfold(news, |mut news| async move { Some((news.recv().await.ok()?, news)) });
    let told = told.filter(move |news| ready(news.key == key)).map(|news| news.happened);
    let events = missed.chain(told).map(|happened| {
        Ok::<_, Infallible>(match happened {
            Happened::Reminder { at_ms } => Event::default().event("reminder").data(at_ms.to_string()),
            Happened::Ended => Event::default().event("ended").data("now"),
        })
    });
    // An open stream would hold up the end of the server.
    let events = events.take_until(app.stop.clone().cancelled_owned());
    Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response())
}

/// The key of the session that the cookie names, if it names one as we give them out.
fn session_of(headers: &HeaderMap) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let token =
        cookies.flat_map(|cookies| cookies.split(';')).find_map(|cookie| cookie.trim().strip_prefix("session="))?;
    let is_ours = token.len() == 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then(|| session_key(token))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// What went wrong inside is for the log, not for the browser.
pub(crate) struct Failed(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        println!("a request failed: {:#}", self.0);
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}
