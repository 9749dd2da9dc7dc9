//! The applications of the Pollux paper, so that a first simulation needs no download.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use super::Profile;
use super::format::parse_profile;

/// The paper's six applications by name: bert, cifar10, deepspeech2, imagenet, ncf, yolov3.
///
/// On T4 from the authors' measurements, on `rtx`, `a100`, `v100` and `quadro` from fitted parameters, by the example
/// `make_profiles`; each names its sources. `ncf` is not known on `v100`.
///
/// ```
/// let names: Vec<String> = pollux_sim::profile::builtin().iter().map(|profile| profile.name().to_owned()).collect();
/// assert_eq!(names, ["bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"]);
/// ```
pub fn builtin() -> Vec<Arc<Profile>> {
    PROFILES.clone()
}

static PROFILES: LazyLock<Vec<Arc<Profile>>> = LazyLock::new(|| {
    let parse = |&(name, text)| parse_profile(Path::new(name), text).map(Arc::new);
    let profiles: Result<_, _> = FILES.iter().map(parse).collect();
    profiles.expect("these files were tested")
});

const FILES: [(&str, &str); 6] = [
    ("bert.json", include_str!("../../profiles/bert.json")),
    ("cifar10.json", include_str!("../../profiles/cifar10.json")),
    ("deepspeech2.json", include_str!("../../profiles/deepspeech2.json")),
    ("imagenet.json", include_str!("../../profiles/imagenet.json")),
    ("ncf.json", include_str!("../../profiles/ncf.json")),
    ("yolov3.json", include_str!("../../profiles/yolov3.json")),
];
