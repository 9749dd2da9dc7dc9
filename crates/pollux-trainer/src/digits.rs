//! Handwritten digits: 1,797 images of 8 by 8 pixels, from the UCI repository.

/// Pixels of an image, and a constant one for the bias.
pub const INPUTS: usize = 65;

/// Digits there are.
pub const CLASSES: usize = 10;

/// Every so many images, one is kept out of training to measure accuracy.
const HELD_OUT_EVERY: usize = 6;

/// One image.
#[derive(Clone, Debug)]
pub struct Example {
    /// Pixels from 0 (white) to 1, and a one.
    pub inputs: [f64; INPUTS],
    /// The digit.
    pub label: usize,
}

/// The images, divided into those to train on and those to measure accuracy with.
#[derive(Clone, Debug)]
pub struct Digits {
    /// To train on: 1,498.
    pub training: Vec<Example>,
    /// To measure accuracy with: 299.
    pub held_out: Vec<Example>,
}

impl Digits {
    /// The data that the crate `smartcore` carries, which the tests of `pollux-agent` use too.
    pub fn load() -> Self {
        let data = smartcore::dataset::digits::load_dataset();
        let mut digits = Self { training: Vec::new(), held_out: Vec::new() };
        for (number, (pixels, &label)) in data.data.chunks(INPUTS - 1).zip(&data.target).enumerate() {
            let mut inputs = [1.0; INPUTS];
            for (input, &pixel) in inputs.iter_mut().zip(pixels) {
                *input = f64::from(pixel) / 16.0;
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a digit")]
            let label = label as usize;
            let example = Example { inputs, label };
            let kept_out = number % HELD_OUT_EVERY == HELD_OUT_EVERY - 1;
            let part = if kept_out { &mut digits.held_out } else { &mut digits.training };
            part.push(example);
        }
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_are_all_there() {
        let digits = Digits::load();
        assert_eq!((digits.training.len(), digits.held_out.len()), (1_498, 299));
        for example in digits.training.iter().chain(&digits.held_out) {
            assert!(example.label < CLASSES);
            assert!(example.inputs.iter().all(|input| (0.0..=1.0).contains(input)));
        }
    }
}
