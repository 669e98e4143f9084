//! Every relative link in every Markdown file leads to a file, and to a heading in it if it names
//! one.

use std::fs;
use std::path::Path;

use crate::markdown::{files, lines, root};

#[test]
fn relative_links_resolve() {
    let (mut broken, mut checked) = (Vec::new(), 0);
    for (path, text) in files() {
        for target in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            if let Err(why) = resolve(&path, &target) {
                broken.push(format!("{}: ({target}): {why}", path.display()));
            }
        }
    }
    assert!(checked > 20, "only {checked} links found: the test looks in the wrong place");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_of_the_manual_is_in_its_index() {
    let index = targets(&crate::markdown::page("README.md"));
    let decisions = targets(&crate::markdown::page("decisions/README.md"));
    let mut numbered = 0;
    for (path, _) in files() {
        let Ok(name) = path.strip_prefix("docs") else { continue };
        let name = name.display().to_string();
        match name.strip_prefix("decisions/").filter(|page| *page != "README.md") {
            Some(page) => {
                assert!(
                    decisions.iter().any(|target| target == page),
                    "docs/decisions/README.md has no {page}"
                );
                numbered += 1;
            }
            None => assert!(
                name == "README.md" || index.contains(&name),
                "docs/README.md does not link to {name}"
            ),
        }
    }
    assert!(numbered > 20, "only {numbered} decisions found: the test looks in the wrong place");
}

/// A decision's page has its number, and two or three headings.
#[test]
fn decisions_have_one_form() {
    for (path, text) in files() {
        let Ok(page) = path.strip_prefix("docs/decisions") else { continue };
        let name = page.display().to_string();
        if name == "README.md" {
            continue;
        }
        let number = name.split('-').next().unwrap_or_default();
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
        assert!(headings[0].starts_with(&format!("# {number}: ")), "{name}: {headings:?}");
        assert_eq!(headings[1..3], ["## Context", "## Decision"], "{name}");
        assert!(matches!(headings[3..], [] | ["## Consequence"]), "{name}: {headings:?}");
    }
}

/// The text in the parentheses of links.
fn targets(text: &str) -> Vec<String> {
    let outside = lines(text).filter(|(fenced, _)| !fenced).map(|(_, line)| line);
    outside
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target.to_owned())
        .collect()
}

fn resolve(page: &Path, target: &str) -> Result<(), String> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let folder = page.parent().unwrap_or(Path::new(""));
    let path = if file.is_empty() { root().join(page) } else { root().join(folder).join(file) };
    if !path.exists() {
        return Err("there is no such file".to_owned());
    }
    if heading.is_empty() {
        return Ok(());
    }
    let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let found = lines(&text)
        .filter(|(fenced, line)| !fenced && line.starts_with('#'))
        .any(|(_, line)| anchor(line.trim_start_matches('#').trim()) == heading);
    if found { Ok(()) } else { Err(format!("there is no heading #{heading}")) }
}

/// The anchor of a heading in Markdown on the web.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn headings_have_the_names_of_the_web() {
    assert_eq!(anchor("`\\gset [PREFIX]`"), "gset-prefix");
    assert_eq!(anchor("What it isn't, and why"), "what-it-isnt-and-why");
}
