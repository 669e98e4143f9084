//! A page as lines of text: its headings, tables, figures, in the page's order.

use scraper::{ElementRef, Html, Selector};

/// The outline of a page.
pub fn of(page: &str) -> String {
    let html = Html::parse_document(page);
    let body = Selector::parse("body").expect("a selector");
    let mut lines = Vec::new();
    for element in html.select(&body) {
        walk(element, &mut lines);
    }
    lines.join("\n") + "\n"
}

/// The text of an element, blanks folded.
pub fn text(element: ElementRef) -> String {
    element.text().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn walk(element: ElementRef, lines: &mut Vec<String>) {
    let value = element.value();
    let id = value.id().unwrap_or_default();
    match value.name() {
        "script" | "style" | "nav" | "button" | "figcaption" => {}
        name @ ("h1" | "h2" | "h3" | "h4") => {
            let level = name[1..].parse().unwrap_or(1);
            lines.push(format!("{} {}", "#".repeat(level), text(element)));
        }
        "table" => table(element, lines),
        "svg" => lines.push("picture".to_owned()),
        "pre" => {
            lines.push(format!("pre {id}: {} lines", element.text().collect::<String>().lines().count()));
        }
        "p" | "legend" => lines.push(text(element)),
        "li" => lines.push(format!("- {}", text(element))),
        "dt" => lines.push(format!("{}:", text(element))),
        "dd" => lines.push(format!("    {}", text(element))),
        "summary" => lines.push(format!("> {}", text(element))),
        name => {
            if matches!(name, "section" | "figure") {
                lines.push(format!("\n{name} {id}"));
            }
            for child in element.child_elements() {
                walk(child, lines);
            }
        }
    }
}

fn table(table: ElementRef, lines: &mut Vec<String>) {
    let select = |selector: &str| Selector::parse(selector).expect("a selector");
    let caption = table.select(&select("caption")).map(text).collect::<String>();
    lines.push(format!("table: {caption}"));
    for row in table.select(&select("tr")) {
        let cells: Vec<String> = row.select(&select("th, td")).map(text).collect();
        lines.push(format!("    {}", cells.join(" | ")).trim_end().to_owned());
    }
}
