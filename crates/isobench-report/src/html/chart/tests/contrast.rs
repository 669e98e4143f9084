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
    assert!(seen >= 52, "only {seen} colours were found");
}

/// Cube roots of the cones' answers (OKLab): where colours look alike they lie near each other.
/// Source: Ottosson, "A perceptual color space for image processing" (2020).
fn seen(colour: [f64; 3]) -> [f64; 3] {
    let [red, green, blue] = colour.map(|part| {
        let part = part / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    let mix = |factors: [f64; 3]| (factors[0] * red + factors[1] * green + factors[2] * blue).cbrt();
    let long = mix([0.412_22, 0.536_33, 0.051_45]);
    let middle = mix([0.211_90, 0.680_70, 0.107_40]);
    let short = mix([0.088_30, 0.281_72, 0.629_98]);
    [
        0.210_45 * long + 0.793_62 * middle - 0.004_07 * short,
        1.978_00 * long - 2.428_59 * middle + 0.450_59 * short,
        0.025_90 * long + 0.782_77 * middle - 0.808_68 * short,
    ]
}

#[test]
fn a_colour_has_one_meaning() {
    let style = pairs(include_str!("../chart.css"));
    let meanings: Vec<_> = style
        .iter()
        .filter(|(name, _)| {
            ["--level", "--outcome", "--wait", "--value"].iter().any(|family| name.starts_with(family))
        })
        .collect();
    assert_eq!(meanings.len(), 26);
    for (index, (name, colours)) in meanings.iter().enumerate() {
        for (other, others) in &meanings[..index] {
            for theme in 0..2 {
                let (one, two) = (seen(colours[theme]), seen(others[theme]));
                let distance = one.iter().zip(two).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
                assert!(distance > 0.025, "{name} and {other} look alike: {distance:.3}");
            }
        }
    }
}
