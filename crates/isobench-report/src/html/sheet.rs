//! A page of a few parts, each below its heading.
//!
//! Not here: the page of one result (`html`), which has more to it.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::part::pairs;
use super::{SCRIPT, policy, style};

/// A part of a page: its anchor, its heading, its content.
pub type Part = (&'static str, &'static str, Markup);

/// What has to be known before reading on.
pub fn warnings(warnings: &[String]) -> Markup {
    html! {
        @if !warnings.is_empty() {
            ul class="banners" role="list" aria-label="Before you read on" {
                @for warning in warnings { li { (warning) } }
            }
        }
    }
}

/// A page that needs nothing but itself: no network, no other file, no script. `facts` are names with
/// values at its top, and `last` is said at its end.
pub fn sheet(title: &str, facts: &[(String, String)], parts: &[Part], last: &str) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "isobench " (env!("CARGO_PKG_VERSION")) };
                title { (title) " · isobench" }
                style { (PreEscaped(style())) }
            }
            body {
                a class="skip" href="#main" { "Skip to the results" }
                header class="top" {
                    div {
                        p class="brandname" { "isobench" }
                        h1 { (title) }
                        (pairs(facts))
                    }
                }
                div class="columns" {
                    nav class="contents" aria-label="Contents" {
                        ol { @for (id, heading, _) in parts { li { a href={ "#" (id) } { (heading) } } } }
                    }
                    main id="main" {
                        @for (id, heading, body) in parts {
                            section id=(id) aria-labelledby={ (id) "-title" } {
                                h2 id={ (id) "-title" } { (heading) }
                                (body)
                            }
                        }
                    }
                }
                footer {
                    p { "Written by isobench " (env!("CARGO_PKG_VERSION")) ". " (last) }
                }
                div id="tip" role="tooltip" hidden {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}
