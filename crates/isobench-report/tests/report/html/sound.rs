//! Faults of pages: a page is valid, self-contained, named for readers who don't see it, without
//! holes.

use std::collections::HashSet;

use scraper::{ElementRef, Html, Selector};

use super::outline::text;

/// The faults of a page, a sentence each.
pub fn faults(page: &str) -> Vec<String> {
    let html = Html::parse_document(page);
    let mut faults: Vec<String> = html.errors.iter().map(|error| format!("HTML: {error}")).collect();
    let all: Vec<ElementRef> = html.root_element().descendent_elements().collect();
    references(&all, &mut faults);
    requests(&all, &mut faults);
    names(&all, &mut faults);
    headings(&all, &mut faults);
    holes(&all, &mut faults);
    faults
}

/// Ids are unique, and what refers to one finds it.
fn references(all: &[ElementRef], faults: &mut Vec<String>) {
    let mut ids = HashSet::new();
    for id in all.iter().filter_map(|element| element.value().id()) {
        if !ids.insert(id) {
            faults.push(format!("the id {id} is there twice"));
        }
    }
    for element in all {
        for (name, value) in element.value().attrs() {
            let targets: Vec<&str> = match name {
                "href" => vec![value.strip_prefix('#').unwrap_or(value)],
                "for" | "aria-labelledby" | "aria-describedby" | "data-save" => value.split(' ').collect(),
                _ => value
                    .split("url(#")
                    .skip(1)
                    .map(|rest| rest.split(')').next().unwrap_or_default())
                    .collect(),
            };
            for target in targets {
                if !ids.contains(target) {
                    faults.push(format!("{name}=\"{value}\" leads nowhere"));
                }
            }
        }
    }
}

/// Nothing is fetched, nothing runs but the page's own script, and a policy says so.
fn requests(all: &[ElementRef], faults: &mut Vec<String>) {
    let mut policies = 0;
    let mut scripts = 0;
    for element in all {
        let value = element.value();
        match value.name() {
            "link" | "img" | "iframe" | "object" | "embed" | "base" | "form" | "audio" | "video" => {
                faults.push(format!("there is a {}", value.name()));
            }
            "script" => scripts += 1,
            "meta" if value.attr("http-equiv") == Some("Content-Security-Policy") => {
                policies += 1;
                if !value.attr("content").is_some_and(|policy| policy.starts_with("default-src 'none'; ")) {
                    faults.push("the policy allows too much".to_owned());
                }
            }
            "style" if text(*element).contains("@import") => faults.push("a style is imported".to_owned()),
            _ => {}
        }
        for (name, content) in value.attrs() {
            let external = content.contains("://") && matches!(name, "src" | "href" | "style" | "action");
            if name == "src" || name.starts_with("on") || external {
                faults.push(format!("{} has {name}=\"{content}\"", value.name()));
            }
        }
    }
    if (policies, scripts) != (1, 1) {
        faults.push(format!("{policies} policies and {scripts} scripts"));
    }
}

/// Pictures, tables, regions and controls have names.
fn names(all: &[ElementRef], faults: &mut Vec<String>) {
    for element in all {
        let value = element.value();
        let has = |name: &str| value.attr(name).is_some_and(|content| !content.trim().is_empty());
        let labelled = has("aria-label") || has("aria-labelledby");
        let child = |name: &str| element.child_elements().find(|child| child.value().name() == name);
        let named = match value.name() {
            "svg" => {
                // What lies within a picture is part of it.
                let within = element.ancestors().filter_map(ElementRef::wrap);
                within.map(|outer| outer.value().name()).any(|name| name == "svg")
                    || labelled
                    || value.attr("aria-hidden") == Some("true")
                    || child("title").is_some_and(|title| !text(title).is_empty())
            }
            "table" => child("caption").is_some_and(|caption| !text(caption).is_empty()),
            "section" | "nav" | "figure" | "pre" => labelled,
            "th" => has("scope"),
            "details" => child("summary").is_some_and(|summary| !text(summary).is_empty()),
            "button" | "a" | "summary" => labelled || !text(*element).is_empty(),
            "html" => has("lang"),
            _ => value.attr("role") != Some("region") || labelled,
        };
        if !named {
            faults.push(format!("a {} has no name: {}", value.name(), shortened(&element.html())));
        }
    }
}

/// One first heading, and no level left out.
fn headings(all: &[ElementRef], faults: &mut Vec<String>) {
    let levels: Vec<(u32, String)> = all
        .iter()
        .filter_map(|element| {
            let level = element.value().name().strip_prefix('h')?.parse().ok()?;
            Some((level, text(*element)))
        })
        .collect();
    if levels.iter().filter(|(level, _)| *level == 1).count() != 1 {
        faults.push("there isn't one first heading".to_owned());
    }
    for pair in levels.windows(2) {
        if pair[1].0 > pair[0].0 + 1 {
            faults.push(format!("\"{}\" leaves out a level of headings", pair[1].1));
        }
    }
    for (_, heading) in levels.iter().filter(|(_, heading)| heading.is_empty()) {
        faults.push(format!("a heading is empty: {heading:?}"));
    }
}

/// No words of a program that had no number.
fn holes(all: &[ElementRef], faults: &mut Vec<String>) {
    let broken = |text: &str| {
        text.split(|letter: char| !letter.is_alphanumeric())
            .any(|word| matches!(word, "NaN" | "inf" | "Infinity" | "undefined" | "null" | "None"))
    };
    let main = Selector::parse("body").expect("a selector");
    for body in all.first().map(|root| root.select(&main)).into_iter().flatten() {
        for node in body.text().filter(|text| broken(text)) {
            // The page's own script is text, too.
            if !node.contains("use strict") {
                faults.push(format!("a hole: {}", shortened(node)));
            }
        }
    }
    for element in all {
        for (name, value) in element.value().attrs().filter(|(_, value)| broken(value)) {
            faults.push(format!("a hole: {name}=\"{}\"", shortened(value)));
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}
