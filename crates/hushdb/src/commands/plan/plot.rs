//! The picture of offers: the bytes of a look-up against the server's time, with the memory of a server as the size of the dot.

use std::{collections::BTreeSet, error::Error, path::Path, sync::Once};

use hush_build::planner::{Offer, Wishes};
use hush_engine::Seconds;
use plotters::{
    coord::{Shift, types::RangedCoordf64},
    prelude::*,
    style::{FontStyle, register_font},
};

use crate::report;

const SIZE: (u32, u32) = (1200, 760);
const FONT: &str = "sans-serif";
/// The colours of protocols, the same as on the page (`clients/page/src/protocols.ts`). Colour-blind people can tell them apart too
/// (after Okabe and Ito, and Tol).
const COLOURS: [(&str, RGBColor); 13] = [
    ("colpack", RGBColor(0, 114, 178)),
    ("colpack-s", RGBColor(86, 180, 233)),
    ("hybrid", RGBColor(213, 94, 0)),
    ("onion", RGBColor(0, 158, 115)),
    ("tfhe", RGBColor(204, 121, 167)),
    ("tfhe-privks", RGBColor(68, 170, 153)),
    ("simple", RGBColor(230, 159, 0)),
    ("frodo", RGBColor(120, 120, 120)),
    ("double", RGBColor(153, 102, 51)),
    ("exppack-s", RGBColor(100, 60, 160)),
    ("exppack-d", RGBColor(136, 34, 85)),
    ("double-pack", RGBColor(187, 204, 51)),
    ("download", RGBColor(204, 51, 17)),
];
const INK: RGBColor = RGBColor(60, 60, 60);
const GRID: RGBColor = RGBColor(225, 225, 225);
/// The radii of dots, for the least and for the most memory.
const RADII: (f64, f64) = (5.0, 17.0);
/// The width at the right for the legend.
const LEGEND: u32 = 230;

/// Draws `offers`, at least one, to a file whose name ends in .svg or .png.
///
/// # Errors
/// The name ends otherwise, or the file cannot be written.
pub(super) fn draw(
    path: &Path,
    offers: &[Offer],
    chosen: Option<&Offer>,
    wishes: &Wishes,
) -> Result<(), Box<dyn Error>> {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        // Registration cannot fail here: the bytes are a font, and they are registered once.
        let _ = register_font(FONT, FontStyle::Normal, dejavu::sans::regular());
    });
    let picture = Picture::new(offers, chosen, wishes);
    let written = match path.extension().and_then(|end| end.to_str()) {
        Some("svg") => picture.draw(&SVGBackend::new(path, SIZE).into_drawing_area()),
        Some("png") => picture.draw(&BitMapBackend::new(path, SIZE).into_drawing_area()),
        _ => return Err(format!("{}: a picture is a .svg or a .png file", path.display()).into()),
    };
    written.map_err(|error| format!("{}: {error}", path.display()).into())
}

struct Picture<'a> {
    offers: &'a [Offer],
    chosen: Option<&'a Offer>,
    wishes: &'a Wishes,
    /// The protocols of the offers, sorted by name.
    protocols: BTreeSet<&'static str>,
    memory: (f64, f64),
}

type Area<'a, B> = ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), Box<dyn Error>>;

impl<'a> Picture<'a> {
    fn new(offers: &'a [Offer], chosen: Option<&'a Offer>, wishes: &'a Wishes) -> Self {
        let protocols: BTreeSet<&str> = offers.iter().map(|offer| offer.protocol.name()).collect();
        let memory = ends(offers.iter().map(|offer| (offer.server_bytes.max(1) as f64).ln()));
        Self { offers, chosen, wishes, protocols, memory }
    }

    fn bytes(&self, offer: &Offer) -> f64 {
        offer.bytes(self.wishes.clients.lookups)
    }

    fn radius(&self, bytes: f64) -> f64 {
        let (least, most) = self.memory;
        let share = if most > least { (bytes.max(1.0).ln() - least) / (most - least) } else { 0.5 };
        RADII.0 + (RADII.1 - RADII.0) * share
    }

    fn draw<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        area.fill(&WHITE)?;
        let (plot, legend) = area.split_horizontally(SIZE.0 - LEGEND);
        // The axes are logarithms, so that their ticks are round numbers.
        let x = padded(ends(self.offers.iter().map(|offer| self.bytes(offer).log2())));
        let y = padded(ends(self.offers.iter().map(|offer| offer.seconds.log10())));
        let mut chart = ChartBuilder::on(&plot)
            .margin(20)
            .caption("Tables that these records could have", (FONT, 24).into_font().color(&INK))
            .x_label_area_size(56)
            .y_label_area_size(84)
            .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        chart
            .configure_mesh()
            .bold_line_style(GRID)
            .light_line_style(WHITE)
            .axis_style(INK)
            .label_style((FONT, 15).into_font().color(&INK))
            .x_desc("a look-up: bytes sent and received, with a share of what is sent once")
            .y_desc("the server's time for a single look-up")
            .x_labels(10)
            .y_labels(8)
            .x_label_formatter(&|x| report::bytes(x.exp2() as u64))
            .y_label_formatter(&|y| Seconds(10f64.powf(*y)).to_string())
            .draw()?;
        self.dots(&mut chart)?;
        self.mark(&mut chart)?;
        self.legend(&legend)
    }

    /// Draws the dots, the largest first, so that none hides another.
    fn dots<B: DrawingBackend>(&self, chart: &mut Area<'_, B>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let mut offers: Vec<&Offer> = self.offers.iter().collect();
        offers.sort_by_key(|offer| std::cmp::Reverse(offer.server_bytes));
        for offer in offers {
            let place = (self.bytes(offer).log2(), offer.seconds.log10());
            let radius = self.radius(offer.server_bytes as f64);
            let colour = colour(offer.protocol.name());
            chart.draw_series([Circle::new(place, radius as i32, colour.mix(0.55).filled())])?;
            chart.draw_series([Circle::new(place, radius as i32, INK.mix(0.6).stroke_width(1))])?;
        }
        Ok(())
    }

    /// Draws a ring around the chosen offer. The legend describes it, so that no text hides a dot.
    fn mark<B: DrawingBackend>(&self, chart: &mut Area<'_, B>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let Some(offer) = self.chosen else { return Ok(()) };
        let place = (self.bytes(offer).log2(), offer.seconds.log10());
        let radius = self.radius(offer.server_bytes as f64) as i32 + 5;
        chart.draw_series([Circle::new(place, radius, BLACK.stroke_width(3))])?;
        Ok(())
    }

    /// Draws the names of the colours, and the sizes.
    fn legend<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>) -> Drawn
    where
        B::ErrorType: 'static,
    {
        let style = (FONT, 16).into_font().color(&INK);
        let mut top = 70;
        let mut row = |area: &DrawingArea<B, Shift>, radius: f64, fill: ShapeStyle, text: String| -> Drawn {
            area.draw(&Circle::new((26, top), radius as i32, fill))?;
            area.draw(&Text::new(text, (54, top - 7), style.clone()))?;
            top += 36;
            Ok(())
        };
        for protocol in &self.protocols {
            row(area, 9.0, colour(protocol).mix(0.7).filled(), (*protocol).to_owned())?;
        }
        let (least, most) = self.memory;
        for bytes in [least, (least + most) / 2.0, most].map(f64::exp) {
            let text = format!("{} of memory", report::bytes(bytes as u64));
            row(area, self.radius(bytes), INK.stroke_width(1), text)?;
        }
        if let Some(offer) = self.chosen {
            row(area, 9.0, BLACK.stroke_width(3), format!("chosen: {}", offer.protocol))?;
            let facts = [
                format!("{} a look-up", report::bytes(self.bytes(offer) as u64)),
                format!("{} of the server", Seconds(offer.seconds)),
                format!("{} of memory", report::bytes(offer.server_bytes)),
            ];
            for (text, line) in facts.into_iter().zip(0..) {
                area.draw(&Text::new(text, (54, top - 20 + 24 * line), style.clone()))?;
            }
        }
        area.present()?;
        Ok(())
    }
}

fn colour(protocol: &str) -> RGBColor {
    COLOURS.iter().find(|(name, _)| *name == protocol).map_or(BLACK, |(_, colour)| *colour)
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)))
}

/// Widens a range to make room for dots.
fn padded((least, most): (f64, f64)) -> (f64, f64) {
    let room = ((most - least) * 0.08).max(0.2);
    (least - room, most + room)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use hush_protocol::registry::Protocol;

    use super::*;

    #[test]
    fn every_protocol_has_a_colour_of_its_own() {
        let colours: HashSet<_> =
            Protocol::ALL.iter().map(|protocol| colour(protocol.name()).rgb()).collect();
        assert_eq!(colours.len(), Protocol::ALL.len());
        assert!(!colours.contains(&BLACK.rgb()), "a protocol without a colour");
    }
}
