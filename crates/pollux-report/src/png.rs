//! From SVG to pixels.

use std::error::Error;
use std::sync::{Arc, LazyLock};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// The name of the embedded font, as it calls itself.
const FAMILY: &str = "Noto Sans";
/// Larger pictures take more than 256 MiB while they are drawn.
const MOST_PIXELS: f64 = 64.0 * 1024.0 * 1024.0;

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_source(fontdb::Source::Binary(Arc::new(ttf_noto_sans::REGULAR)));
    fonts.load_font_source(fontdb::Source::Binary(Arc::new(ttf_noto_sans::BOLD)));
    fonts.set_sans_serif_family(FAMILY);
    Arc::new(fonts)
});

/// Why a figure did not become a PNG.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The scale is zero, negative or no number.
    #[error("a picture cannot be drawn at a scale of {0}: it must be a positive number")]
    Scale(f32),
    /// The picture would take too much memory.
    #[error("a picture of {width} by {height} pixels is too large")]
    TooLarge {
        /// Pixels across.
        width: f32,
        /// Pixels down.
        height: f32,
    },
    /// The drawing could not be read back: a defect of this crate.
    #[error("the drawing could not be read back")]
    Drawing(#[source] Box<dyn Error + Send + Sync>),
    /// The pixels could not be encoded.
    #[error("the picture could not be encoded")]
    Encode(#[source] Box<dyn Error + Send + Sync>),
}

/// Draws an SVG document of this crate as a PNG, `scale` pixels per unit; see [`Figure::to_png`](crate::Figure::to_png).
pub fn svg_to_png(svg: &str, scale: f32) -> Result<Vec<u8>, RenderError> {
    render(svg, scale)
}

pub(crate) fn render(svg: &str, scale: f32) -> Result<Vec<u8>, RenderError> {
    if !(scale.is_finite() && scale > 0.0) {
        return Err(RenderError::Scale(scale));
    }
    let options =
        Options { font_family: FAMILY.to_owned(), fontdb: Arc::clone(&FONTS), ..Options::default() };
    let tree = Tree::from_str(svg, &options).map_err(|error| RenderError::Drawing(error.into()))?;
    let (width, height) = ((tree.size().width() * scale).ceil(), (tree.size().height() * scale).ceil());
    let too_large = RenderError::TooLarge { width, height };
    if f64::from(width) * f64::from(height) > MOST_PIXELS {
        return Err(too_large);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and limited above")]
    let mut pixmap = Pixmap::new(width as u32, height as u32).ok_or(too_large)?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| RenderError::Encode(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Figure;

    #[test]
    fn the_embedded_font_is_the_one_named() {
        let names: Vec<&str> = FONTS.faces().map(|face| face.families[0].0.as_str()).collect();
        assert_eq!(names, [FAMILY, FAMILY]);
    }

    #[test]
    fn text_leaves_its_mark_without_fonts_of_the_machine() {
        let blank = Figure::new(" ").to_png(1.0).unwrap();
        let titled = Figure::new("A title in letters").to_png(1.0).unwrap();
        assert!(titled.len() > blank.len() + 500, "{} and {} bytes", titled.len(), blank.len());
    }

    #[test]
    fn a_scale_that_makes_no_sense_is_refused() {
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(matches!(Figure::new("").to_png(scale), Err(RenderError::Scale(_))), "{scale}");
        }
        assert!(matches!(Figure::new("").to_png(1e30), Err(RenderError::TooLarge { .. })));
    }
}
