//! The colours of marks beside those of the paper, computed from the styles.

/// The colours of a style that are pairs, light and dark: name, red, green, blue of each.
fn pairs(style: &str) -> Vec<(&str, [[f64; 3]; 2])> {
    let colour = |text: &str| -> Option<[f64; 3]> {
        let digits = text.trim().strip_prefix('#').filter(|digits| digits.len() == 6)?;
        let part = |from: usize| Some(f64::from(u8::from_str_radix(digits.get(from..from + 2)?, 16).ok()?));
        Some([part(0)?, part(2)?, part(4)?])
    };
    let lines = style.lines().filter_map(|line| line.trim().strip_suffix(");")?.split_once(": light-dark("));
    let parsed = lines.filter_map(|(name, colours)| {
        let (light, dark) = colours.split_once(',')?;
        Some((name, [colour(light)?, colour(dark)?]))
    });
    parsed.collect()
}

/// Relative luminance (WCAG 2.2).
fn luminance(colour: [f64; 3]) -> f64 {
    let [red, green, blue] = colour.map(|part| {
        let part = part / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[test]
fn marks_are_seen_on_the_paper_of_both_themes() {
    let page = pairs(include_str!("../../page.css"));
    let (_, paper) = page.iter().find(|(name, _)| *name == "--paper").expect("the page has a paper");
    let series = pairs(include_str!("../chart.css"));
    let marks = series.iter().filter(|(name, _)| !["--chart-grid", "--chart-base"].contains(name));
    let mut seen = 0;
    for (name, colours) in marks {
        for (colour, paper) in colours.iter().zip(paper) {
            let (one, other) = (luminance(*colour), luminance(*paper));
            let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
            assert!(contrast >= 3.0, "{name} has a contrast of {contrast:.2}");
            seen += 1;
        }
    }
    assert!(seen >= 22, "only {seen} colours were found");
}
