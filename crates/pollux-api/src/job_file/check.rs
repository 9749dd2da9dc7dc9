//! Which names and texts are allowed.

/// The most characters of a name.
pub(super) const LONGEST_NAME: usize = 63;

/// What a job's name is, in messages.
pub(super) const NAME: &str =
    "1 to 63 lower-case letters, digits and `-`, the first a letter and the last no `-`";

/// Variables that the scheduler sets for every worker. One of a user's would be lost.
const SET_BY_US: [&str; 12] = [
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "NODE_RANK",
    "NUM_NODES",
    "CUDA_VISIBLE_DEVICES",
    "TORCHELASTIC_RUN_ID",
];

/// The variable that tells a member of an array which one it is.
pub(super) const ARRAY_INDEX: &str = "POLLUX_ARRAY_INDEX";

/// Whether a job may be called so. Such a name can be a folder, a label and a host's name, and is never taken for a
/// job's number.
pub(super) fn is_name(text: &str) -> bool {
    let letters = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let begins = text.starts_with(|letter: char| letter.is_ascii_lowercase());
    letters && begins && !text.ends_with('-') && text.len() <= LONGEST_NAME
}

/// The nearest name that is allowed; none if nothing is left.
pub(super) fn as_name(text: &str) -> Option<String> {
    let mut name = String::new();
    for letter in text.chars() {
        let letter = letter.to_ascii_lowercase();
        match letter {
            'a'..='z' => name.push(letter),
            '0'..='9' if !name.is_empty() => name.push(letter),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
        if name.len() == LONGEST_NAME {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    is_name(name).then(|| name.to_owned())
}

/// Whether a queue, an application or a type of GPU may be called so: up to 63 characters, none of them space.
pub(super) fn is_word(text: &str) -> bool {
    let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control();
    !text.is_empty() && text.chars().count() <= LONGEST_NAME && text.chars().all(is_plain)
}

/// What that is, in messages.
pub(super) const WORD: &str = "a word of at most 63 characters";

/// Whether text can be an argument, a path or a variable's value: anything without the NUL character.
pub(super) fn is_passable(text: &str) -> bool {
    !text.contains('\0')
}

/// Whether a path may be so.
pub(super) fn is_path(text: &str) -> bool {
    !text.is_empty() && text.len() <= 4_096 && is_passable(text)
}

/// What that is, in messages.
pub(super) const PATH: &str = "a path of at most 4096 bytes";

/// Why a variable may not be called so; none if it may.
pub(super) fn variable_fault(name: &str) -> Option<&'static str> {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    if !begins || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') || name.len() > 255 {
        return Some("a variable's name has letters, digits and `_`, and begins with no digit");
    }
    let is_ours = name.starts_with("POLLUX_") || name.starts_with("ADAPTDL_") || SET_BY_US.contains(&name);
    (is_ours && name != ARRAY_INDEX).then_some("the scheduler sets this variable itself; choose another name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["a", "resnet-50", "x0"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "50", "-a", "a-", "Resnet", "a_b", "a.b", "ä", &"a".repeat(64)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_name_near_to_another_is_found() {
        for (text, name) in
            [("My Job_2", Some("my-job-2")), ("50-x", Some("x")), ("train.py", Some("train-py"))]
        {
            assert_eq!(as_name(text).as_deref(), name, "{text}");
        }
        assert_eq!(as_name("123"), None);
        assert_eq!(as_name(&"a-".repeat(40)).map(|name| name.len()), Some(63));
    }

    #[test]
    fn variables_of_the_scheduler_are_not_the_users() {
        for name in ["SEED", "_x", "PATH", "POLLUX_ARRAY_INDEX", "WORLD"] {
            assert_eq!(variable_fault(name), None, "{name}");
        }
        for name in ["", "1X", "A-B", "POLLUX_TOKEN", "RANK", "ADAPTDL_X"] {
            assert!(variable_fault(name).is_some(), "{name}");
        }
    }
}
